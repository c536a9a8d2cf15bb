/**
 * `errand redrive` and `errand cancel` for many delegations of one agent, newest first. A failure leaves earlier changes
 * in place.
 */
import type { Command } from "commander";
import type { BulkFilter, BulkOptions } from "../../client/bulk.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { BulkRefused } from "../../schema/interrupt.ts";
import type { Cli, GlobalOptions } from "../context.ts";
import { exitCodeOfCode, usageError, worstExitCode } from "../failure.ts";
import { agentName, errorCode, wholeBetween } from "../input/arguments.ts";
import { INSTANT_EXAMPLE, instant } from "../input/instant.ts";
import { jsonText, note, oneLine, print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

export interface FilterOptions extends GlobalOptions {
  readonly target?: string;
  readonly errorCode?: string;
  readonly before?: string;
  readonly limit?: number;
  readonly all?: boolean;
}

export function addFilterOptions(command: Command, withErrorCode: boolean): Command {
  command.option(
    "--target <agent>",
    "instead of ids: many delegations of this agent, newest first (operator only)",
    agentName,
  );
  if (withErrorCode) {
    command.option(
      "--error-code <code>",
      "with --target: only those that ended with this error, such as attempts_exhausted or command_failed ('errand work')",
      errorCode,
    );
  }
  return command
    .option(
      "--before <instant>",
      `with --target: only those created before this time, ${INSTANT_EXAMPLE}`,
      instant,
    )
    .option("--limit <n>", "with --target: maximum number of delegations", wholeBetween(1, 1_000_000))
    .option("--all", "with --target: no maximum");
}

/** The filter of --target; undefined when the ids name the delegations. */
export function filterOf(ids: readonly string[], options: FilterOptions): BulkFilter | undefined {
  const { target, errorCode: error_code, before, limit, all } = options;
  if (target === undefined) {
    if ([error_code, before, limit, all].some((one) => one !== undefined)) {
      throw usageError("--error-code, --before, --limit and --all require --target");
    }
    if (ids.length === 0) throw usageError("no delegation id given", "Pass ids, or --target for many.");
    return undefined;
  }
  if (ids.length > 0) throw usageError("give either ids or --target");
  // Without this check, a forgotten option could cancel thousands.
  if ((limit === undefined) === (all === undefined))
    throw usageError("--target requires either --limit or --all");
  return {
    target,
    ...(error_code !== undefined && { error_code }),
    ...(before !== undefined && { before }),
  };
}

/** Prints each delegation as it arrives, then their number. Returns the number. */
export async function runBulk(
  { host, end }: Cli,
  { json, limit }: FilterOptions,
  run: (bulkOptions: BulkOptions) => AsyncIterable<Delegation>,
  { line, done }: { readonly line: (one: Delegation) => string; readonly done: string },
): Promise<number> {
  let count = 0;
  const codes: number[] = [];
  const onRefused = (one: BulkRefused) => {
    codes.push(exitCodeOfCode(one.code));
    end(worstExitCode(codes));
    const { delegation_id, code, detail } = one;
    const line = json ? jsonText(one) : `errand: ${oneLine(`${delegation_id}: ${code}: ${detail}`)}`;
    host.stderr.write(`${line}\n`);
  };
  try {
    await interruptible(async (signal) => {
      for await (const one of run({ limit, signal, onRefused })) {
        count += 1;
        await (json ? printJson(host, one) : print(host, line(one)));
      }
    });
  } finally {
    if (!json) await note(host, `${count} ${done}.`).catch(() => undefined);
  }
  return count;
}

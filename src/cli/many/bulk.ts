/**
 * What `errand redrive` and `errand cancel` have in common when they are about many: which, and how many.
 * Limit: one agent's, newest first; what was done before a failure stays done.
 */
import type { Command } from "commander";
import type { BulkFilter, BulkOptions } from "../../client/control.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { BulkRefused } from "../../schema/interrupt.ts";
import { agentName, type Cli, errorCode, type GlobalOptions, wholeBetween } from "../context.ts";
import { usageError } from "../failure.ts";
import { INSTANT_EXAMPLE, instant } from "../input/instant.ts";
import { note, print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

/** Some delegations were refused; the others are done. */
const EXIT_REFUSED = 1;

export interface ManyOptions extends GlobalOptions {
  readonly target?: string;
  readonly errorCode?: string;
  readonly before?: string;
  readonly limit?: number;
  readonly all?: boolean;
}

export function addManyOptions(command: Command, withErrorCode: boolean): Command {
  command.option("--target <agent>", "many at once: this agent's, newest first (operator)", agentName);
  if (withErrorCode) {
    command.option("--error-code <code>", "with --target: only what ended with this error", errorCode);
  }
  return command
    .option(
      "--before <instant>",
      `with --target: only what was delegated before, ${INSTANT_EXAMPLE}`,
      instant,
    )
    .option("--limit <n>", "with --target: how many at most", wholeBetween(1, 1_000_000))
    .option("--all", "with --target: all of them");
}

/** The filter when it is about many; nothing when it is about the one that `id` names. */
export function manyOf(id: string | undefined, options: ManyOptions): BulkFilter | undefined {
  const { target, errorCode: error_code, before, limit, all } = options;
  if (target === undefined) {
    if ([error_code, before, limit, all].some((one) => one !== undefined)) {
      throw usageError("--error-code, --before, --limit and --all go with --target");
    }
    if (id === undefined) throw usageError("there is no id", "Give one, or --target for many.");
    return undefined;
  }
  if (id !== undefined) throw usageError("give either one id or --target");
  // Nobody is to end a thousand by a word too few.
  if ((limit === undefined) === (all === undefined))
    throw usageError("how many: give either --limit or --all");
  return {
    target,
    ...(error_code !== undefined && { error_code }),
    ...(before !== undefined && { before }),
  };
}

/** Prints each as it comes, and how many there were. */
export async function eachOf(
  { host, end }: Cli,
  { json, limit }: ManyOptions,
  run: (how: BulkOptions) => AsyncIterable<Delegation>,
  { line, done }: { readonly line: (one: Delegation) => string; readonly done: string },
): Promise<void> {
  let count = 0;
  const onRefused = (one: BulkRefused) => {
    end(EXIT_REFUSED);
    const { delegation_id, code, detail } = one;
    host.stderr.write(json ? `${JSON.stringify(one)}\n` : `errand: ${delegation_id}: ${code}: ${detail}\n`);
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
}

/** `errand redrive`: delegates failed work again, as new delegations. */
import type { Command } from "commander";
import type { BulkOptions } from "../../client/bulk.ts";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { textOf } from "../../schema/a2a.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { addFilterOptions, type FilterOptions, filterOf, runBulk } from "../bulk/by-filter.ts";
import { forEachId } from "../bulk/each-id.ts";
import { type Cli, connect, examples } from "../context.ts";
import { CliError } from "../failure.ts";
import { DELEGATIONS, delegationIds } from "../input/arguments.ts";
import { noteKnownCodes } from "../show/known-codes.ts";
import { oneLine, print, printJson } from "../show/output.ts";

/** How much of a task the suggested command repeats. */
const TASK_MAX = 200;

/** A finished delegation that has not failed cannot be redriven; says how to delegate its task again. */
function explain(delegator: Delegator, id: string): (error: unknown) => Promise<never> {
  return async (error) => {
    if (!(error instanceof ErrandApiError) || error.code !== "wrong_state") throw error;
    const found = await delegator.get(id).catch(() => undefined);
    if (found === undefined || !isTerminal(found.state)) throw error;
    const task = textOf(found.message);
    const isShort = task !== "" && task.length <= TASK_MAX && !/[\n\r]/.test(task);
    const given = isShort ? `'${oneLine(task).replaceAll("'", "'\\''")}'` : "--file <path>";
    const recovery = `To do its task again, run: errand delegate ${found.target} ${given}`;
    throw new CliError({ ...error.problem, recovery }, { cause: error });
  };
}

export function addRedrive(program: Command, cli: Cli): void {
  const { host } = cli;
  const command = program
    .command("redrive")
    .description("delegate failed work again and print the new ids; a repeat prints the same")
    .argument("[ids...]", DELEGATIONS, delegationIds);
  addFilterOptions(command, true)
    .addHelpText(
      "after",
      examples(
        "errand redrive dlg_…",
        "errand redrive --target scout --error-code attempts_exhausted --all",
        "errand redrive --target scout --before 2026-01-31T08:00:00Z --limit 100",
      ),
    )
    .action(async (ids: readonly string[], _options: unknown, acting: Command) => {
      const options = acting.optsWithGlobals<FilterOptions>();
      const many = filterOf(ids, options);
      const connection = await connect(host, options);
      const delegator = new Delegator(connection);
      if (many) {
        const words = { line: (one: { id: string }) => one.id, done: "redriven" };
        const run = (bulkOptions: BulkOptions) => delegator.redriveMany(many, bulkOptions);
        const count = await runBulk(cli, options, run, words);
        const { target, error_code, before: until } = many;
        if (count === 0 && error_code !== undefined && !options.json)
          await noteKnownCodes(host, connection, error_code, { target, until, state: "failed" });
        return;
      }
      await forEachId(cli, ids, options, async (id, signal) => {
        const created = await delegator.redrive(id, { signal }).catch(explain(delegator, id));
        await (options.json ? printJson(host, created) : print(host, created.id));
      });
    });
}

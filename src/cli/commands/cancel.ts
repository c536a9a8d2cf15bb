/** `errand cancel`: cancels a delegation, or many of one agent. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { addFilterOptions, type FilterOptions, filterOf, runBulk } from "../bulk/by-filter.ts";
import { forEachId } from "../bulk/each-id.ts";
import { type Cli, connect, examples } from "../context.ts";
import { usageError } from "../failure.ts";
import { DELEGATIONS, delegationIds } from "../input/arguments.ts";
import { print, printJson } from "../show/output.ts";

interface CancelOptions extends FilterOptions {
  readonly reason?: string;
  readonly cascade?: boolean;
}

const line = ({ state, id }: Delegation) => `${state} ${id}`;

export function addCancel(program: Command, cli: Cli): void {
  const { host } = cli;
  const command = program
    .command("cancel")
    .description("cancel one delegation or many; the worker is notified at once")
    .argument("[ids...]", DELEGATIONS, delegationIds)
    .option("--reason <text>", "the reason, shown in its events")
    .option("--cascade", "also cancel children that it keeps (delegate --keep-children)")
    .option("--no-cascade", "do not cancel its children");
  addFilterOptions(command, false)
    .addHelpText(
      "after",
      examples(
        "errand cancel dlg_… dlg_…",
        'errand cancel dlg_… --reason "no longer wanted"',
        "errand cancel --target scout --before 2026-01-31T08:00:00Z --all",
      ),
    )
    .action(async (ids: readonly string[], _options: unknown, acting: Command) => {
      const options = acting.optsWithGlobals<CancelOptions>();
      const { reason, cascade } = options;
      const many = filterOf(ids, options);
      if (many && (reason !== undefined || cascade !== undefined)) {
        throw usageError("--reason, --cascade and --no-cascade require ids");
      }
      const delegator = new Delegator(await connect(host, options));
      if (many) {
        const words = { line, done: "canceled" };
        await runBulk(cli, options, (bulkOptions) => delegator.cancelMany(many, bulkOptions), words);
        return;
      }
      await forEachId(cli, ids, options, async (id, signal) => {
        const delegation = await delegator.cancel(id, reason, { cascade, signal });
        await (options.json ? printJson(host, delegation) : print(host, line(delegation)));
      });
    });
}

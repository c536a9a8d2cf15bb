/** `errand redrive`: delegates failed work again, as new delegations. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { addFilterOptions, type FilterOptions, filterOf, runBulk } from "../bulk/by-filter.ts";
import { type Cli, connect, examples } from "../context.ts";
import { delegationId } from "../input/arguments.ts";
import { print, printJson } from "../show/output.ts";

export function addRedrive(program: Command, cli: Cli): void {
  const { host } = cli;
  const command = program
    .command("redrive")
    .description("delegate failed work again and print the new id; a repeat prints the same id")
    .argument("[id]", "the failed delegation, dlg_…", delegationId);
  addFilterOptions(command, true)
    .addHelpText(
      "after",
      examples(
        "errand redrive dlg_…",
        "errand redrive --target scout --error-code attempts_exhausted --all",
        "errand redrive --target scout --before 2026-01-31T08:00:00Z --limit 100",
      ),
    )
    .action(async (id: string | undefined, _options: unknown, acting: Command) => {
      const options = acting.optsWithGlobals<FilterOptions>();
      const many = filterOf(id, options);
      const delegator = new Delegator(await connect(host, options));
      if (many) {
        const words = { line: (one: { id: string }) => one.id, done: "redriven" };
        return runBulk(cli, options, (bulkOptions) => delegator.redriveMany(many, bulkOptions), words);
      }
      const created = await delegator.redrive(id ?? "");
      await (options.json ? printJson(host, created) : print(host, created.id));
    });
}

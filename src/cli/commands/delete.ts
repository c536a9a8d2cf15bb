/** `errand delete`: erases finished delegations, one after another. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { forEachId } from "../bulk/each-id.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { DELEGATIONS, delegationIds } from "../input/arguments.ts";
import { print, printJson } from "../show/output.ts";

export function addDelete(program: Command, cli: Cli): void {
  const { host } = cli;
  program
    .command("delete")
    .description("erase finished delegations now, with their events, history and artifacts")
    .argument("<ids...>", DELEGATIONS, delegationIds)
    .addHelpText("after", examples("errand delete dlg_…"))
    .action(async (given: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const delegator = new Delegator(await connect(host, options));
      await forEachId(cli, given, options, async (id, signal) => {
        await delegator.delete(id, { signal });
        await (options.json ? printJson(host, { id }) : print(host, `erased ${id}`));
      });
    });
}

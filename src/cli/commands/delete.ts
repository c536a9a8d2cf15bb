/** `errand delete`: erases finished delegations, one after another. Limit: stops at the first refusal. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { nameDelegation } from "../failure.ts";
import { DELEGATIONS, delegationIds } from "../input/arguments.ts";
import { print, printJson } from "../show/output.ts";
import { interruptible } from "../signals.ts";

export function addDelete(program: Command, { host }: Cli): void {
  program
    .command("delete")
    .description("erase finished delegations now, with their events, history and artifacts")
    .argument("<ids...>", DELEGATIONS, delegationIds)
    .addHelpText("after", examples("errand delete dlg_…"))
    .action(async (given: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const delegator = new Delegator(await connect(host, options));
      await interruptible(async (signal) => {
        for (const id of given) {
          await delegator.delete(id, { signal }).catch((error: unknown) => {
            throw error instanceof ErrandApiError ? nameDelegation(error, id) : error;
          });
          await (options.json ? printJson(host, { id }) : print(host, `erased ${id}`));
        }
      });
    });
}

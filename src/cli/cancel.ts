/** `errand cancel`: cancels a delegation. Limit: one at a time. */
import type { Command } from "commander";
import { Delegator } from "../client/delegator.ts";
import { type Cli, connect, examples, type GlobalOptions } from "./context.ts";
import { print, printJson } from "./output.ts";

export function addCancel(program: Command, { host }: Cli): void {
  program
    .command("cancel")
    .description("cancel a delegation; who works on it is told at once")
    .argument("<id>", "the delegation, dlg_…")
    .option("--reason <text>", "why, for whoever watches")
    .addHelpText("after", examples("errand cancel dlg_…", 'errand cancel dlg_… --reason "no longer wanted"'))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { reason?: string }>();
      const delegation = await new Delegator(await connect(host, options)).cancel(id, options.reason);
      await (options.json
        ? printJson(host, delegation)
        : print(host, `${delegation.state} ${delegation.id}`));
    });
}

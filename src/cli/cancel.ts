/** `errand cancel`: cancels a delegation. Limit: one at a time. */
import type { Command } from "commander";
import { Delegator } from "../client/delegator.ts";
import { type Cli, connect, examples, type GlobalOptions } from "./context.ts";
import { print, printJson } from "./output.ts";

interface CancelOptions extends GlobalOptions {
  readonly reason?: string;
  readonly cascade: boolean;
}

export function addCancel(program: Command, { host }: Cli): void {
  program
    .command("cancel")
    .description("cancel a delegation; who works on it is told at once")
    .argument("<id>", "the delegation, dlg_…")
    .option("--reason <text>", "why, for whoever watches")
    .option("--no-cascade", "leave alone what was delegated as a part of it")
    .addHelpText("after", examples("errand cancel dlg_…", 'errand cancel dlg_… --reason "no longer wanted"'))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CancelOptions>();
      const { reason, cascade } = options;
      // Said only when it is not the default: an older broker knows no such field.
      const how = cascade ? {} : { cascade };
      const delegation = await new Delegator(await connect(host, options)).cancel(id, reason, how);
      await (options.json
        ? printJson(host, delegation)
        : print(host, `${delegation.state} ${delegation.id}`));
    });
}

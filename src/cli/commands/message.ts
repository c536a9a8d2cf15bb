/** `errand message`: a follow-up to work that waits or is worked at. Limit: no answer; what is asked is answered. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { type Cli, connect, delegationId, examples, type GlobalOptions } from "../context.ts";
import { readWork, type Sources } from "../input/task.ts";
import { print, printJson } from "../show/output.ts";

export function addMessage(program: Command, { host }: Cli): void {
  program
    .command("message")
    .description("say something more to who works on a delegation, or will; it arrives at once")
    .argument("<id>", "the delegation, dlg_…", delegationId)
    .argument("[text...]", "what to say; '-' or nothing reads it from stdin")
    .option("--file <path>", "read it from a file")
    .option("--message-file <path>", "an A2A Message as JSON; '-' is stdin")
    .addHelpText(
      "after",
      examples('errand message dlg_… "in French, please"', "git diff | errand message dlg_… -"),
    )
    .action(async (id: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & Sources>();
      const said = await readWork(host, words, options, "message");
      const message = "task" in said ? said.task : said.message;
      const delegation = await new Delegator(await connect(host, options)).message(id, message);
      await (options.json
        ? printJson(host, delegation)
        : print(host, `${delegation.state} ${delegation.id}`));
    });
}

/** `errand message`: sends a follow-up message to the agent. `errand answer` answers its questions. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { DELEGATION, delegationId } from "../input/arguments.ts";
import { readTask, type Sources } from "../input/task.ts";
import { print, printJson } from "../show/output.ts";

export function addMessage(program: Command, { host }: Cli): void {
  program
    .command("message")
    .description("send a follow-up message to the agent of a delegation")
    .argument("<id>", DELEGATION, delegationId)
    .argument("[text...]", "the message; '-' or no text reads it from stdin")
    .option("--file <path>", "read the message from a file")
    .option("--message-file <path>", "send an A2A Message from a JSON file; '-' reads stdin")
    .addHelpText(
      "after",
      examples('errand message dlg_… "in French, please"', "git diff | errand message dlg_… -"),
    )
    .action(async (id: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & Sources>();
      const input = await readTask(host, words, options, "message");
      const message = "task" in input ? input.task : input.message;
      const delegation = await new Delegator(await connect(host, options)).message(id, message);
      await (options.json
        ? printJson(host, delegation)
        : print(host, `sent to ${delegation.id} (${delegation.state})`));
    });
}

/** `errand message`: sends a follow-up message to the agent. `errand answer` answers its questions. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { CliError } from "../failure.ts";
import { DELEGATION, delegationId } from "../input/arguments.ts";
import { type AttachOptions, foundIn, withFiles } from "../input/attached.ts";
import { several } from "../input/attachment.ts";
import { readTask, type Sources } from "../input/task.ts";
import { print, printJson, stateText } from "../show/output.ts";
import { howToAnswer } from "../show/questions.ts";

export function addMessage(program: Command, { host }: Cli): void {
  program
    .command("message")
    .description("send a follow-up message to the agent of a delegation")
    .argument("<id>", DELEGATION, delegationId)
    .argument("[text...]", "the message; '-' or no text reads it from stdin")
    .option("--file <path>", "read the message from a file")
    .option("--message-file <path>", "send an A2A Message from a JSON file; '-' reads stdin")
    .option(
      "--attach <path>",
      "send this file, or the files of this folder, with it; may be repeated",
      several,
    )
    .addHelpText(
      "after",
      examples(
        'errand message dlg_… "in French, please"',
        "git diff | errand message dlg_… -",
        'errand message dlg_… "with this log" --attach build.log',
      ),
    )
    .action(async (id: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & Sources & AttachOptions>();
      const input = await readTask(host, words, options, "message");
      const files = await foundIn(host, options);
      const connection = await connect(host, options);
      const delegator = new Delegator(connection);
      const given = "task" in input ? input.task : input.message;
      const message = await withFiles(host, connection, given, files, options);
      const delegation = await delegator.message(id, message).catch(orAnswer(delegator, id));
      await (options.json
        ? printJson(host, delegation)
        : print(host, `sent to ${delegation.id} (${stateText(delegation.state)})`));
    });
}

/** Rethrows the refusal of a message; an open question takes an answer instead. */
function orAnswer(delegator: Delegator, id: string): (error: unknown) => Promise<never> {
  return async (error) => {
    if (!(error instanceof ErrandApiError) || error.status !== 409) throw error;
    const delegation = await delegator.get(id).catch(() => undefined);
    if (!delegation?.interrupt) throw error;
    const detail = `${id} asks a question, so it takes an answer and no message`;
    const recovery = `Answer with ${howToAnswer(delegation)}.`;
    throw new CliError({ ...error.problem, detail, recovery }, { cause: error });
  };
}

/** `errand get`: shows a delegation or its reply, now or when it finishes. Limit: only text parts of the reply. */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { textOf } from "../../schema/a2a.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { DELEGATION, delegationId } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { historyRows } from "../show/history.ts";
import { oneLine, print, printJson, progressText, table } from "../show/output.ts";
import { howToAnswer, requestLine } from "../show/questions.ts";
import { printReply } from "../show/reply.ts";
import { sendersOf, stateRows } from "../show/state-details.ts";
import { requireCompleted, waitFor } from "../wait.ts";

interface GetOptions extends GlobalOptions {
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly reply?: boolean;
  readonly history?: boolean;
}

/** How many of the newest messages are shown without --history. */
const MESSAGES = 6;
const MESSAGE_CHARS = 200;

export function addGet(program: Command, { host }: Cli): void {
  program
    .command("get")
    .description("show a delegation's state, progress and result")
    .argument("<id>", DELEGATION, delegationId)
    .option("--wait", "wait until it finishes; if it fails, the exit code is that of its error")
    .option("--timeout <duration>", "with --wait: stop waiting after this time, with exit code 124", duration)
    .option("--reply", "print only the reply, as 'errand delegate --wait' does")
    .option("--history", "print all follow-ups, questions and answers, with author and time")
    .addHelpText(
      "after",
      examples(
        "errand get dlg_… --wait",
        "errand get dlg_… --history",
        "errand get dlg_… --reply > output.bin",
        "errand get dlg_… --json | jq .state",
      ),
    )
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GetOptions>();
      if (options.timeout !== undefined && !options.wait) throw usageError("--timeout requires --wait");
      const connection = await (options.wait ? connect : connectToRead)(host, options);
      const delegation = options.wait
        ? await waitFor({ host, connection, id, timeoutSeconds: options.timeout, json: options.json })
        : await new Delegator(connection).get(id);
      if (options.history && options.reply) throw usageError("give either --history or --reply");
      if (options.history) await printHistory(host, connection, delegation, options.json);
      else if (options.json) await printJson(host, delegation);
      else if (options.reply) await printReply(host, delegation);
      else await print(host, describe(delegation, await stateRows(connection, delegation)));
      if (options.wait || options.reply) requireCompleted(delegation);
    });
}

/** With --json, one complete message per line. */
async function printHistory(
  host: CliHost,
  connection: ConnectionOptions,
  delegation: Delegation,
  json = false,
): Promise<void> {
  const { history } = delegation;
  if (json) for (const message of history) await printJson(host, message);
  else if (history.length === 0) await print(host, "no follow-ups, questions or answers yet");
  else {
    const senders = await sendersOf(connection, delegation);
    await print(host, table(historyRows(history, Number.POSITIVE_INFINITY, senders)));
  }
}

function describe(delegation: Delegation, stateDetails: readonly (readonly [string, string])[]): string {
  const { id, state, target, delegator, context_id, attempt, max_attempts, lease, progress, error } =
    delegation;
  const rows: (readonly string[])[] = [
    ["delegation", id],
    ["state", state],
    ["target", target],
    ["delegator", delegator],
    ["context", context_id],
    ["task", oneLine(delegation.task_preview, 100)],
    ["attempt", `${attempt} of ${max_attempts}`],
    ["created", delegation.created_at],
  ];
  if (delegation.parent_id) rows.push(["parent", delegation.parent_id]);
  if (delegation.redrive_of) rows.push(["redrive of", delegation.redrive_of]);
  if (lease) rows.push(["leased", `by ${oneLine(lease.worker_id)} until ${lease.expires_at}`]);
  const progressLine = progress && progressText(progress);
  if (progressLine) rows.push(["progress", progressLine]);
  const { interrupt } = delegation;
  const messages = historyRows(delegation.history, MESSAGE_CHARS);
  // The open question is shown below, with the command that answers it.
  const past = messages.slice(0, messages.length - (interrupt?.requests.length ?? 0));
  if (past.length > MESSAGES)
    rows.push(["history", `${past.length - MESSAGES} earlier messages: 'errand get ${id} --history'`]);
  rows.push(...past.slice(-MESSAGES));
  for (const request of interrupt?.requests ?? []) {
    rows.push(["asks", requestLine(request, interrupt?.requests.length === 1)]);
  }
  if (interrupt) {
    rows.push(["question", `${interrupt.id}, open until ${interrupt.expires_at}`]);
    rows.push(["answer with", howToAnswer(delegation)]);
  }
  if (delegation.finished_at) rows.push(["finished", delegation.finished_at]);
  rows.push(...stateDetails);
  for (const { artifactId, name, parts } of delegation.artifacts) {
    rows.push([
      "artifact",
      `${oneLine(name ?? artifactId)}, ${parts.length} part${parts.length === 1 ? "" : "s"}`,
    ]);
  }
  if (error) rows.push(["error", `${error.code}: ${oneLine(error.message)}`]);
  const reply = delegation.reply ? textOf(delegation.reply) : "";
  return table(rows) + (reply === "" ? "" : `\n\n${reply}`);
}

/** `errand delegate`: hands a task to an agent, and can wait for the reply. */
import type { Command } from "commander";
import { Admin } from "../../client/admin.ts";
import { Delegator } from "../../client/delegator.ts";
import { toArguments } from "../../client/delegator-options.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import type { StreamEvent } from "../../schema/event.ts";
import { LIMITS } from "../../schema/limits.ts";
import { delegateLines } from "../bulk/batch.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { CliError, cliError, Interrupted, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, delegationId } from "../input/arguments.ts";
import { foundIn, uploadsOf } from "../input/attached.ts";
import { several, withAttachments } from "../input/attachment.ts";
import {
  addTermsOptions,
  addWorkOptions,
  type DelegationOptions,
  delegationFields,
} from "../input/delegation-options.ts";
import { duration } from "../input/duration.ts";
import { readTask, textFrom } from "../input/task.ts";
import { recoveryFor } from "../recovery.ts";
import { asSent, eventLine } from "../show/event-line.ts";
import { note, painter, print, printError, printJson, write } from "../show/output.ts";
import { printReply } from "../show/reply.ts";
import { sizeText } from "../show/size.ts";
import { terminalWidth } from "../show/terminal-width.ts";
import { interruptible } from "../signals.ts";
import { withSuggestion } from "../similar-agent.ts";
import { requireCompleted, waitFor } from "../wait.ts";

interface DelegateOptions extends GlobalOptions, DelegationOptions {
  readonly wait?: boolean;
  readonly watch?: boolean;
  readonly timeout?: number;
  readonly attach?: readonly string[];
  readonly idempotencyKey?: string;
  readonly parent?: string;
  readonly batch?: string;
}

const ABOUT = `
Each request carries an Idempotency-Key, so the task is accepted only once, even if a request is repeated. If the broker
cannot be reached, the command fails at once. A broker that was reached and becomes unavailable is retried for up to a
minute.

On a terminal, --wait shows the progress on one line, and prompts when the agent asks. An empty line or Ctrl-C leaves
the question open, for 'errand answer'. The time for --timeout starts again after an answer. Without a terminal, a
question ends the wait with exit code 79.

Other users of this machine can read command lines. To keep --callback-secret and --callback-token from them, put
"callback": {"url", "secret", "token"} into a line of --batch.

A file of --attach becomes a part of the message, with its name and its media type; an agent of 'errand work' finds it in
ERRAND_FILES_DIR. Files are in the message up to 256 KiB together; a file beyond that is uploaded first, and the message
names it. It may be as large as the operator allows (100 MiB by default). A folder stands for all files below it, at most
1000, hidden ones too; their names begin with that of the folder. Links, .git and node_modules are left out. A broker
that stores no files takes about 750 KiB in one request (ERRAND_MAX_BODY_BYTES).

With --auto-approve all, the broker approves every proposed action in your name, and every question whose options are
approve and deny. With names, it approves only those actions. A question for a credential always waits for an answer.
An agent set to --approvals person refuses such a delegation.

--budget limits what it and everything under it use together, as workers report it: tokens, a cost in one currency,
attempts, and the time since it was first leased. Beyond it the worker has 30 s; then it fails with budget_exceeded, and
everything under it is canceled. With --on-budget ask, you are asked for a larger budget instead: 'errand approve' or 'errand deny'.

With --result-schema, the result is JSON that fits the schema, and the broker accepts no other. --wait prints that JSON and
nothing else. The schema has at most 64 KiB, and no patterns.

With --batch, each line of the file is the body of POST /v1/delegations as JSON, with an optional idempotency_key. The
agent and the options are the defaults for each line. Each line is accepted or refused on its own: ids go to stdout,
errors with their line number to stderr (with --json, one object per line on stdout: {"line", "delegation"} or
{"line", "error"}). With --wait, it waits until each has ended or asks a question, and prints one line for each. The most
serious outcome sets the exit code.`;

export function addDelegate(program: Command, { host, end }: Cli): void {
  const command = program
    .command("delegate")
    .description("hand a task to an agent; prints the delegation's id, or with --wait the reply")
    .argument("[agent]", "the agent to delegate to", agentName)
    .argument("[task...]", "the task; '-' or no task reads it from stdin")
    .option("--wait", "wait for the end and print the reply; if it fails, the exit code is that of its error")
    .option("--watch", "like --wait, and print every event on stderr as it happens (with --json: on stdout)")
    .option("--timeout <duration>", "stop waiting after this time, with exit code 124", duration);
  addWorkOptions(command)
    .option(
      "--attach <path>",
      "send this file, or the files of this folder, with the task; may be repeated",
      several,
    )
    .option("--idempotency-key <key>", "repeating a key returns the same delegation (default: a random key)")
    .option("--parent <id>", "the delegation that this one is part of", delegationId);
  addTermsOptions(command)
    .option("--batch <path>", "delegate many: one JSON object per line; '-' reads stdin")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        'errand delegate scout "how many words is this" --wait',
        "git diff | errand delegate reviewer --wait --timeout 10m",
        "errand delegate builder --file task.md --priority 9 --watch",
        'errand delegate reviewer "is this plan sound?" --attach plan.pdf --attach costs.csv --wait',
        'errand delegate coder "why does the build fail?" --attach src --attach build.log --wait',
        'errand delegate scout "and this part" --parent "$ERRAND_DELEGATION_ID"',
        'errand delegate scout "count the words" --result-schema words.schema.json --wait | jq .words',
        'errand delegate lead "review the branch" --budget cost=2USD,time=30m --on-budget ask --wait',
        "errand delegate scout --batch tasks.jsonl --idempotency-key nightly-2026-01-31 --wait",
        "errand delegate scout --message-file message.json --idempotency-key nightly-2026-01-31",
      ),
    )
    .action(async (agent: string | undefined, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<DelegateOptions>();
      if (options.batch !== undefined) {
        end(await batch(host, agent, words, { ...options, batch: options.batch }));
      } else {
        if (agent === undefined) throw usageError("missing required argument 'agent'");
        await delegate(host, agent, words, options);
      }
    });
}

/** The whole file is in memory. */
const BATCH_MAX_BYTES = 256 * 1024 * 1024;

async function batch(
  host: CliHost,
  agent: string | undefined,
  words: string[],
  options: DelegateOptions & { readonly batch: string },
): Promise<number> {
  const { watch, file, messageFile, attach, batch: path, json = false } = options;
  if ([watch, file, messageFile, attach, words[0]].some((one) => one !== undefined)) {
    throw usageError("--batch cannot be combined with a task, --file, --message-file, --attach or --watch");
  }
  requireWaitForTimeout(options);
  const fields = await requestFields(host, options);
  const defaults = { ...(agent !== undefined && { target: agent }), ...fields };
  const text = await textFrom(host, path, BATCH_MAX_BYTES);
  const connection = await connect(host, options);
  const wait = options.wait ? { timeoutSeconds: options.timeout } : undefined;
  return delegateLines(host, connection, text, { defaults, key: options.idempotencyKey, json, wait });
}

/** Only asked where no worker polls: workers of a paused agent get nothing. */
async function whyUnattended(connection: ConnectionOptions, target: string): Promise<string> {
  const agent = await new Admin({ ...connection, failFast: true, retryForMs: 0 })
    .getAgent(target)
    .catch(() => undefined);
  if (agent?.paused)
    return `${target} is paused; the delegation is queued until 'errand agent resume ${target}'.`;
  const isBusy = agent !== undefined && (agent.presence.state === "online" || agent.counts.working > 0);
  return isBusy
    ? `the workers of ${target} are busy; the delegation is queued.`
    : `no worker is polling ${target}; the delegation is queued.`;
}

async function delegate(host: CliHost, target: string, words: string[], options: DelegateOptions) {
  const { wait, watch, timeout } = options;
  const waits = wait === true || watch === true;
  requireWaitForTimeout(options);
  const fields = await requestFields(host, options);
  const task = await readTask(host, words, options);
  const files = await foundIn(host, options);
  const connection = await connect(host, options);
  const work = await interruptible((signal) =>
    withAttachments(task, files, {
      ...uploadsOf(host, connection, signal, options.json === true),
      // A repeat leads to its delegation, also when the agent is gone.
      ...(options.idempotencyKey === undefined && {
        check: () => requireAgent(connection, target, signal),
      }),
    }),
  );
  const [input, times] = toArguments({ ...fields, target, ...work });
  const key = options.idempotencyKey ?? crypto.randomUUID();
  const accepted = await interruptible((signal) =>
    new Delegator(connection).delegate(input, { ...times, idempotencyKey: key, signal }),
  ).catch(async (error: unknown) => {
    if (error instanceof Interrupted) await printError(host, mayBeAccepted(key), options.json === true);
    const explained = withSizes(withKey(error, key), work);
    throw await withSuggestion(explained, target, connection);
  });
  const { id, presence } = accepted;
  const isUnattended = presence !== undefined && presence.state !== "online";
  if (!waits) await (options.json ? printJson(host, accepted) : print(host, id));
  if (isUnattended && !options.json) await note(host, await whyUnattended(connection, target));
  if (!waits) return;
  // The broker has just responded, so an outage from here on is retried.
  const retrying = { ...connection, failFast: false };
  const onEvent = watch ? eventPrinter(host, options.json === true) : undefined;
  const ended = await waitFor({
    host,
    connection: retrying,
    id,
    timeoutSeconds: timeout,
    isNew: true,
    isExplained: isUnattended,
    json: options.json,
    onEvent,
  });
  await (options.json ? printJson(host, ended) : printReply(host, ended));
  requireCompleted(ended);
}

/** Throws `agent_unknown`. The broker decides at the submit; this only spares uploads for a name that is misspelled. */
async function requireAgent(connection: ConnectionOptions, target: string, signal: AbortSignal) {
  try {
    await new Admin(connection).getAgent(target, { signal });
  } catch (error) {
    if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") return;
    throw await withSuggestion(error, target, connection);
  }
}

function requireWaitForTimeout({ wait, watch, timeout }: DelegateOptions): void {
  if (timeout !== undefined && !wait && !watch) throw usageError("--timeout requires --wait or --watch");
}

async function requestFields(host: CliHost, options: DelegateOptions) {
  const fields = await delegationFields(host, options);
  return { ...fields, ...(options.parent !== undefined && { parent_id: options.parent }) };
}

function eventPrinter(host: CliHost, json: boolean): (event: StreamEvent) => Promise<void> {
  const paint = painter(host, "stderr");
  const width = terminalWidth(host, "stderr");
  return (event) =>
    json ? printJson(host, asSent(event)) : write(host.stderr, `${eventLine(event, paint, width)}\n`);
}

/** Adds the size of the request and the broker's limit to the error of a request that is too large. */
function withSizes(error: unknown, work: object): unknown {
  if (!(error instanceof ErrandApiError) || error.code !== "payload_too_large") return error;
  const sent = sizeText(Buffer.byteLength(JSON.stringify(work)));
  const detail = `${error.message} The task, with its attachments, takes ${sent}.`;
  const recovery = `Send less, or raise the broker's ERRAND_MAX_BODY_BYTES (default ${sizeText(LIMITS.body_bytes.value)}).`;
  return new CliError({ ...error.problem, detail, recovery }, { cause: error });
}

const repeatWith = (key: string): string =>
  `Run it again with --idempotency-key ${key}; a task that was accepted is not delegated twice.`;

/** Without the key, another run would delegate the task a second time. */
const mayBeAccepted = (key: string): CliError =>
  cliError({
    code: "interrupted",
    category: "TRANSPORT",
    detail: "stopped before the broker answered; it may have accepted the task",
    recovery: repeatWith(key),
    retryable: true,
    details: { outcome: "unknown", idempotency_key: key },
  });

/** Adds the key to the recovery of an error with unknown outcome, so that the user can retry safely. */
function withKey(error: unknown, key: string): unknown {
  if (!(error instanceof ErrandApiError)) return error;
  if (error.details?.outcome !== "unknown") return error;
  const recovery = `${recoveryFor(error)} ${repeatWith(key)}`;
  const details = { ...error.details, idempotency_key: key };
  return new CliError({ ...error.problem, recovery, details }, { cause: error });
}

/**
 * `errand delegate`: hands work to an agent, and waits for the answer if asked to. Limit: a question of the agent's ends
 * the wait; a batch is not waited for.
 */
import type { Command } from "commander";
import { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import { callbackSchema } from "../../schema/callback.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import type { StreamEvent } from "../../schema/event.ts";
import { contextIdSchema, delegationIdSchema } from "../../schema/values.ts";
import {
  agentName,
  type Cli,
  connect,
  examples,
  type GlobalOptions,
  keyValue,
  positive,
  valid,
  wholeBetween,
} from "../context.ts";
import { InOurWords, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { readWork, textFrom } from "../input/task.ts";
import { delegateLines } from "../many/batch.ts";
import { eventLine } from "../show/event-line.ts";
import { note, painter, print, printJson, write } from "../show/output.ts";
import { printReply } from "../show/reply.ts";
import { refuseBadEnd, waitFor } from "../wait.ts";

interface DelegateOptions extends GlobalOptions {
  readonly wait?: boolean;
  readonly watch?: boolean;
  readonly timeout?: number;
  readonly priority?: number;
  readonly context?: string;
  readonly delay?: number;
  readonly ttl?: number;
  readonly startWithin?: number;
  readonly maxAttempts?: number;
  readonly meta?: Readonly<Record<string, string>>;
  readonly file?: string;
  readonly messageFile?: string;
  readonly idempotencyKey?: string;
  readonly parent?: string;
  readonly callback?: string;
  readonly callbackSecret?: string[];
  readonly callbackToken?: string;
  readonly batch?: string;
}

const ABOUT = `
Every call carries an Idempotency-Key, and is repeated while the broker is away or the connection is cut: the
work is accepted once.

With --batch, each line of the file is the body of POST /v1/delegations as JSON, perhaps with an idempotency_key of its
own; the agent and the options count where a line says nothing. Each is accepted or refused on its own: ids on stdout,
refusals by line on stderr (with --json one object a line: {"line", "delegation"} or {"line", "error"}), and the exit
code is that of the worst.`;

export function addDelegate(program: Command, { host, end }: Cli): void {
  program
    .command("delegate")
    .description("hand a task to an agent; prints the delegation's id, or with --wait the answer")
    .argument("[agent]", "who is to do it", agentName)
    .argument("[task...]", "the task; '-' or nothing reads it from stdin")
    .option("--wait", "wait for the end and print the reply; if it ends badly, exit by its error")
    .option("--watch", "as --wait, with every event on stderr as it happens (with --json: on stdout)")
    .option("--timeout <seconds>", "give up waiting after this long, with exit code 124", positive)
    .option("--priority <n>", "0 to 9, higher first (default 5)", wholeBetween(0, 9))
    .option("--context <id>", "the conversation it belongs to", valid(contextIdSchema))
    .option("--delay <seconds>", "start no sooner than this", positive)
    .option("--ttl <seconds>", "fail it if it is not finished by then (default: seven days)", positive)
    .option("--start-within <seconds>", "fail it if nobody took it by then", positive)
    .option("--max-attempts <n>", "how often it is tried (default: the agent's)", wholeBetween(1, 100))
    .option("--meta <key=value>", "metadata that the agent gets; may be repeated", keyValue)
    .option("--file <path>", "read the task from a file")
    .option("--message-file <path>", "an A2A Message as JSON instead of a task; '-' is stdin")
    .option("--idempotency-key <key>", "the same key again finds the same delegation (default: a random one)")
    .option("--parent <id>", "the delegation that this one is a part of", valid(delegationIdSchema))
    .option("--callback <url>", "where a question and the end are POSTed to", callbackUrl)
    .option("--callback-secret <secrets...>", "whsec_… to sign that with; several while one is replaced")
    .option("--callback-token <token>", "sent with that as a bearer token")
    .option("--batch <path>", "many, one JSON object a line; '-' is stdin")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        'errand delegate scout "how many words is this" --wait',
        "git diff | errand delegate reviewer --wait --timeout 600",
        "errand delegate builder --file task.md --priority 9 --watch",
        'errand delegate scout "and this part" --parent "$ERRAND_DELEGATION_ID"',
        "errand delegate scout --batch tasks.jsonl --idempotency-key nightly-2026-01-31",
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

async function batch(
  host: CliHost,
  agent: string | undefined,
  words: string[],
  options: DelegateOptions & { readonly batch: string },
): Promise<number> {
  const { wait, watch, timeout, file, messageFile, batch: path, json = false } = options;
  const others = [wait, watch, timeout, file, messageFile, words[0]];
  if (others.some((one) => one !== undefined)) {
    throw usageError("--batch has the tasks, and is not waited for: give neither a task nor --wait with it");
  }
  const defaults = { ...(agent !== undefined && { target: agent }), ...wishes(options) };
  const text = await textFrom(host, path);
  const delegator = new Delegator(await connect(host, options));
  return delegateLines(host, delegator, text, { defaults, key: options.idempotencyKey, json });
}

async function delegate(host: CliHost, target: string, words: string[], options: DelegateOptions) {
  const { wait, watch, timeout } = options;
  const stays = wait === true || watch === true;
  if (timeout !== undefined && !stays) throw usageError("--timeout goes with --wait or --watch");
  const asked = wishes(options);
  const work = await readWork(host, words, options);
  const connection = await connect(host, options);
  const key = options.idempotencyKey ?? crypto.randomUUID();
  const accepted = await new Delegator(connection)
    .delegate({ target, ...work, ...asked }, { idempotencyKey: key })
    .catch((error: unknown) => {
      throw withKey(error, key);
    });
  const { id, presence } = accepted;
  if (!stays) {
    await (options.json ? printJson(host, accepted) : print(host, id));
    if (presence && presence.state !== "online" && host.isTty.stderr)
      await note(host, `nobody is polling ${target}; it waits.`);
    return;
  }
  // It was there a moment ago: worth a wait of its own.
  const patient = { ...connection, failFast: false };
  const onEvent = watch ? teller(host, options.json === true) : undefined;
  const ended = await waitFor({
    host,
    connection: patient,
    id,
    timeoutSeconds: timeout,
    isNew: true,
    json: options.json,
    onEvent,
  });
  await (options.json ? printJson(host, ended) : printReply(host, ended));
  refuseBadEnd(ended);
}

function wishes(options: DelegateOptions): Partial<DelegateInput> {
  const { priority, context, delay, ttl, startWithin, maxAttempts, meta } = options;
  return {
    ...(priority !== undefined && { priority }),
    ...(context !== undefined && { context_id: context }),
    ...(delay !== undefined && { delay_seconds: delay }),
    ...(ttl !== undefined && { ttl_seconds: ttl }),
    ...(startWithin !== undefined && { start_within_seconds: startWithin }),
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(meta !== undefined && { metadata: meta }),
    ...(options.parent !== undefined && { parent_id: options.parent }),
    ...callback(options),
  };
}

function callbackUrl(value: string): string {
  return valid(callbackSchema.shape.url)(value);
}

function callback({ callback: url, callbackSecret: secret, callbackToken: token }: DelegateOptions) {
  if (url === undefined) {
    if (secret === undefined && token === undefined) return {};
    throw usageError("--callback-secret and --callback-token go with --callback");
  }
  const given = { url, ...(secret !== undefined && { secret }), ...(token !== undefined && { token }) };
  const parsed = callbackSchema.safeParse(given);
  if (parsed.success) return { callback: parsed.data };
  const issue = parsed.error.issues[0];
  throw usageError(`--callback-${String(issue?.path[0])}: it takes ${issue?.message}`);
}

function teller(host: CliHost, json: boolean): (event: StreamEvent) => Promise<void> {
  const paint = painter(host, "stderr");
  return (event) => (json ? printJson(host, event) : write(host.stderr, `${eventLine(event, paint)}\n`));
}

/** Whether it was accepted is not known; the key finds out. */
function withKey(error: unknown, key: string): unknown {
  if (!(error instanceof ErrandApiError)) return error;
  if (error.details?.outcome !== "unknown") return error;
  const recovery = `Run it again with --idempotency-key ${key}: if the work was accepted, that finds it.`;
  const details = { ...error.details, idempotency_key: key };
  return new InOurWords({ ...error.problem, recovery, details }, { cause: error });
}

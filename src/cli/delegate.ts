/**
 * `errand delegate`: hands work to an agent, and waits for the answer if asked to. Limit: one delegation a call; a
 * question of the agent's ends the wait.
 */
import type { Command } from "commander";
import { Delegator } from "../client/delegator.ts";
import { ErrandApiError } from "../client/errors.ts";
import type { DelegateInput } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { contextIdSchema } from "../schema/values.ts";
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
} from "./context.ts";
import { eventLine } from "./event-line.ts";
import { InOurWords, usageError } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { note, painter, print, printJson, write } from "./output.ts";
import { printReply } from "./reply.ts";
import { readWork } from "./task-input.ts";
import { refuseBadEnd, waitFor } from "./wait.ts";

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
}

const ABOUT = `
Every call carries an Idempotency-Key, and is repeated while the broker is away or the connection is cut: the
work is accepted once.`;

export function addDelegate(program: Command, { host }: Cli): void {
  program
    .command("delegate")
    .description("hand a task to an agent; prints the delegation's id, or with --wait the answer")
    .argument("<agent>", "who is to do it", agentName)
    .argument("[task...]", "the task; '-' or nothing reads it from stdin")
    .option("--wait", "wait for the end and print the reply; if it ends badly, exit by its error")
    .option("--watch", "as --wait, with every event on stderr as it happens (with --json: on stdout)")
    .option("--timeout <seconds>", "give up waiting after this long, with exit code 124", positive)
    .option("--priority <n>", "0 to 9, higher first (default 5)", wholeBetween(0, 9))
    .option("--context <id>", "the conversation it belongs to", valid(contextIdSchema))
    .option("--delay <seconds>", "start no sooner than this", positive)
    .option("--ttl <seconds>", "fail it if it is not finished by then (default: a day)", positive)
    .option("--start-within <seconds>", "fail it if nobody took it by then", positive)
    .option("--max-attempts <n>", "how often it is tried (default: the agent's)", wholeBetween(1, 100))
    .option("--meta <key=value>", "metadata that the agent gets; may be repeated", keyValue)
    .option("--file <path>", "read the task from a file")
    .option("--message-file <path>", "an A2A Message as JSON instead of a task; '-' is stdin")
    .option("--idempotency-key <key>", "the same key again finds the same delegation (default: a random one)")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        'errand delegate scout "how many words is this" --wait',
        "git diff | errand delegate reviewer --wait --timeout 600",
        "errand delegate builder --file task.md --priority 9 --watch",
        "errand delegate scout --message-file message.json --idempotency-key nightly-2026-01-31",
      ),
    )
    .action(async (agent: string, words: string[], _options: unknown, command: Command) => {
      await delegate(host, agent, words, command.optsWithGlobals<DelegateOptions>());
    });
}

async function delegate(host: CliHost, target: string, words: string[], options: DelegateOptions) {
  const { wait, watch, timeout } = options;
  const stays = wait === true || watch === true;
  if (timeout !== undefined && !stays) throw usageError("--timeout goes with --wait or --watch");
  const work = await readWork(host, words, options);
  const connection = await connect(host, options);
  const key = options.idempotencyKey ?? crypto.randomUUID();
  const accepted = await new Delegator(connection)
    .delegate({ target, ...work, ...wishes(options) }, { idempotencyKey: key })
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
  const ended = await waitFor({ host, connection: patient, id, timeoutSeconds: timeout, onEvent });
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
  };
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

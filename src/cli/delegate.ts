/** `errand delegate`: hands a task to an agent, and waits for the answer if asked to. Limit: text tasks. */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { Delegator } from "../client/delegator.ts";
import { textOf } from "../schema/a2a.ts";
import type { Delegation } from "../schema/delegation.ts";
import { type Cli, connect, examples, type GlobalOptions, positive, wholeBetween } from "./context.ts";
import { usageError } from "./failure.ts";
import type { CliHost } from "./host.ts";
import { note, print, printJson, write } from "./output.ts";
import { refuseBadEnd, waitFor } from "./wait.ts";

interface DelegateOptions extends GlobalOptions {
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly priority?: number;
  readonly context?: string;
  readonly file?: string;
  readonly idempotencyKey?: string;
}

export function addDelegate(program: Command, { host }: Cli): void {
  program
    .command("delegate")
    .description("hand a task to an agent; prints the delegation's id, or with --wait the answer")
    .argument("<agent>", "who is to do it")
    .argument("[task...]", "the task; '-' or nothing reads it from stdin")
    .option("--wait", "wait for the end and print the reply's text; if it ends badly, exit by its error")
    .option(
      "--timeout <seconds>",
      "with --wait: give up waiting after this long, with exit code 124",
      positive,
    )
    .option("--priority <n>", "0 to 9, higher first (default 5)", wholeBetween(0, 9))
    .option("--context <id>", "the conversation it belongs to")
    .option("--file <path>", "read the task from a file")
    .option("--idempotency-key <key>", "the same key again finds the same delegation (default: a random one)")
    .addHelpText(
      "after",
      examples(
        'errand delegate scout "how many words is this" --wait',
        "git diff | errand delegate reviewer --wait --timeout 600",
        "errand delegate builder --file task.md --priority 9",
      ),
    )
    .action(async (agent: string, words: string[], _options: unknown, command: Command) => {
      await delegate(host, agent, words, command.optsWithGlobals<DelegateOptions>());
    });
}

async function delegate(host: CliHost, target: string, words: string[], options: DelegateOptions) {
  const { wait, timeout, priority, context } = options;
  if (timeout !== undefined && !wait) throw usageError("--timeout goes with --wait");
  const task = await readTask(host, words, options.file);
  const connection = await connect(host, options);
  const accepted = await new Delegator(connection).delegate(
    {
      target,
      task,
      ...(priority !== undefined && { priority }),
      ...(context !== undefined && { context_id: context }),
    },
    { idempotencyKey: options.idempotencyKey },
  );
  if (!wait) {
    await (options.json ? printJson(host, accepted) : print(host, accepted.id));
    const alone = accepted.presence && accepted.presence.state !== "online";
    if (alone && host.isTty.stderr) await note(host, `nobody is polling ${target}; it waits.`);
    return;
  }
  // It was there a moment ago: worth a wait of its own.
  const patient = { ...connection, failFast: false };
  const ended = await waitFor({ host, connection: patient, id: accepted.id, timeoutSeconds: timeout });
  await (options.json ? printJson(host, ended) : printReply(host, ended));
  refuseBadEnd(ended);
}

async function printReply(host: CliHost, { id, state, reply }: Delegation): Promise<void> {
  if (state !== "completed") return;
  const parts = reply?.parts ?? [];
  const text = reply ? textOf(reply) : "";
  const raw = parts.flatMap((part) =>
    typeof part.raw === "string" ? [Buffer.from(part.raw, "base64")] : [],
  );
  if (text !== "") await print(host, text);
  // Bytes are for a file or a pipe; a terminal would make a mess of them.
  const asBytes = text === "" && raw.length > 0 && raw.length === parts.length && !host.isTty.stdout;
  if (asBytes) await write(host.stdout, Buffer.concat(raw));
  const others = asBytes ? 0 : parts.filter((part) => part.text === undefined).length;
  if (others > 0)
    await note(host, `the reply has ${others} part(s) that are not text: 'errand get ${id} --json'.`);
  const { truncated, kept_bytes, stdout_bytes } = reply?.metadata ?? {};
  if (truncated === true)
    await note(host, `the reply was cut by its agent: ${kept_bytes} of ${stdout_bytes} bytes are here.`);
}

async function readTask(host: CliHost, words: string[], file: string | undefined): Promise<string> {
  const fromStdin = words.length === 1 && words[0] === "-";
  if (file !== undefined) {
    if (words.length > 0) throw usageError("the task is given twice: as words and by --file");
    return decode(await readFile(file).catch((error: Error) => fail(file, error)), file);
  }
  if (words.length > 0 && !fromStdin) return checked(words.join(" "), "the task");
  if (!fromStdin && host.isTty.stdin) {
    throw usageError("there is no task", "Give it as words, with --file, or on stdin.");
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of host.stdin) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  return decode(Buffer.concat(chunks), "stdin");
}

function decode(bytes: Uint8Array, source: string): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${source} is not UTF-8 text`, "A task is text; encode it first.");
  }
  return checked(text, source);
}

function checked(text: string, source: string): string {
  if (text.trim() === "")
    throw usageError(`${source} is empty`, "Give the task as words, with --file, or on stdin.");
  return text;
}

function fail(file: string, error: Error): never {
  throw usageError(`${file} cannot be read (${error.message})`, "Give a file that can be read.");
}

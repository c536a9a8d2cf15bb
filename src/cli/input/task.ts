/**
 * Reads the task of `errand delegate` or the text of `errand message`: from arguments, a file, stdin, or an A2A Message
 * in a JSON file. The broker checks the size.
 */
import { readFile } from "node:fs/promises";
import { messageInputSchema } from "../../schema/a2a.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import { issuesOf } from "../../schema/issues.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";

type WorkInput = { task: string } | { message: NonNullable<DelegateInput["message"]> };

export interface Sources {
  readonly file?: string;
  readonly messageFile?: string;
}

/** `what` is the word for the text in errors: task or message. */
export async function readTask(
  host: CliHost,
  words: readonly string[],
  sources: Sources,
  what = "task",
): Promise<WorkInput> {
  const remedy = `Pass the ${what} as an argument, with --file, or on stdin.`;
  const checked = (text: string, source: string) => {
    if (text.trim() === "") throw usageError(`${source} is empty`, remedy);
    return text;
  };
  const { file, messageFile } = sources;
  const given = [
    words.length > 0 && "as an argument",
    file && "with --file",
    messageFile && "with --message-file",
  ];
  const [first, second] = given.filter((one) => typeof one === "string");
  if (second) throw usageError(`the ${what} is given twice: ${first} and ${second}`);
  if (messageFile !== undefined)
    return { message: toMessage(await jsonFrom(host, messageFile), nameOf(messageFile)) };
  if (file !== undefined) return { task: checked(await textFrom(host, file), file) };
  const isStdin = words.length === 0 || (words.length === 1 && words[0] === "-");
  if (!isStdin) return { task: checked(words.join(" "), `the ${what}`) };
  if (words.length === 0 && host.isTty.stdin) throw usageError(`no ${what} given`, remedy);
  return { task: checked(await textFrom(host, "-"), "stdin") };
}

function toMessage(value: unknown, source: string): NonNullable<DelegateInput["message"]> {
  const parsed = messageInputSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw usageError(
    `${source} is not an A2A Message: ${issuesOf(parsed.error, { whole: "the value" }).text}`,
    'The minimum is {"parts": [{"text": "…"}]}.',
  );
}

const nameOf = (path: string): string => (path === "-" ? "stdin" : path);

/** The path `-` stands for stdin. */
export async function jsonFrom(host: CliHost, path: string): Promise<unknown> {
  const text = await textFrom(host, path);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${nameOf(path)} is not JSON (${error instanceof Error ? error.message : error})`);
  }
}

/** The path `-` stands for stdin. */
export async function textFrom(host: CliHost, path: string): Promise<string> {
  if (path === "-") return decoded(await readAll(host), "stdin");
  const bytes = await readFile(path).catch((error: Error) => {
    throw usageError(`${path} cannot be read (${error.message})`, "Pass a readable file.");
  });
  return decoded(bytes, path);
}

async function readAll({ stdin }: CliHost): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stdin) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  return Buffer.concat(chunks);
}

function decoded(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${source} is not UTF-8 text`, "Encode binary data as text first.");
  }
}

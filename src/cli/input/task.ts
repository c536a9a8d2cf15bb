/**
 * Reads the task of `errand delegate` or the text of `errand message`: from arguments, a file, stdin, or an A2A Message
 * in a JSON file. The broker checks the size.
 */
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { messageInputSchema } from "../../schema/a2a.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import { InexactNumberError, parseExact } from "../../schema/exact-numbers.ts";
import { issuesOf, readAs } from "../../schema/issues.ts";
import { LIMITS } from "../../schema/limits.ts";
import { EncodingError, utf8 } from "../../util/text.ts";
import { CliError, cliError, usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { sizeText } from "../show/size.ts";

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
  const parsed = readAs(messageInputSchema, value);
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
    return parseExact(text);
  } catch (error) {
    if (error instanceof InexactNumberError) throw usageError(`${nameOf(path)}: ${error.message}`);
    throw usageError(`${nameOf(path)} is not JSON (${error instanceof Error ? error.message : error})`);
  }
}

/** What a delegation may have, so no broker accepts a longer text. */
const MAX_BYTES = LIMITS.delegation_bytes.value;

/** The path `-` stands for stdin. */
export async function textFrom(host: CliHost, path: string, maxBytes = MAX_BYTES): Promise<string> {
  return decoded(await bytesFrom(host, path, maxBytes), nameOf(path));
}

/** The path `-` stands for stdin. */
export async function bytesFrom(host: CliHost, path: string, maxBytes = MAX_BYTES): Promise<Uint8Array> {
  if (path === "-") return readAll(host.stdin, "stdin", maxBytes);
  return readAll(createReadStream(path), path, maxBytes).catch((error: Error) => {
    if (error instanceof CliError) throw error;
    throw usageError(`${path} cannot be read (${error.message})`, "Pass a readable file.");
  });
}

/** Stops reading at the limit: a device or a pipe may have no end. */
async function readAll(from: Readable, source: string, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of from) {
    const next: Uint8Array = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    bytes += next.length;
    if (bytes > maxBytes) throw tooLong(source, maxBytes);
    chunks.push(next);
  }
  return Buffer.concat(chunks);
}

const tooLong = (source: string, maxBytes: number): CliError =>
  cliError({
    code: "payload_too_large",
    category: "PROTOCOL",
    detail: `${source} has more than ${sizeText(maxBytes)}`,
    recovery: "Pass less, in several parts, or store it where the agent can fetch it and send its URL.",
  });

/** Throws a usage error that names the source for bytes that are not UTF-8. */
export function decoded(bytes: Uint8Array, source: string): string {
  try {
    return utf8(bytes, source);
  } catch (error) {
    throw error instanceof EncodingError ? usageError(error.message, error.remedy) : error;
  }
}

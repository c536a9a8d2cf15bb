/** Files that `errand delegate --attach` sends with the task, as parts of its message. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { getMimeType } from "hono/utils/mime";
import type { Part } from "../../schema/a2a.ts";
import type { DelegateInput } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import { cliError, usageError } from "../failure.ts";
import { isText } from "../is-text.ts";
import { oneLine } from "../show/output.ts";
import { sizeText } from "../show/size.ts";

/** The limit of a message, as JSON. */
const MAX_BYTES = LIMITS.delegation_bytes.value;
const BINARY = "application/octet-stream";
const TEXT = "text/plain; charset=utf-8";

type Work = { task: string } | { message: NonNullable<DelegateInput["message"]> };

/** For an option that may be repeated. */
export const several = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];

/** The task with a part for each file. Refuses what no broker accepts before anything is sent. */
export async function withAttachments(work: Work, paths: readonly string[]): Promise<Work> {
  if (paths.length === 0) return work;
  const given = "task" in work ? { parts: [{ text: work.task }] } : asMessage(work.message);
  const parts: Part[] = [...given.parts];
  let bytes = Buffer.byteLength(JSON.stringify(given));
  for (const path of paths) {
    const part = await partOf(path, MAX_BYTES - bytes);
    bytes += Buffer.byteLength(JSON.stringify(part));
    if (bytes > MAX_BYTES) throw tooLarge(path);
    parts.push(part);
  }
  return { message: { ...given, parts } };
}

const asMessage = (message: NonNullable<DelegateInput["message"]>) =>
  typeof message === "string" ? { parts: [{ text: message }] } : message;

/** Reads at most `left` bytes and one more: a file may grow, or have no size. */
async function partOf(path: string, left: number): Promise<Part> {
  const unusable = (error: Error) =>
    usageError(`${path} cannot be attached (${error.message})`, "Pass a readable file.");
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: Error) => {
    throw unusable(error);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile())
      throw usageError(
        `${path} cannot be attached (not a regular file)`,
        "Save the content to a file first.",
      );
    if (stat.size > left) throw tooLarge(path, stat.size);
    const chunks: Uint8Array[] = [];
    const read = async () => {
      const stream = file.createReadStream({ start: 0, end: left, autoClose: false });
      for await (const chunk of stream) chunks.push(chunk);
    };
    await read().catch((error: Error) => {
      throw unusable(error);
    });
    const bytes = Buffer.concat(chunks);
    if (bytes.length > left) throw tooLarge(path);
    const filename = basename(path);
    return { raw: bytes.toString("base64"), mediaType: mediaTypeOf(filename, bytes), filename };
  } finally {
    await file.close();
  }
}

/** The media type by the file name. Text with an unknown extension, or with that of a video (`.ts`), is plain text. */
export function mediaTypeOf(filename: string, bytes: Uint8Array): string {
  const named = getMimeType(filename);
  if (named !== undefined && !named.startsWith("video/")) return named;
  return isText(bytes) ? TEXT : (named ?? BINARY);
}

function tooLarge(path: string, size?: number) {
  const own = size === undefined ? "" : ` (${sizeText(size)})`;
  return cliError({
    code: "payload_too_large",
    category: "PROTOCOL",
    detail: `with ${oneLine(path)}${own}, the task exceeds ${sizeText(MAX_BYTES)}, the limit of a delegation; files grow by a third on the way`,
    recovery: "Attach less, or put the file where the agent can fetch it and send its URL.",
  });
}

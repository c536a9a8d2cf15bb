/**
 * Sends the files that a command of `errand work` leaves in ERRAND_ARTIFACTS_DIR as artifacts, before its reply: small ones
 * in the artifact, the others uploaded. Only regular files count: a link could name a file that the command did not mean
 * to return.
 */
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ChunkOptions } from "../../client/artifacts.ts";
import { ErrandApiError, isFull, isInvalid } from "../../client/errors.ts";
import type { Reply, Work } from "../../client/work.ts";
import type { Artifact, Part } from "../../schema/a2a.ts";
import { LIMITS } from "../../schema/limits.ts";
import { mediaTypeOf } from "../files/media-type.ts";
import { type LocalFile, openRegular, uploadFile } from "../files/upload-file.ts";
import { oneLine } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import type { CommandResult } from "./child.ts";
import { EXIT_QUESTION } from "./command-question.ts";
import { RAW_MAX } from "./command-reply.ts";

/** Why a file could not be returned, as the error of the delegation. */
export interface Unsent {
  readonly code: "output_too_large" | "command_failed";
  readonly message: string;
}

type Send = (artifact: Artifact, options: ChunkOptions) => Promise<void>;

/** Base64 needs four characters for three bytes. */
const BYTES_MAX = (LIMITS.delegation_bytes.value / 4) * 3;
const FILES_MAX = LIMITS.artifacts.value;

/** A larger one is uploaded, if the broker stores files. */
const INLINE_BYTES = 384 * 1024;

/** Sends nothing if the files are too large together. Rejects when the lease is lost. */
export async function sendFiles(
  folder: string,
  task: Pick<Work, "artifact" | "delegator" | "signal">,
): Promise<Unsent | undefined> {
  const found: LocalFile[] = [];
  try {
    for await (const file of filesIn(folder, "")) {
      found.push(file);
      if (found.length > FILES_MAX) return tooMany();
    }
  } catch (error) {
    return unreadable("The folder ERRAND_ARTIFACTS_DIR", error);
  }
  const uploaded = new Map<LocalFile, Part>();
  for (const file of found.filter(({ size }) => size > INLINE_BYTES)) {
    const part = await uploadOne(file, task);
    if (part === "none") break;
    if ("code" in part) return part;
    uploaded.set(file, part.part);
  }
  let bytes = 0;
  for (const file of found) {
    if (!uploaded.has(file)) bytes += file.size;
    if (bytes > BYTES_MAX) return tooLarge(file);
  }
  for (const file of found) {
    const unsent = await sendOne(file, uploaded.get(file), task.artifact);
    if (unsent !== undefined) return unsent;
  }
  return undefined;
}

/** `none`: the broker stores no files. */
async function uploadOne(
  file: LocalFile,
  { delegator, signal }: Pick<Work, "delegator" | "signal">,
): Promise<{ readonly part: Part } | Unsent | "none"> {
  try {
    return { part: await uploadFile(delegator, file, { signal }) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ErrandApiError)) return unreadable(`The file ${oneLine(file.name)}`, error);
    // An older broker has no such path.
    if (error.code === "files_off" || error.status === 404) return "none";
    if (error.status !== 413 && error.code !== "quota_exceeded") throw error;
    return {
      code: "output_too_large",
      message: `The broker does not take the file ${oneLine(file.name)} (${sizeText(file.size)}): ${error.message}`,
    };
  }
}

/** A command that failed keeps its own error; its delegator also learns which file is missing. */
export function withUnsent(result: CommandResult, error: Unsent): CommandResult | Reply {
  const { exitCode, stoppedBy, stderr } = result;
  const hasFailed = stoppedBy !== undefined || (exitCode !== 0 && exitCode !== EXIT_QUESTION);
  if (!hasFailed) return { state: "failed", error };
  return { ...result, stderr: stderr === "" ? error.message : `${stderr}\n${error.message}` };
}

/** In the order of their names. */
async function* filesIn(folder: string, prefix: string): AsyncGenerator<LocalFile> {
  const names = (await lstat(folder)).isDirectory() ? await readdir(folder) : [];
  for (const own of names.sort()) {
    const path = join(folder, own);
    const found = await lstat(path);
    const name = prefix + own;
    if (found.isDirectory()) yield* filesIn(path, `${name}/`);
    else if (found.isFile()) yield { name, path, size: found.size, followsLink: false };
  }
}

async function sendOne(found: LocalFile, part: Part | undefined, send: Send): Promise<Unsent | undefined> {
  const { name } = found;
  // With a prefix, no file replaces the artifact of the standard output.
  const artifact = { artifactId: `file/${name}`, name };
  const bytes = part ? undefined : await read(found).catch((error: unknown) => error);
  if (bytes !== undefined && !Buffer.isBuffer(bytes)) return unreadable(`The file ${oneLine(name)}`, bytes);
  try {
    if (bytes) await sendBytes(artifact, mediaTypeOf(name, bytes), bytes, send);
    else if (part) await send({ ...artifact, parts: [part] }, { append: false, lastChunk: true });
  } catch (error) {
    if (isFull(error) || (error instanceof ErrandApiError && error.status === 413)) return tooLarge(found);
    if (!isInvalid(error)) throw error;
    return {
      code: "command_failed",
      message: `The broker refused the file ${oneLine(name)}: ${error.message}`,
    };
  }
  return undefined;
}

/** Sends a file as an artifact, in as many chunks as it needs. */
export async function sendBytes(
  artifact: Pick<Artifact, "artifactId" | "description"> & { readonly name: string },
  mediaType: string,
  bytes: Buffer,
  send: Send,
): Promise<void> {
  for (let at = 0; at === 0 || at < bytes.length; at += RAW_MAX) {
    const raw = bytes.subarray(at, at + RAW_MAX).toString("base64");
    const parts = [{ raw, mediaType, filename: artifact.name }];
    await send({ ...artifact, parts }, { append: at > 0, lastChunk: at + RAW_MAX >= bytes.length });
  }
}

/** A process that outlives the command may replace a file by a link or a pipe, or let it grow. */
async function read(file: LocalFile): Promise<Buffer> {
  const handle = await openRegular(file);
  return handle.readFile().finally(() => handle.close());
}

const tooLarge = ({ name, size }: LocalFile): Unsent => ({
  code: "output_too_large",
  message:
    `With the file ${oneLine(name)} (${sizeText(size)}), the output exceeds what the delegation may have, ` +
    `${sizeText(LIMITS.delegation_bytes.value)}; files grow by a third on the way. Return less, or store the file elsewhere and print where.`,
});

const tooMany = (): Unsent => ({
  code: "output_too_large",
  message: `ERRAND_ARTIFACTS_DIR has more than ${FILES_MAX} files. Return one archive of them.`,
});

const unreadable = (what: string, error: unknown): Unsent => ({
  code: "command_failed",
  message: `${what} cannot be returned (${error instanceof Error ? error.message : String(error)}).`,
});

/**
 * Uploads a file of this machine. Its hash is computed first, so that the broker refuses a file that changes meanwhile.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Delegator } from "../../client/delegator.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { Part } from "../../schema/a2a.ts";
import { mediaTypeFor, SAMPLE_BYTES } from "./media-type.ts";

export interface LocalFile {
  /** The `filename` of the part. */
  readonly name: string;
  readonly path: string;
  readonly size: number;
  /** Whether a symbolic link at the path is followed. */
  readonly followsLink: boolean;
}

export interface UploadFileOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the bytes that the broker has. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

/** The file is not what it was when it was found. */
export class FileChangedError extends Error {
  override readonly name = "FileChangedError";
}

/** Throws {@link FileChangedError}, an error of the file system, and what {@link Delegator.upload} throws. */
export async function uploadFile(
  delegator: Pick<Delegator, "upload">,
  file: LocalFile,
  { signal, onProgress }: UploadFileOptions = {},
): Promise<Part> {
  const handle = await openRegular(file);
  try {
    const { sha256, sample } = await digest(handle, file.size, signal);
    return await delegator.upload(file.name, bytesOf(handle, file.size), {
      mediaType: mediaTypeFor(file.name, sample, file.size),
      sha256,
      length: file.size,
      signal,
      onProgress,
    });
  } catch (error) {
    throw error instanceof ErrandApiError && error.code === "hash_mismatch"
      ? new FileChangedError(CHANGED)
      : error;
  } finally {
    await handle.close();
  }
}

const CHANGED = "it changed while it was read";

/** Without O_NONBLOCK, opening a pipe that has taken the file's place waits for its writer. */
export async function openRegular({ path, size, followsLink }: LocalFile): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followsLink ? 0 : constants.O_NOFOLLOW);
  const handle = await open(path, flags);
  const now = await handle.stat().catch(() => undefined);
  if (now?.isFile() && now.size === size) return handle;
  await handle.close();
  throw new FileChangedError("it changed after it was found");
}

async function digest(handle: FileHandle, size: number, signal: AbortSignal | undefined) {
  const hash = createHash("sha256");
  let sample = Buffer.alloc(0);
  for await (const chunk of bytesOf(handle, size)) {
    signal?.throwIfAborted();
    hash.update(chunk);
    if (sample.length < SAMPLE_BYTES) sample = Buffer.concat([sample, chunk]).subarray(0, SAMPLE_BYTES);
  }
  return { sha256: hash.digest("hex"), sample };
}

/** Exactly as many bytes: a file that shrinks has changed; what was added to it is not read. */
async function* bytesOf(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  let at = 0;
  while (at < size) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) throw new FileChangedError(CHANGED);
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

const CHUNK_BYTES = 256 * 1024;

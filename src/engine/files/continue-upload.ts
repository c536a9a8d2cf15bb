/**
 * Adds bytes to an upload. They count for their principal before they are stored, and nothing stays of an upload that can
 * never become a file. Limit: of two requests that continue one upload at once, the later one wins.
 */
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { StoredFile, Upload } from "../../schema/file.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker, Files } from "../broker.ts";
import {
  fileTooLarge,
  incomplete,
  overQuota,
  storageFull,
  tooLong,
  uploadNotFound,
  uploadTaken,
  wrongHash,
  wrongOffset,
} from "./file-errors.ts";
import { tagOf } from "./file-ids.ts";
import { KEEP_MS, nowOf, requireFiles, requireSpace, type UsesFiles } from "./files.ts";
import { finishedFile, hashOf } from "./finish-upload.ts";
import { scripts } from "./scripts.ts";
import { StoreFullError } from "./store.ts";
import { type BeginUpload, beginUpload, dropUpload, openUpload, readUpload } from "./upload.ts";

/** How many bytes are counted at once: few round trips, and little that is counted in vain. */
const STEP_BYTES = 4 * 1024 * 1024;

export interface Piece {
  /** Where the bytes begin. */
  readonly offset: number;
  /** How many bytes there will be in all, if this request is the first to know. */
  readonly length?: number | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The upload ends with these bytes. */
  readonly isLast?: boolean;
}

/** With its last byte, the upload becomes a file. */
export async function continueUpload(
  broker: UsesFiles,
  principal: Principal,
  id: string,
  { offset, length: given, bytes, isLast = false }: Piece,
): Promise<Upload> {
  const files = requireFiles(broker);
  if (given !== undefined && given > files.maxBytes) throw fileTooLarge(files.maxBytes);
  const writer = randomId(16);
  const began = nowOf(broker);
  const upload = await openUpload(broker, principal, id, { writer, length: given });
  const { length, expires_at } = upload;
  if (given !== undefined && given !== length) throw tooLong(length ?? given);
  // The answer to the last piece may be lost.
  const known = upload.done === undefined ? undefined : await readUpload(broker, principal, id);
  const begin = known?.offset ?? (await files.store.size(id));
  if (offset !== begin) throw wrongOffset(begin, offset);
  if (known) return known;
  try {
    const counter = new Counter(broker, files, { id, writer, ...upload });
    await files.store.append(id, offset, counter.count(offset, bytes));
    const { at } = counter;
    if (at !== (isLast ? at : length)) {
      // It may have been given up meanwhile.
      await openUpload(broker, principal, id);
      return { id, offset: at, length: length ?? null, expires_at: toInstant(expires_at), file: null };
    }
    if (length !== undefined && at < length) throw incomplete();
    const file = await complete(broker, principal, id, { writer, size: at, expected: upload.sha256 });
    return { id, offset: at, length: at, expires_at: file.expires_at, file };
  } catch (error) {
    const refusal = error instanceof StoreFullError ? storageFull() : error;
    if (isGone(refusal)) await removeOrphan(broker, principal, id, began).catch(() => {});
    if (isLasting(refusal))
      await scripts.drop(broker.redis, id, await tagOf(broker, principal), nowOf(broker), writer);
    throw refusal;
  }
}

/** A file that arrives in one request. Nothing stays of one that does not arrive. */
export async function uploadFile(
  broker: UsesFiles & Pick<Broker, "memory">,
  principal: Principal,
  begin: BeginUpload,
  bytes: AsyncIterable<Uint8Array>,
): Promise<StoredFile> {
  const { id } = await beginUpload(broker, principal, begin);
  try {
    const { file } = await continueUpload(broker, principal, id, { offset: 0, bytes, isLast: true });
    if (file === null) throw incomplete();
    return file;
  } catch (error) {
    if (!isLasting(error)) await dropUpload(broker, principal, id).catch(() => {});
    throw error;
  }
}

const LASTING: readonly string[] = ["payload_too_large", "quota_exceeded", "hash_mismatch", "storage_full"];

/** Whether the upload can never become a file. */
const isLasting = (error: unknown): boolean => error instanceof ErrandError && LASTING.includes(error.code);

const isGone = (error: unknown): boolean => error instanceof ErrandError && error.code === "upload_not_found";

/**
 * Removes what a request stored after its upload was given up and the content deleted. A complete upload, whose content stays,
 * is remembered for {@link KEEP_MS}.
 */
async function removeOrphan(
  broker: UsesFiles,
  principal: Principal,
  id: string,
  began: number,
): Promise<void> {
  const isThere = await openUpload(broker, principal, id).then(
    () => true,
    (error: unknown) => !isGone(error),
  );
  if (!isThere && nowOf(broker) - began < KEEP_MS) await requireFiles(broker).store.remove(id);
}

interface Ending {
  readonly writer: string;
  readonly size: number;
  /** The SHA-256 that the request names. */
  readonly expected: string | undefined;
}

async function complete(
  broker: UsesFiles,
  principal: Principal,
  id: string,
  { writer, size, expected }: Ending,
): Promise<StoredFile> {
  const { store } = requireFiles(broker);
  await store.seal(id);
  const { sha256, size: stored } = await hashOf(store, id);
  // Another request wrote at the same time.
  if (stored !== size) throw uploadTaken(id, stored);
  if (expected !== undefined && sha256 !== expected) throw wrongHash(expected, sha256);
  return finishedFile(broker, principal, id, { writer, sha256, size });
}

interface Counted {
  readonly id: string;
  readonly writer: string;
  readonly length: number | undefined;
  readonly counted: number;
}

/** Counts bytes for their principal while they pass. */
class Counter {
  /** Up to where bytes have passed. */
  at = 0;
  readonly #broker: UsesFiles;
  readonly #files: Files;
  readonly #upload: Counted;
  #counted: number;

  constructor(broker: UsesFiles, files: Files, upload: Counted) {
    this.#broker = broker;
    this.#files = files;
    this.#upload = upload;
    this.#counted = upload.counted;
  }

  async *count(offset: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.at = offset;
    for await (const chunk of bytes) {
      await this.#reach(this.at + chunk.length);
      yield chunk;
      this.at += chunk.length;
    }
  }

  async #reach(to: number): Promise<void> {
    const { maxBytes, principalBytes, store } = this.#files;
    const { id, writer, length } = this.#upload;
    if (length !== undefined && to > length) throw tooLong(length);
    if (to > maxBytes) throw fileTooLarge(maxBytes);
    if (to <= this.#counted) return;
    const next = Math.min(maxBytes, to + STEP_BYTES);
    await requireSpace(store, next - this.#counted);
    const answer = await scripts.count(this.#broker.redis, id, writer, next, principalBytes);
    if (answer === "gone") throw uploadNotFound(id);
    if (answer === "taken") throw uploadTaken(id, this.at);
    if (answer !== "ok") throw overQuota(String(answer), this.#files);
    this.#counted = next;
  }
}

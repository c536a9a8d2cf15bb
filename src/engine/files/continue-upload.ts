/**
 * Adds bytes to an upload. They count for their principal before they are stored, and nothing stays of an upload that can
 * never become a file. Limit: of two requests that continue one upload at once, the later one wins.
 */
import { createHash } from "node:crypto";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { StoredFile, Upload } from "../../schema/file.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { incompleteBody } from "../errors.ts";
import { CountedBytes } from "./counted-bytes.ts";
import { fileTooLarge, otherLength, storageFull, wrongOffset } from "./file-errors.ts";
import { tagOf } from "./file-ids.ts";
import { nowOf, requireFiles, type UsesFiles } from "./files.ts";
import { completeUpload, hashing } from "./finish-upload.ts";
import { scripts } from "./scripts.ts";
import { StoreFullError } from "./store.ts";
import {
  type BeginUpload,
  beginUpload,
  type Claimed,
  claimUpload,
  dropUpload,
  openUpload,
  readUploadOf,
} from "./upload.ts";

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
  piece: Piece,
): Promise<Upload> {
  const { offset, length: given } = piece;
  const { maxBytes, store } = requireFiles(broker);
  if (given !== undefined && given > maxBytes) throw fileTooLarge(maxBytes);
  const tag = await tagOf(broker, principal);
  const { done, length: known } = await openUpload(broker, tag, id);
  // The answer to the last piece may be lost.
  const complete = done === undefined ? undefined : await readUploadOf(broker, tag, id);
  const begin = complete?.offset ?? (await store.size(id));
  if (offset !== begin) throw wrongOffset(begin, offset);
  if (complete) return complete;
  if (given !== undefined && (given < offset || given !== (known ?? given))) throw otherLength(known, offset);
  const writer = randomId(16);
  try {
    const claimed = await claimUpload(broker, tag, id, { writer, length: given });
    // Another request may have written before this one took the upload over.
    const stored = await store.size(id);
    if (offset !== stored) throw wrongOffset(stored, offset);
    return await write(broker, tag, id, claimed, piece);
  } catch (error) {
    const refusal = error instanceof StoreFullError ? storageFull() : error;
    // Something may have been stored after the content was deleted.
    if (isGone(refusal)) await scripts.abandon(broker.redis, id, nowOf(broker));
    if (isLasting(refusal)) await scripts.drop(broker.redis, id, tag, nowOf(broker), writer);
    throw refusal;
  } finally {
    await scripts.release(broker.redis, id, writer).catch(() => {});
  }
}

async function write(
  broker: UsesFiles,
  tag: string,
  id: string,
  claimed: Claimed,
  { offset, bytes, isLast = false }: Piece,
): Promise<Upload> {
  const files = requireFiles(broker);
  const { length, expires_at, sha256: expected } = claimed;
  const counted = new CountedBytes(broker, files, id, claimed);
  const passing = counted.pass(offset, bytes);
  const hash = offset === 0 ? createHash("sha256") : null;
  await files.store.append(id, offset, hash === null ? passing : hashing(passing, hash));
  const { at } = counted;
  if (isLast && length !== undefined && at < length) throw incompleteBody();
  // It may have been given up meanwhile.
  await openUpload(broker, tag, id);
  if (!isLast && at !== length) {
    return { id, offset: at, length: length ?? null, expires_at: toInstant(expires_at), file: null };
  }
  const passed = hash?.digest("hex");
  const file = await completeUpload(broker, tag, id, { ...claimed, size: at, expected, passed });
  return { id, offset: at, length: at, expires_at: file.expires_at, file };
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
    if (file === null) throw incompleteBody();
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

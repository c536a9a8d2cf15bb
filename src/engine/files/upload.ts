/**
 * Uploads of files that arrive in pieces: begin, look, give up. continue-upload.ts adds the bytes. Limit: only the principal
 * that began an upload may use it.
 */
import { randomId } from "../../redis/shards.ts";
import type { Upload } from "../../schema/file.ts";
import { LIMITS } from "../../schema/limits.ts";
import { toInstant } from "../../schema/values.ts";
import { type Principal, requireDelegator } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { bodyHash, requireKey } from "../delegations/idempotency.ts";
import { fileTooLarge, keyOfAnother, overQuota, uploadNotFound } from "./file-errors.ts";
import { tagOf } from "./file-ids.ts";
import { KEEP_MS, nowOf, requireFiles, requireSpace, type UsesFiles } from "./files.ts";
import { finishedFile } from "./finish-upload.ts";
import { scripts, textsIn } from "./scripts.ts";

export interface BeginUpload {
  /** Undefined: not known yet. */
  readonly length: number | undefined;
  /** The SHA-256 that the content must have. */
  readonly sha256?: string | undefined;
  /** The same request with the same key begins no other upload. */
  readonly idempotencyKey?: string | undefined;
}

export interface Begun extends Upload {
  /** An earlier request with the key began it. */
  readonly isRepeat: boolean;
}

/** Counts the announced bytes for the principal. Throws `idempotency_conflict`. */
export async function beginUpload(
  broker: UsesFiles & Pick<Broker, "memory">,
  principal: Principal,
  { length, sha256 = "", idempotencyKey }: BeginUpload,
): Promise<Begun> {
  requireDelegator(principal);
  const files = requireFiles(broker);
  broker.memory.requireRoom();
  if (length !== undefined && length > files.maxBytes) throw fileTooLarge(files.maxBytes);
  await requireSpace(files.store, length ?? 0);
  if (idempotencyKey !== undefined) requireKey(idempotencyKey);
  const id = `upl_${randomId(26)}`;
  const expires_at = nowOf(broker) + KEEP_MS;
  const most = [LIMITS.uploads.value, LIMITS.principal_files.value, files.principalBytes];
  const tag = await tagOf(broker, principal);
  const key = idempotencyKey === undefined ? "" : bodyHash([tag, idempotencyKey]);
  const request = [id, tag, length ?? -1, expires_at, ...most, sha256, key, KEEP_MS];
  const answer = String(await scripts.begin(broker.redis, ...request));
  const [outcome, earlier] = answer.split(" ");
  if (outcome === "again" && earlier !== undefined)
    return { ...(await readUploadOf(broker, tag, earlier)), isRepeat: true };
  if (outcome === "conflict") throw keyOfAnother();
  if (outcome !== "ok") throw overQuota(answer, files);
  const expires = toInstant(expires_at);
  return { id, offset: 0, length: length ?? null, expires_at: expires, file: null, isRepeat: false };
}

export interface OpenUpload {
  /** Undefined: not known yet. */
  readonly length: number | undefined;
  /** The SHA-256 of a complete one. */
  readonly done: string | undefined;
  readonly expires_at: number;
}

/** `tag`: the principal's. Throws `upload_not_found`, also for an upload of somebody else. */
export async function openUpload(broker: UsesFiles, tag: string, id: string): Promise<OpenUpload> {
  const found = textsIn(await scripts.open(broker.redis, id, tag));
  if (found === null) throw uploadNotFound(id);
  const [length, done, expires_at] = found;
  return { length: lengthIn(length), done: done || undefined, expires_at: Number(expires_at) };
}

interface Claim {
  /** The name of the request that writes. */
  readonly writer: string;
  /** How many bytes there will be, if the request says so. */
  readonly length: number | undefined;
}

export interface Claimed extends Claim {
  readonly expires_at: number;
  /** The SHA-256 that the content must have. */
  readonly sha256: string | undefined;
  /** An earlier request may still write. */
  readonly isContested: boolean;
}

/** Takes the upload over from an earlier request. Throws `upload_not_found`. */
export async function claimUpload(
  broker: UsesFiles,
  tag: string,
  id: string,
  { writer, length: given }: Claim,
): Promise<Claimed> {
  const expires_at = nowOf(broker) + KEEP_MS;
  const found = textsIn(await scripts.claim(broker.redis, id, tag, writer, given ?? -1, expires_at));
  if (found === null) throw uploadNotFound(id);
  const [length, contested, sha256] = found;
  return {
    ...{ writer, expires_at, length: lengthIn(length), sha256: sha256 || undefined },
    isContested: contested === "1",
  };
}

const lengthIn = (text: string | undefined): number | undefined =>
  Number(text) < 0 ? undefined : Number(text);

/** How far the upload is. A complete one is remembered for a day. */
export const readUpload = async (broker: UsesFiles, principal: Principal, id: string): Promise<Upload> =>
  readUploadOf(broker, await tagOf(broker, principal), id);

/** {@link readUpload} for the principal of the tag. */
export async function readUploadOf(broker: UsesFiles, tag: string, id: string): Promise<Upload> {
  const { store } = requireFiles(broker);
  const { length, done, expires_at } = await openUpload(broker, tag, id);
  const file = done === undefined ? null : await finishedFile(broker, tag, id, { sha256: done });
  const offset = file === null ? await store.size(id) : file.size;
  return { id, offset, length: length ?? null, expires_at: toInstant(expires_at), file };
}

/** Gives the upload up. What has arrived is deleted. */
export async function dropUpload(broker: UsesFiles, principal: Principal, id: string): Promise<void> {
  requireFiles(broker);
  const isDropped = await scripts.drop(broker.redis, id, await tagOf(broker, principal), nowOf(broker), "");
  if (isDropped !== 1) throw uploadNotFound(id);
}

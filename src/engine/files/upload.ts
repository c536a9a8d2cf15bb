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
import { fileTooLarge, overQuota, uploadNotFound } from "./file-errors.ts";
import { tagOf } from "./file-ids.ts";
import { KEEP_MS, nowOf, requireFiles, requireSpace, type UsesFiles } from "./files.ts";
import { finishedFile } from "./finish-upload.ts";
import { scripts, textsIn } from "./scripts.ts";

export interface BeginUpload {
  /** Undefined: not known yet. */
  readonly length: number | undefined;
  /** The SHA-256 that the content must have. */
  readonly sha256?: string | undefined;
}

/** Counts the announced bytes for the principal. */
export async function beginUpload(
  broker: UsesFiles & Pick<Broker, "memory">,
  principal: Principal,
  { length, sha256 = "" }: BeginUpload,
): Promise<Upload> {
  requireDelegator(principal);
  const files = requireFiles(broker);
  broker.memory.requireRoom();
  if (length !== undefined && length > files.maxBytes) throw fileTooLarge(files.maxBytes);
  await requireSpace(files.store, length ?? 0);
  const id = `upl_${randomId(26)}`;
  const expires_at = nowOf(broker) + KEEP_MS;
  const most = [LIMITS.uploads.value, LIMITS.principal_files.value, files.principalBytes];
  const answer = await scripts.begin(
    broker.redis,
    ...[id, await tagOf(broker, principal), length ?? -1, expires_at, ...most, sha256],
  );
  if (answer !== "ok") throw overQuota(String(answer), files);
  return { id, offset: 0, length: length ?? null, expires_at: toInstant(expires_at), file: null };
}

export interface OpenUpload {
  /** Undefined: not known yet. */
  readonly length: number | undefined;
  /** The bytes that count for the principal. */
  readonly counted: number;
  /** The SHA-256 of a complete one. */
  readonly done: string | undefined;
  readonly expires_at: number;
  /** The SHA-256 that the content must have. */
  readonly sha256: string | undefined;
}

/** With a `writer`, takes the upload over from another request. Throws `upload_not_found`. */
export async function openUpload(
  broker: UsesFiles,
  principal: Principal,
  id: string,
  {
    writer = "",
    length: given = -1,
  }: { readonly writer?: string; readonly length?: number | undefined } = {},
): Promise<OpenUpload> {
  const until = nowOf(broker) + KEEP_MS;
  const found = textsIn(
    await scripts.open(broker.redis, id, await tagOf(broker, principal), writer, given, until),
  );
  if (found === null) throw uploadNotFound(id);
  const [length, counted, done, expires_at, sha256] = found;
  return {
    length: Number(length) < 0 ? undefined : Number(length),
    counted: Number(counted),
    done: done || undefined,
    expires_at: Number(expires_at),
    sha256: sha256 || undefined,
  };
}

/** How far the upload is. A complete one is remembered for a day. */
export async function readUpload(broker: UsesFiles, principal: Principal, id: string): Promise<Upload> {
  const { store } = requireFiles(broker);
  const { length, done, expires_at } = await openUpload(broker, principal, id);
  const file = done === undefined ? null : await finishedFile(broker, principal, id, { sha256: done });
  const offset = file === null ? await store.size(id) : file.size;
  return { id, offset, length: length ?? null, expires_at: toInstant(expires_at), file };
}

/** Gives the upload up. What has arrived is deleted. */
export async function dropUpload(broker: UsesFiles, principal: Principal, id: string): Promise<void> {
  requireFiles(broker);
  const isDropped = await scripts.drop(broker.redis, id, await tagOf(broker, principal), nowOf(broker), "");
  if (isDropped !== 1) throw uploadNotFound(id);
}

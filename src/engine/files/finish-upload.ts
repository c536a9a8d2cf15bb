/** Makes a file of an upload whose last byte has arrived. */
import { createHash, type Hash } from "node:crypto";
import { randomId } from "../../redis/shards.ts";
import type { StoredFile } from "../../schema/file.ts";
import { uploadNotFound, uploadTaken, wrongHash } from "./file-errors.ts";
import { fileIdOf, toStoredFile } from "./file-ids.ts";
import { KEEP_MS, nowOf, requireFiles, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";

/** Longer than copying a content takes. */
const COPY_MS = 3_600_000;
/** How many complete uploads of a principal are remembered, for clients whose last answer is lost. */
const REMEMBERED = 100;

interface Ending {
  readonly writer: string;
  readonly isContested: boolean;
  readonly size: number;
  /** The SHA-256 that the request names. */
  readonly expected: string | undefined;
  /** The SHA-256 of the bytes that have passed, if one request has sent all of them. */
  readonly passed?: string | undefined;
}

/**
 * Computes the hash of what is stored, unless one request has sent all of it: pieces may have come to several gateways. If an earlier request may still write,
 * the file gets a copy, which that request does not know.
 */
export async function completeUpload(
  broker: UsesFiles,
  tag: string,
  id: string,
  { writer, isContested, size, expected, passed }: Ending,
): Promise<StoredFile> {
  const { store } = requireFiles(broker);
  const hash = createHash("sha256");
  const name = isContested ? `upl_${randomId(26)}` : id;
  if (isContested) await scripts.copying(broker.redis, name, nowOf(broker) + COPY_MS);
  let sha256: string;
  try {
    if (isContested) await store.append(name, 0, hashing(await store.read(id), hash));
    else if (passed === undefined) for await (const _ of hashing(await store.read(id), hash));
    await store.seal(name);
    // Another request wrote at the same time.
    if ((await store.size(name)) !== size) throw uploadTaken(id, await store.size(id));
    sha256 = isContested || passed === undefined ? hash.digest("hex") : passed;
    if (expected !== undefined && sha256 !== expected) throw wrongHash(expected, sha256);
  } catch (error) {
    // A copy that no file has counts for nobody, so it goes at once.
    if (isContested) await scripts.copying(broker.redis, name, nowOf(broker));
    throw error;
  }
  return finishedFile(broker, tag, id, { writer, sha256, size, name });
}

export async function* hashing(bytes: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

interface Content {
  /** The request that wrote the last byte; absent: the upload is complete already. */
  readonly writer?: string;
  readonly sha256: string;
  readonly size?: number;
  /** In the store. */
  readonly name?: string;
}

/** The file of the upload. The same content of the same principal is one file. */
export async function finishedFile(
  broker: UsesFiles,
  tag: string,
  id: string,
  { writer = "", sha256, size = 0, name = id }: Content,
): Promise<StoredFile> {
  const now = nowOf(broker);
  const isMissing = (await hasContent(broker, tag, sha256)) ? 0 : 1;
  const ending = [now, now + KEEP_MS, KEEP_MS, name, isMissing, REMEMBERED];
  const answer = await scripts.finish(broker.redis, id, writer, sha256, size, ...ending);
  if (answer === "taken") throw uploadTaken(id, size);
  const [stored, created_at, expires_at] = textsIn(answer)?.map(Number) ?? [];
  // The file may have been deleted since.
  if (!stored && stored !== 0) throw uploadNotFound(id);
  const row = { size: stored, created_at: created_at ?? now, expires_at: expires_at ?? now };
  return toStoredFile(broker, fileIdOf(tag, sha256), row);
}

/** False for a file whose content is missing from the store, after a restore without it: the upload repairs it. */
async function hasContent(broker: UsesFiles, tag: string, sha256: string): Promise<boolean> {
  const [name, size] = textsIn(await scripts.read(broker.redis, tag, sha256, "")) ?? [];
  return name === undefined || (await requireFiles(broker).store.size(name)) === Number(size);
}

/** Makes a file of an upload whose last byte has arrived. */
import { createHash } from "node:crypto";
import type { StoredFile } from "../../schema/file.ts";
import type { Principal } from "../access/access.ts";
import { uploadNotFound, uploadTaken } from "./file-errors.ts";
import { fileIdOf, tagOf, toStoredFile } from "./file-ids.ts";
import { KEEP_MS, nowOf, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";
import type { FileStore } from "./store.ts";

/**
 * The size and the SHA-256 of what is stored. It is read again, because the pieces may have come to several gateways.
 */
export async function hashOf(store: FileStore, name: string): Promise<{ size: number; sha256: string }> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of await store.read(name)) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { size, sha256: hash.digest("hex") };
}

interface Content {
  /** The request that wrote the last byte; absent: the upload is complete already. */
  readonly writer?: string;
  readonly sha256: string;
  readonly size?: number;
}

/** The file of the upload. The same content of the same principal is one file. */
export async function finishedFile(
  broker: UsesFiles,
  principal: Principal,
  id: string,
  { writer = "", sha256, size = 0 }: Content,
): Promise<StoredFile> {
  const now = nowOf(broker);
  const answer = await scripts.finish(broker.redis, id, writer, sha256, size, now, now + KEEP_MS, KEEP_MS);
  if (answer === "taken") throw uploadTaken(id, size);
  const [stored, created_at, expires_at] = textsIn(answer)?.map(Number) ?? [];
  // The file may have been deleted since.
  if (!stored && stored !== 0) throw uploadNotFound(id);
  const row = { size: stored, created_at: created_at ?? now, expires_at: expires_at ?? now };
  return toStoredFile(broker, fileIdOf(await tagOf(broker, principal), sha256), row);
}

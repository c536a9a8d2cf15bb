/** The files that a principal has uploaded: list, read, give up. */
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import type { FilesPage, StoredFile } from "../../schema/file.ts";
import { sha256OfFile } from "../../schema/file-url.ts";
import type { Principal } from "../access/access.ts";
import { fileNotFound } from "./file-errors.ts";
import { fileIdOf, partsOfFileId, tagOf, toStoredFile } from "./file-ids.ts";
import { nowOf, requireFiles, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";
import { type ReleasesFiles, settleAll } from "./upkeep.ts";

interface Page {
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function listFiles(
  broker: UsesFiles,
  principal: Principal,
  { cursor = "0", limit }: Page,
): Promise<FilesPage> {
  const { principalBytes } = requireFiles(broker);
  const tag = await tagOf(broker, principal);
  const from = Number(cursor);
  // One more than the page, which tells whether there is another.
  const [bytes, ...found] = textsIn(await scripts.list(broker.redis, tag, from, limit + 1)) ?? [];
  const files: StoredFile[] = [];
  for (let at = 0; at < found.length; at += 4) {
    const [size = 0, created_at = 0, expires_at = 0] = found.slice(at + 1, at + 4).map(Number);
    files.push(toStoredFile(broker, fileIdOf(tag, found[at] ?? ""), { size, created_at, expires_at }));
  }
  const next_cursor = files.length > limit ? String(from + limit) : null;
  return { files: files.slice(0, limit), next_cursor, bytes: Number(bytes), max_bytes: principalBytes };
}

/** The bytes of all files and uploads of all principals. */
export const storedBytes = async (redis: Redis): Promise<number> =>
  Number((await redis.get(`${keys.files}:bytes`)) ?? 0);

/** The file goes with the last delegation that names it; at once if none does. Throws `file_not_found`. */
export async function forgetFile(broker: ReleasesFiles, principal: Principal, id: string): Promise<void> {
  requireFiles(broker);
  const tag = await tagOf(broker, principal);
  const isOwn = partsOfFileId(id).tag === tag;
  const sha256 = sha256OfFile(id);
  const answer = isOwn ? await scripts.forget(broker.redis, tag, sha256, nowOf(broker)) : 0;
  if (answer !== 1) throw fileNotFound(id);
  await settleAll(broker, [`f ${tag} ${sha256}`]);
}

/** Reads files: one's own, and those that a delegation names, for everybody who may read the delegation. */
import type { Principal } from "../access/access.ts";
import type { Reads } from "../broker.ts";
import { read } from "../delegations/read.ts";
import { fileNotFound } from "./file-errors.ts";
import { type FileRow, partsOfFileId, tagOf } from "./file-ids.ts";
import { requireFiles, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";

export interface Found extends FileRow {
  /** In the store. */
  readonly name: string;
}

/** The file, if it is the principal's own. */
export async function findOwnFile(broker: UsesFiles, principal: Principal, id: string): Promise<Found> {
  requireFiles(broker);
  const found =
    partsOfFileId(id).tag === (await tagOf(broker, principal)) ? await find(broker, id, "") : null;
  if (found === null) throw fileNotFound(id);
  return found;
}

/** The file, if the delegation names it and the principal may see the delegation. */
export async function findFileOf(
  broker: UsesFiles & Reads,
  principal: Principal,
  delegationId: string,
  id: string,
): Promise<Found> {
  requireFiles(broker);
  await read(broker, principal, delegationId);
  const found = await find(broker, id, delegationId);
  if (found === null) throw fileNotFound(id);
  return found;
}

async function find({ redis, files }: UsesFiles, id: string, delegationId: string): Promise<Found | null> {
  const { tag, sha256 } = partsOfFileId(id);
  const [name, size, created_at, expires_at] =
    textsIn(await scripts.read(redis, tag, sha256, delegationId)) ?? [];
  // After a restore without the store, its content is missing.
  if (name === undefined || (await files?.store.size(name)) !== Number(size)) return null;
  return { name, size: Number(size), created_at: Number(created_at), expires_at: Number(expires_at) };
}

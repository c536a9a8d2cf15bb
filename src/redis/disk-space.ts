/** The space that is left for the embedded Redis, which with fsync always ends when it cannot write. */
import { statfs } from "node:fs/promises";
import { DISK_LOW_BYTES } from "../schema/status.ts";
import type { Readiness } from "./connections.ts";

export interface DiskSpace {
  readonly free_bytes: number;
  readonly total_bytes: number;
}

/** What this user may still write; null if the file system does not say. */
export async function readDiskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize };
  } catch {
    return null;
  }
}

/** Names a full disk beside the reason of a Redis that is away: it cannot say so itself. `read` is replaced in tests. */
export async function withDiskReason(
  found: Readiness,
  folder: string | null,
  read = readDiskSpace,
): Promise<Readiness> {
  if (found.status === "ready" || folder === null) return found;
  const space = await read(folder);
  if (space === null || space.free_bytes >= DISK_LOW_BYTES) return found;
  return { ...found, reason: `${found.reason}; the disk of the data directory is nearly full` };
}

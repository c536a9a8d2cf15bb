/** The space that is left for the embedded Redis, which with fsync always ends when it cannot write. */
import { statfs } from "node:fs/promises";

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

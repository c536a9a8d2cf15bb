/** Creates folders. Node's recursive `mkdir` never returns for a path such as /proc/foo. */
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

/** Creates the folder and its missing parents, one level at a time. Whatever already has that name is kept. */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (codeOf(error) === "EEXIST") return;
    const parent = dirname(path);
    if (codeOf(error) !== "ENOENT" || parent === path) throw error;
    await makeFolder(parent, mode);
    await mkdir(path, { mode }).catch((second: unknown) => {
      // Another process may have created it in between.
      if (codeOf(second) !== "EEXIST") throw second;
    });
  }
}

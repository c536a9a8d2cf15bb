/** Writes a file, which has its name only once it is whole. It replaces an existing one only by force. */
import { link, lstat, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ErrandApiError } from "../../client/errors.ts";
import { cliError, Interrupted, outputFailed, usageError } from "../failure.ts";

/** Returns how many bytes it has. Throws also what the content throws, and then leaves nothing behind. */
export async function saveFile(
  path: string,
  content: AsyncIterable<Uint8Array>,
  force: boolean,
): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  if (!force && (await isTaken(path))) throw fileExists(path);
  try {
    // A device or a pipe cannot be replaced.
    if (found !== undefined && !found.isFile()) return await writeTo(path, "w", content);
    const partial = join(dirname(path), `.${basename(path).slice(0, 100)}.${crypto.randomUUID()}`);
    try {
      const bytes = await writeTo(partial, "wx", content);
      // Replaces a symbolic link itself, not the file that it leads to.
      await (force ? rename(partial, path) : giveName(partial, path));
      return bytes;
    } finally {
      await rm(partial, { force: true });
    }
  } catch (error) {
    if (error instanceof ErrandApiError || error instanceof Interrupted) throw error;
    if (codeOf(error) === "EEXIST") throw fileExists(path);
    throw cannotWrite(path, error);
  }
}

async function writeTo(path: string, flags: "w" | "wx", content: AsyncIterable<Uint8Array>): Promise<number> {
  const file = await open(path, flags);
  let bytes = 0;
  try {
    for await (const chunk of content) {
      await file.writeFile(chunk);
      bytes += chunk.length;
    }
  } finally {
    await file.close();
  }
  return bytes;
}

/** Of file systems without hard links. */
const NO_LINKS: readonly (string | undefined)[] = ["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK"];

/** Fails where another program has taken the name meanwhile. */
async function giveName(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (error) {
    if (!NO_LINKS.includes(codeOf(error))) throw error;
    const reserved = await open(path, "wx");
    await reserved.close();
    await rename(partial, path);
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/** Creates the folder if there is none. */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true }).catch((error: unknown) => {
    throw cannotWrite(path, error);
  });
}

/** Whether there is anything of this name, also a symbolic link that leads nowhere. */
export async function isTaken(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

export function fileExists(path: string) {
  return cliError({
    code: "file_exists",
    category: "PROTOCOL",
    detail: `${path} exists`,
    recovery: "Choose another name, or replace it with --force.",
  });
}

const cannotWrite = (path: string, error: unknown) =>
  outputFailed(error, path) ??
  usageError(
    `${path} cannot be written (${error instanceof Error ? error.message : error})`,
    "Pass a path that can be written.",
  );

/** Writes a file. It replaces an existing one only by force, and then in one step. */
import { lstat, mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { cliError, outputFailed, usageError } from "../failure.ts";

export async function saveFile(path: string, bytes: Uint8Array, force: boolean): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!force && (await isTaken(path))) throw fileExists(path);
  try {
    // A device or a pipe cannot be replaced.
    if (found !== undefined && !found.isFile()) return await writeFile(path, bytes);
    const partial = join(dirname(path), `.${basename(path).slice(0, 100)}.${crypto.randomUUID()}`);
    await (force ? replace(path, partial, bytes) : create(path, bytes));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") throw fileExists(path);
    throw cannotWrite(path, error);
  }
}

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

/** Refuses an existing file, and follows no symbolic link. */
async function create(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "wx");
  try {
    await file.writeFile(bytes);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Replaces a symbolic link itself, not the file that it leads to. */
async function replace(path: string, partial: string, bytes: Uint8Array): Promise<void> {
  try {
    await writeFile(partial, bytes, { flag: "wx" });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

const cannotWrite = (path: string, error: unknown) =>
  outputFailed(error, path) ??
  usageError(
    `${path} cannot be written (${error instanceof Error ? error.message : error})`,
    "Pass a path that can be written.",
  );

/** The files that paths on this machine name: a file itself, or all regular files below a folder. */
import { lstat, readdir, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { cliError, usageError } from "../failure.ts";
import { oneLine } from "../show/output.ts";
import type { LocalFile } from "./upload-file.ts";

export interface Found {
  /** The name of one in a folder is the path from that folder on, with "/" on every platform. */
  readonly files: readonly LocalFile[];
  /** For each folder of which something is not sent, what that is. */
  readonly leftOut: readonly string[];
}

/** In no task: the history of a repository, and packages that its lock file names. */
const LEFT_OUT: readonly string[] = [".git", "node_modules"];

/** Throws for what is neither a file nor a folder, and for more than `max` files. */
export async function findFiles(paths: readonly string[], max: number): Promise<Found> {
  const files: LocalFile[] = [];
  const leftOut: string[] = [];
  const add = (file: LocalFile) => {
    files.push(file);
    if (files.length > max) throw tooMany(max);
  };
  for (const path of paths) {
    const found = await stat(path).catch((error: Error) => {
      throw cannotAttach(path, error.message, "Pass a readable file or folder.");
    });
    if (found.isFile()) add({ name: basename(path), path, size: found.size, followsLink: true });
    else if (!found.isDirectory())
      throw cannotAttach(path, "not a regular file", "Save the content to a file first.");
    else {
      const before = files.length;
      const omitted = new Omitted();
      await addFolder(path, `${basename(resolve(path))}/`, add, omitted).catch((error: unknown) => {
        if (!(error instanceof Error) || !("errno" in error)) throw error;
        throw cannotAttach(path, error.message, "Pass a folder that can be read.");
      });
      if (files.length === before)
        throw cannotAttach(path, "no regular file is below it", "Pass a folder with files.");
      if (omitted.text !== "") leftOut.push(`${oneLine(path)}: ${omitted.text}`);
    }
  }
  return { files, leftOut };
}

/** In the order of their names. */
async function addFolder(
  folder: string,
  prefix: string,
  add: (file: LocalFile) => void,
  omitted: Omitted,
): Promise<void> {
  for (const own of (await readdir(folder)).sort()) {
    const path = join(folder, own);
    const found = await lstat(path);
    if (LEFT_OUT.includes(own)) omitted.names.add(own);
    else if (found.isDirectory()) await addFolder(path, `${prefix}${own}/`, add, omitted);
    else if (found.isFile()) add({ name: prefix + own, path, size: found.size, followsLink: false });
    else omitted.others += 1;
  }
}

class Omitted {
  readonly names = new Set<string>();
  /** Links, pipes, sockets and devices. */
  others = 0;

  get text(): string {
    const others =
      this.others === 0 ? [] : [`${this.others} that ${this.others === 1 ? "is" : "are"} no regular file`];
    return [...this.names, ...others].join(", ");
  }
}

export const cannotAttach = (path: string, why: string, recovery: string) =>
  usageError(`${oneLine(path)} cannot be attached (${why})`, recovery);

const tooMany = (max: number) =>
  cliError({
    code: "limit_reached",
    category: "PROTOCOL",
    detail: `--attach names more than ${max} files`,
    recovery: "Attach one archive of them.",
  });

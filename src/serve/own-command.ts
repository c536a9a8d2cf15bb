/** How a shell runs this program: for the commands that it prints. */
import { accessSync, constants, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

export interface Called {
  /** The folder in which the commands work. */
  readonly folder: string;
  /** The PATH. */
  readonly path: string;
  /** The file of the program that runs. */
  readonly program: string;
}

export function ownCommand({ folder, path, program }: Called): string {
  const clone = join(dirname(dirname(program)), "errand");
  if (clone === join(folder, "errand") && isRunnable(clone)) return "./errand";
  // npm has installed it in this folder only.
  const installed = realPathOf(join(folder, "node_modules/.bin/errand"));
  if (installed !== undefined && installed === realPathOf(program)) return "npx errand-broker";
  // npx puts a program that it has fetched on the PATH only while it runs.
  if (/[\\/]_npx[\\/]/.test(program))
    return isFetchedByName(program) ? "npx errand-broker" : `node ${shellWord(program)}`;
  const isOnPath = path
    .split(delimiter)
    .some((directory) => directory.startsWith("/") && isRunnable(join(directory, "errand")));
  if (isOnPath) return "errand";
  return isRunnable(clone) ? shellWord(clone) : `node ${shellWord(program)}`;
}

/** From a tarball, npx needs its path each time. */
function isFetchedByName(program: string): boolean {
  try {
    const manifest = readFileSync(join(program, "../../../../package.json"), "utf8");
    return !/"errand-broker":\s*"[^"]*[:/]/.test(manifest);
  } catch {
    return true;
  }
}

export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** In single quotes, whatever it contains. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Quoted unless it is one plain word for every shell. */
export const shellWord = (text: string): string => (/^[\w./@+:-]+$/.test(text) ? text : quoted(text));

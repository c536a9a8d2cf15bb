/**
 * The temporary folder of one command of `errand work`. Its name says which worker made it, so that a later worker can
 * remove what a killed one left behind. Limit: what was made under another host name or in another PID namespace (a
 * container) stays, because nobody here knows whether its worker lives.
 */
import { createHash } from "node:crypto";
import { readlinkSync, writeFileSync } from "node:fs";
import { chmod, lstat, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { getuid, kill, pid } from "node:process";

/** `errand-work-<place>-<process id>-<random>` */
const NAME = /^errand-work-([0-9a-f]{8})-(\d+)-\w{6}$/;
/** A file with the number of the command's process group. */
const GROUP = "group";

/** The folders of this process. */
const own = new Set<string>();

/** A folder that only this user can read. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `errand-work-${processPlace()}-${pid}-`));
  own.add(folder);
  return folder;
}

/** The command may outlive this process, and then still uses the folder. */
export function noteGroup(folder: string, group: number): void {
  try {
    writeFileSync(join(folder, GROUP), String(group));
  } catch {
    // On a full disk, the command runs all the same.
  }
}

/** Also removes folders that the command made read-only. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch (error) {
    if (!isDenied(error)) throw error;
    await makeWritable(folder);
    await rm(folder, { recursive: true, force: true });
  } finally {
    own.delete(folder);
  }
}

/** Removes the folders of this user's workers that are dead, and whose commands have ended. A failure is ignored. */
export async function removeLeftBehind(): Promise<void> {
  const here = processPlace();
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const [, where, worker] = NAME.exec(name) ?? [];
    const folder = join(tmpdir(), name);
    if (worker === undefined || where !== here || own.has(folder)) continue;
    // The id of this process may have been that of a dead one.
    if (Number(worker) !== pid && isAlive(Number(worker))) continue;
    const found = await lstat(folder).catch(() => undefined);
    if (!found?.isDirectory() || found.uid !== getuid?.()) continue;
    const group = Number(await readFile(join(folder, GROUP), "utf8").catch(() => ""));
    if (group > 1 && isAlive(-group)) continue;
    await removeFolder(folder).catch(() => undefined);
  }
}

/** Within one place, a process id stands for one process. */
export function processPlace(): string {
  let namespace = "";
  try {
    namespace = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Only Linux has them.
  }
  return createHash("sha256").update(`${hostname()} ${namespace}`).digest("hex").slice(0, 8);
}

export function isAlive(process: number): boolean {
  try {
    return kill(process, 0);
  } catch (error) {
    // A process of another user exists, too.
    return isDenied(error);
  }
}

const isDenied = (error: unknown): boolean => ["EACCES", "EPERM"].includes(errnoOf(error) ?? "");

/** The code of a system error, such as `ENOENT`. */
export const errnoOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(folder, entry.name));
  }
}

/**
 * Who uses a worktree: one process at a time, as a file beside it. A claim whose process is dead counts as none. Limit: a
 * process in another container that shares the folder counts as dead after two minutes without a sign of life.
 */
import { readFileSync } from "node:fs";
import { readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pid } from "node:process";
import { sleep } from "../../../util/timing.ts";
import { isAlive, processPlace } from "../temp-folder.ts";

const WAIT_MS = 200;
const SIGN_EVERY_MS = 30_000;
const SILENT_MS = 120_000;

export class Claims {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined if another process has the worktree. Returns what ends the claim. */
  async tryClaim(name: string): Promise<(() => Promise<void>) | undefined> {
    const file = join(this.#folder, `${name}.claim`);
    for (;;) {
      try {
        await writeFile(file, `${processPlace()} ${pid} ${startOf(pid)}\n`, { flag: "wx", mode: 0o600 });
        break;
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
        if (!(await isAbandoned(file))) return undefined;
        // Of several that find it, one can rename it.
        const aside = `${file}.${pid}`;
        await rename(file, aside).catch(() => undefined);
        await rm(aside, { force: true });
      }
    }
    const sign = setInterval(() => {
      const now = new Date();
      void utimes(file, now, now).catch(() => undefined);
    }, SIGN_EVERY_MS);
    sign.unref();
    return async () => {
      clearInterval(sign);
      await rm(file, { force: true });
    };
  }

  /** Waits until no other process has it; `onWait` is called if it has to. Rejects if the signal aborts. */
  async claim(name: string, signal: AbortSignal, onWait: () => void): Promise<() => Promise<void>> {
    for (let hasWaited = false; ; hasWaited = true) {
      signal.throwIfAborted();
      const end = await this.tryClaim(name);
      if (end !== undefined) return end;
      if (!hasWaited) onWait();
      await sleep(WAIT_MS, signal);
    }
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  const [text, found] = await Promise.all([
    readFile(file, "utf8").catch(() => ""),
    stat(file).catch(() => undefined),
  ]);
  if (found === undefined) return false;
  const [place, id = "", start = ""] = text.trim().split(" ");
  if (place !== processPlace()) return Date.now() - found.mtimeMs > SILENT_MS;
  return !isAlive(Number(id)) || startOf(Number(id)) !== start;
}

/** When a process started, so that another one with its id is not taken for it. Only Linux says so. */
function startOf(id: number): string {
  try {
    return readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

/**
 * A lock file beside each worktree: one process has it at a time. The file of a dead process counts as none. Limit: a
 * process in another container that shares the folder counts as dead after two minutes without a sign of life.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pid } from "node:process";
import { sleep } from "../../../util/timing.ts";
import { errnoOf, isAlive, processPlace } from "../temp-folder.ts";

const WAIT_MS = 200;
const SIGN_EVERY_MS = 30_000;
const SILENT_MS = 120_000;

export class Claims {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns what ends the claim, or undefined if another process has the worktree. */
  async tryClaim(name: string): Promise<(() => Promise<void>) | undefined> {
    const file = join(this.#folder, `${name}.claim`);
    const own = `${processPlace()} ${pid} ${startOf(pid)} ${randomUUID()}\n`;
    for (;;) {
      try {
        await writeFile(file, own, { flag: "wx", mode: 0o600 });
        break;
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
        const abandoned = await abandonedIn(file);
        if (abandoned === undefined) return undefined;
        await removeText(file, abandoned);
      }
    }
    const sign = setInterval(() => {
      const now = new Date();
      void utimes(file, now, now).catch(() => undefined);
    }, SIGN_EVERY_MS);
    sign.unref();
    return async () => {
      clearInterval(sign);
      await removeText(file, own);
    };
  }

  /** Waits until no other process has it, and calls `onWait` once if it must wait. Rejects if the signal aborts. */
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

/** The text of the file if its process is dead; "" if there is no file any more. */
async function abandonedIn(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  const text = await readFile(file, "utf8").catch(() => "");
  const [place, id = "", start = ""] = text.trim().split(" ");
  const isSilent = found !== undefined && Date.now() - found.mtimeMs > SILENT_MS;
  // Its owner may not have written it yet.
  if (text === "") return found === undefined || isSilent ? text : undefined;
  const isDead = place === processPlace() ? !isAlive(Number(id)) || startOf(Number(id)) !== start : isSilent;
  return isDead ? text : undefined;
}

/** Another process may have replaced the file meanwhile: that one goes back. */
async function removeText(file: string, text: string): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    throw error;
  }
  if ((await readFile(aside, "utf8")) !== text) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}

/** When a process started, so that another one with its id is not taken for it. Only Linux says so. */
function startOf(id: number): string {
  try {
    return readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

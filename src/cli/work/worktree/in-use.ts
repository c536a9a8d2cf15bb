/**
 * Which worktrees processes use, as files beside them: one for each user, and one while a worktree is removed. Each side
 * first writes its own file and then looks for that of the other, so of two at the same time at least one sees the other.
 * Limit: a process in another container that shares the folder counts as alive until its file is deleted.
 */
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pid } from "node:process";
import { sleep } from "../../../util/timing.ts";
import { isAlive, processPlace } from "../temp-folder.ts";

const WAIT_MS = 50;

export class InUse {
  readonly #folder: string;
  /** How many users a worktree has in this process. */
  readonly #own = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Waits while another process removes the worktree. Returns what ends the use. */
  async begin(name: string, signal: AbortSignal): Promise<() => Promise<void>> {
    const file = this.#file(name, "used");
    this.#own.set(name, (this.#own.get(name) ?? 0) + 1);
    const end = async () => {
      const left = (this.#own.get(name) ?? 1) - 1;
      if (left > 0) this.#own.set(name, left);
      else {
        this.#own.delete(name);
        await rm(file, { force: true });
      }
    };
    try {
      await writeFile(file, "");
      while ((await this.#others(name, "removed")).length > 0) {
        await sleep(WAIT_MS, signal);
        signal.throwIfAborted();
      }
      return end;
    } catch (error) {
      await end();
      throw error;
    }
  }

  /** Runs `remove` if nobody else uses the worktree. `mine`: how many users of this process may. */
  async whileUnused(name: string, mine: number, remove: () => Promise<void>): Promise<void> {
    const file = this.#file(name, "removed");
    await writeFile(file, "");
    try {
      if ((this.#own.get(name) ?? 0) > mine) return;
      if ((await this.#others(name, "used")).length > 0) return;
      if ((await this.#others(name, "removed")).length > 0) return;
      await remove();
    } finally {
      await rm(file, { force: true });
    }
  }

  #file(name: string, what: "used" | "removed"): string {
    return join(this.#folder, `${name}.${what}.${processPlace()}.${pid}`);
  }

  /** The files of others that live; those of the dead are deleted. */
  async #others(name: string, what: "used" | "removed"): Promise<string[]> {
    const found: string[] = [];
    for (const file of await readdir(this.#folder)) {
      if (!file.startsWith(`${name}.${what}.`)) continue;
      const [, , place, id = ""] = file.split(".");
      if (place === processPlace() && Number(id) === pid) continue;
      if (place !== processPlace() || isAlive(Number(id))) found.push(file);
      else await rm(join(this.#folder, file), { force: true });
    }
    return found;
  }
}

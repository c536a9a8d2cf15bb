/**
 * Remembers the conversation of a preset's program for each context of each delegator, in a file of its own. Another
 * delegator never gets it, even with the same context id.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { cwd } from "node:process";
import type { Work } from "../../../client/work.ts";
import { onAbort } from "../../../util/timing.ts";

export interface Session {
  readonly id: string | undefined;
  /** Undefined forgets it. */
  readonly keep: (id: string | undefined) => Promise<void>;
}

/** The part of {@link Work} that decides which conversation it has. */
export interface Turn {
  readonly signal: AbortSignal;
  readonly delegation: Pick<Work["delegation"], "target" | "delegator" | "context_id">;
}

/** The conversations of one worker. Limit: workers in other processes may use a conversation at the same time. */
export class Sessions {
  readonly #folder: string;
  /** For each conversation in use: resolves when its last user so far is done. */
  readonly #lastUse = new Map<string, Promise<void>>();

  /** `stateHome` is XDG_STATE_HOME. */
  constructor(stateHome: string | undefined) {
    this.#folder = join(stateHome || join(homedir(), ".local", "state"), "errand", "sessions");
  }

  /** Runs `use` with the task's conversation, after the earlier tasks of the same one. Rejects if the task is aborted. */
  async use<T>(program: string, task: Turn, use: (session: Session) => Promise<T>): Promise<T> {
    const file = this.#fileOf(program, task);
    const before = this.#lastUse.get(file);
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const mine = Promise.all([before, left]).then(() => {
      if (this.#lastUse.get(file) === mine) this.#lastUse.delete(file);
    });
    this.#lastUse.set(file, mine);
    try {
      if (before) await beforeAbort(before, task.signal);
      return await use(await this.#read(file));
    } finally {
      leave();
    }
  }

  /** Programs keep conversations by folder, so the folder is a part of the name. */
  #fileOf(program: string, { delegation: { target, delegator, context_id } }: Turn): string {
    const key = JSON.stringify([program, cwd(), target, delegator, context_id]);
    return join(this.#folder, createHash("sha256").update(key).digest("hex"));
  }

  async #read(file: string): Promise<Session> {
    const text = await readFile(file, "utf8").catch(() => "");
    return {
      // It becomes an argument.
      id: /^[\w][\w.-]{0,127}$/.test(text) ? text : undefined,
      keep: async (id) => {
        if (id === undefined) return rm(file, { force: true });
        await mkdir(this.#folder, { recursive: true, mode: 0o700 });
        await writeFile(file, id, { mode: 0o600 });
      },
    };
  }
}

/** Waits for `done`, but rejects as soon as the signal aborts. */
async function beforeAbort(done: Promise<void>, signal: AbortSignal): Promise<void> {
  let off = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      off = onAbort(signal, () => reject(signal.reason));
      signal.throwIfAborted();
      void done.then(resolve);
    });
  } finally {
    off();
  }
}

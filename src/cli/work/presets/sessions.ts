/**
 * Remembers the conversation of a preset's program for each context of each delegator, in a file of its own. Another
 * delegator never gets it, even with the same context id.
 */
import { cwd } from "node:process";
import type { Work } from "../../../client/work.ts";
import { onAbort } from "../../../util/timing.ts";
import { type KeptText, keptText } from "../../kept-text.ts";

export interface Session {
  readonly id: string | undefined;
  /** Undefined forgets it. */
  readonly keep: (id: string | undefined) => Promise<void>;
  /** A text of its own beside the id, for what the worker must remember of the conversation. */
  readonly notes: KeptText;
  /** A text of its own for what the conversation has used; see conversation-usage.ts. */
  readonly usage: KeptText;
}

/** The ids that are passed to a program as an argument. */
const ARGUMENT = /^[\w][\w.-]{0,127}$/;
const ANY = /^[\s\S]*$/;

/** The part of {@link Work} that decides which conversation it continues. */
export interface Turn {
  readonly signal: AbortSignal;
  readonly delegation: Pick<Work["delegation"], "target" | "delegator" | "context_id">;
}

/** The conversations of one worker. Limit: workers in other processes may use a conversation at the same time. */
export class Sessions {
  readonly #stateHome: string | undefined;
  readonly #ids: RegExp;
  /** For each conversation in use: resolves when its last user so far is done. */
  readonly #lastUse = new Map<string, Promise<void>>();

  /** `stateHome` is XDG_STATE_HOME. An id that does not match the pattern counts as none. */
  constructor(stateHome: string | undefined, ids: RegExp = ARGUMENT) {
    this.#stateHome = stateHome;
    this.#ids = ids;
  }

  /** Runs `use` with the task's conversation, after the earlier tasks of the same one. Rejects if the task is aborted. */
  async use<T>(program: string, task: Turn, use: (session: Session) => Promise<T>): Promise<T> {
    const key = keyOf(program, task);
    const kept = keptText(this.#stateHome, "sessions", key, this.#ids);
    const notes = keptText(this.#stateHome, "sessions", [...key, "notes"], ANY);
    const usage = keptText(this.#stateHome, "sessions", [...key, "usage"], ANY);
    const { file } = kept;
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
      return await use({ id: await kept.read(), keep: kept.keep, notes, usage });
    } finally {
      leave();
    }
  }
}

/** Programs keep conversations by folder, so the folder is a part of the key. */
const keyOf = (program: string, { delegation: { target, delegator, context_id } }: Turn): string[] => [
  program,
  cwd(),
  target,
  delegator,
  context_id,
];

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

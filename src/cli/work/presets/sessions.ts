/**
 * Remembers the conversation of a preset's program for each context of each delegator, in a file of its own. Another
 * delegator never gets it, even with the same context id.
 */
import type { Work } from "../../../client/work.ts";
import { type KeptText, keptText } from "../../kept-text.ts";
import { InTurn } from "../in-turn.ts";

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
  readonly #inTurn = new InTurn();

  /** `stateHome` is XDG_STATE_HOME. An id that does not match the pattern counts as none. */
  constructor(stateHome: string | undefined, ids: RegExp = ARGUMENT) {
    this.#stateHome = stateHome;
    this.#ids = ids;
  }

  /**
   * Runs `use` with the task's conversation, after the earlier tasks of the same one. Rejects if the task is aborted.
   * `folder`: where the program works.
   */
  async use<T>(
    program: string,
    folder: string,
    task: Turn,
    use: (session: Session) => Promise<T>,
  ): Promise<T> {
    const { target, delegator, context_id } = task.delegation;
    // Programs keep conversations by folder, so the folder is a part of the key.
    const key = [program, folder, target, delegator, context_id];
    const kept = keptText(this.#stateHome, "sessions", key, this.#ids);
    const notes = keptText(this.#stateHome, "sessions", [...key, "notes"], ANY);
    const usage = keptText(this.#stateHome, "sessions", [...key, "usage"], ANY);
    return this.#inTurn.use(kept.file, task.signal, async () =>
      use({ id: await kept.read(), keep: kept.keep, notes, usage }),
    );
  }
}

/** A program for `errand work --preset`: how to start it, and how to read its output. */

export interface Preset {
  readonly program: string;
  /** How to get the program, for the error when it is missing. */
  readonly install: string;
  /** The program's arguments. The task is on stdin. */
  readonly args: (session: string | undefined, extra: readonly string[]) => readonly string[];
  /** Reads one JSON line of stdout. Returns an empty result for an unknown event. */
  readonly read: (event: unknown) => Seen;
}

export interface Seen {
  /** The id with which a later run continues the conversation. */
  readonly session?: string | undefined;
  readonly progress?: string | undefined;
  /** The answer; a later one replaces it. */
  readonly answer?: string | undefined;
  /** Why the program failed. */
  readonly error?: string | undefined;
}

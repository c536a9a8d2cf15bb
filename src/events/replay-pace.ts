/**
 * What a reader waits for before stored events are loaded for it: room for them, and a turn for each read. A held room is
 * counted until its events are delivered. Limit: live events are not paced; their buffer is bounded.
 */
export interface ReplayPace {
  /** Waits until this many bytes may be loaded. Resolves at once when the reader has left. */
  hold(bytes: number): Promise<Hold>;
  /** Waits for a turn to read; resolves to a function that ends it. Resolves at once when the reader has left. */
  turn(): Promise<() => void>;
}

export interface Hold {
  /** The bytes that were loaded. */
  set(bytes: number): void;
  /** May be called more than once. */
  release(): void;
}

/** For a caller that waits for its own turn, or reads little. */
export const UNPACED: ReplayPace = {
  hold: async () => ({ set: () => {}, release: () => {} }),
  turn: async () => () => {},
};

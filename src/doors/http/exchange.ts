/**
 * One request as a door with forms of its own sees it: what came, and who is let in. Limit: how errors look is the
 * door's business; only what it throws is shown as a problem.
 */
import type { Answer } from "./answer.ts";
import type { Call } from "./call.ts";

export interface Exchange {
  readonly method: string;
  /** Of the path's named places. */
  readonly params: Readonly<Record<string, string>>;
  /** The path behind the mount's, decoded; empty where the mount has none. */
  readonly rest: string;
  readonly query: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
  /** A header of the request, by its name in small letters. */
  readonly header: (name: string) => string | undefined;
  /** Lets the caller in and reads the body; throws `unauthenticated`, `shutting_down`, `payload_too_large`. */
  readonly enter: () => Promise<{ readonly call: Call; readonly bytes: Uint8Array }>;
}

/** Where such a door stands. */
export interface Mount {
  readonly methods: readonly string[];
  /** As Hono writes it; the metrics tell it by this. */
  readonly path: string;
  readonly handle: (exchange: Exchange) => Promise<Answer | Response>;
}

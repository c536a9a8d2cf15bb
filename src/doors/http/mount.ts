/**
 * A protocol with paths and formats of its own (A2A, MCP). Limit: it renders its own errors; only an error that it throws
 * becomes problem+json.
 */
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { EventStream } from "./event-stream.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import type { TextResponse } from "./text-response.ts";

/** An incoming request, with the parts of its URL. */
export interface MountedRequest extends IncomingRequest {
  /** The named segments of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The decoded path after the mount's prefix; empty where the mount has none. */
  readonly rest: string;
  readonly query: Readonly<Record<string, readonly string[]>>;
  /** Checks the token and reads the body; throws `unauthenticated`, `shutting_down`, `payload_too_large`. */
  readonly authenticate: () => Promise<{
    readonly request: AuthenticatedRequest;
    readonly bytes: Uint8Array;
  }>;
}

export interface Mount {
  readonly methods: readonly string[];
  /** In Hono's syntax; the metrics use it as the route's label. */
  readonly path: string;
  /** Where the methods depend on the rest of the path: those of a path, in its decoded form; empty if there is no such path. */
  readonly methodsAt?: (path: string) => readonly string[];
  readonly handle: (request: MountedRequest) => Promise<TextResponse | EventStream | Response>;
}

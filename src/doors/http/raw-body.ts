/** A request body as it arrives, for a route that stores it without reading it whole. Limit: it can be read once. */
import type { IncomingMessage } from "node:http";
import { incompleteBody } from "../../engine/errors.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { shuttingDown } from "./problem.ts";

/**
 * Throws `invalid_request` for a body that ends too early, and `shutting_down` once `signal` has aborted. When its
 * reader stops, the connection stays open for the answer, and Node discards the rest.
 */
export async function* rawBody(incoming: IncomingMessage, signal: StopSignal): AsyncGenerator<Uint8Array> {
  let hasEnded = false;
  try {
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      if (signal.aborted) throw shuttingDown();
      yield chunk;
    }
    hasEnded = incoming.complete;
  } catch (error) {
    if (error instanceof ErrandError) throw error;
  }
  if (hasEnded) return;
  throw incompleteBody();
}

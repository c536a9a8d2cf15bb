/** A request body as it arrives, for a route that stores it without reading it whole. Limit: it can be read once. */
import type { IncomingMessage } from "node:http";
import { ErrandError } from "../../schema/errors.ts";
import type { StopSignal } from "../../util/stop-signal.ts";

/**
 * Throws `invalid_request` for a body that ends too early, and `shutting_down` once `signal` has aborted. Whoever stops
 * reading leaves the connection open for the answer; Node discards the rest.
 */
export async function* rawBody(incoming: IncomingMessage, signal: StopSignal): AsyncGenerator<Uint8Array> {
  let hasEnded = false;
  try {
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      if (signal.aborted)
        throw new ErrandError("shutting_down", "This gateway is shutting down.", { retry_after_seconds: 1 });
      yield chunk;
    }
    hasEnded = incoming.complete;
  } catch (error) {
    if (error instanceof ErrandError) throw error;
  }
  if (hasEnded) return;
  throw new ErrandError("invalid_request", "The body is incomplete: the connection closed before its end.", {
    details: { issues: [{ path: "", reason: "is incomplete" }] },
  });
}

/**
 * The fetch of the SDK's calls to a server whose card was read: throws failures as RemoteError. In event streams, the SDK
 * limits the size of each event.
 */
import type { Describe } from "./foreign-answer.ts";
import { boundedText, urlOf } from "./guarded-fetch.ts";
import { RemoteError } from "./remote-error.ts";

export function callFetch(fetch: typeof globalThis.fetch, describe: Describe): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { ok, status, headers } = response;
    if (ok && headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const text = await boundedText(response);
    if (!ok) throwIfRefused(status, text, () => describe({ url: urlOf(input), status, headers, text }));
    return new Response(status === 204 ? null : text, { status, headers });
  };
}

/** Throws for an error status, unless the body is an A2A error, which the SDK reads. */
function throwIfRefused(status: number, text: string, told: () => string): void {
  if (status === 401 || status === 403) {
    throw new RemoteError("refused", `the A2A server refused the credentials (HTTP ${status})`);
  }
  if (status === 429 || status === 503) {
    throw new RemoteError("unsent", `the A2A server is overloaded (HTTP ${status})`);
  }
  if (status >= 500 || status === 408) {
    if (status === 500 && isA2aError(text)) return;
    throw new RemoteError("away", told());
  }
  if (status < 400 || !isA2aError(text)) throw new RemoteError("broken", told());
}

function isA2aError(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "error" in body;
  } catch {
    return false;
  }
}

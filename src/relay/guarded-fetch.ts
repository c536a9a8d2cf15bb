/**
 * The fetch that the SDK is given: credentials for the server's own origin alone, no redirects, answers bounded, and
 * failures as RemoteError. Limit: event streams are bounded by the SDK, one event at a time.
 */
import { RemoteError, toRemoteError } from "./remote-error.ts";

/** More than a delegation holds, with room for a history. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** As much of fetch as the relay needs. */
export type Dial = (url: URL, init: RequestInit) => Promise<Response>;

export interface GuardOptions {
  readonly fetch: Dial;
  /** Where the headers may go. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function guardedFetch({ fetch, origin, headers: own }: GuardOptions): typeof globalThis.fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    if (url.origin === origin) for (const [name, value] of Object.entries(own)) headers.set(name, value);
    let response: Response;
    try {
      response = await fetch(url, { ...init, headers, redirect: "manual" });
    } catch (error) {
      init?.signal?.throwIfAborted();
      throw toRemoteError(error);
    }
    const { ok, status } = response;
    if (ok && response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const text = await bounded(response);
    if (!ok) judge(status, text);
    return new Response(status === 204 ? null : text, { status, headers: response.headers });
  };
}

/** Returns when the body is an error of A2A's own, for the SDK to read. */
function judge(status: number, text: string): void {
  if (status === 401 || status === 403) {
    throw new RemoteError("refused", `the A2A server does not let the relay in (HTTP ${status})`);
  }
  if (status === 429 || status === 503) {
    throw new RemoteError("unsent", `the A2A server takes no more just now (HTTP ${status})`);
  }
  if (status >= 500 || status === 408) {
    if (status === 500 && isA2aError(text)) return;
    throw new RemoteError("away", `the A2A server is out of order (HTTP ${status})`);
  }
  if (status < 400 || !isA2aError(text)) {
    throw new RemoteError("broken", `the A2A server answered with HTTP ${status}`);
  }
}

function isA2aError(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "error" in body;
  } catch {
    return false;
  }
}

async function bounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > MAX_ANSWER_BYTES) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    throw toRemoteError(error);
  }
  if (bytes > MAX_ANSWER_BYTES) throw new RemoteError("broken", "the A2A server's answer is too large");
  return text + decoder.decode();
}

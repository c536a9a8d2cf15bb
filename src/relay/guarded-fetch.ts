/**
 * The fetch that the SDK uses: it sends credentials only to the server's own origin, follows no redirects, limits the
 * size of answers, and throws failures as RemoteError. In event streams, the SDK limits the size of each event.
 */
import { RemoteError, toRemoteError } from "./remote-error.ts";

/** The size limit of an answer: above that of a delegation, because a task also has a history. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The part of fetch that the relay needs. */
export type FetchFunction = (url: URL, init: RequestInit) => Promise<Response>;

export interface GuardOptions {
  readonly fetch: FetchFunction;
  /** The only origin that gets the headers. */
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
    if (!ok) throwIfRefused(status, text);
    return new Response(status === 204 ? null : text, { status, headers: response.headers });
  };
}

/** Throws for an error status, unless the body is an A2A error, which the SDK reads. */
function throwIfRefused(status: number, text: string): void {
  if (status === 401 || status === 403) {
    throw new RemoteError("refused", `the A2A server refused the credentials (HTTP ${status})`);
  }
  if (status === 429 || status === 503) {
    throw new RemoteError("unsent", `the A2A server is overloaded (HTTP ${status})`);
  }
  if (status >= 500 || status === 408) {
    if (status === 500 && isA2aError(text)) return;
    throw new RemoteError("away", `the A2A server failed (HTTP ${status})`);
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

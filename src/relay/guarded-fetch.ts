/**
 * The innermost fetch of all calls to an A2A server: it sends credentials only to the server's own origin and follows no
 * redirects. `boundedText` limits the size of answers.
 */
import { startOf } from "../util/text.ts";
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

/** Sends credentials only to their origin, follows no redirects, and throws failures as RemoteError. */
export function guardedFetch({ fetch, origin, headers: own }: GuardOptions): typeof globalThis.fetch {
  return async (input, init) => {
    const url = urlOf(input);
    const headers = new Headers(init?.headers);
    if (url.origin === origin) for (const [name, value] of Object.entries(own)) headers.set(name, value);
    try {
      return await fetch(url, { ...init, headers, redirect: "manual" });
    } catch (error) {
      init?.signal?.throwIfAborted();
      throw toRemoteError(error);
    }
  };
}

export const urlOf = (input: string | URL | Request): URL =>
  new URL(input instanceof Request ? input.url : input);

/** The whole body. Throws {@link RemoteError}. */
export async function boundedText(response: Response): Promise<string> {
  const { text, isWhole } = await startOf(response, MAX_ANSWER_BYTES).catch((error: unknown) => {
    throw toRemoteError(error);
  });
  if (!isWhole) throw new RemoteError("broken", "the A2A server's answer is too large");
  return text;
}

/** The value, if the text is a JSON object. */
export function jsonObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

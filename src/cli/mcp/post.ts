/**
 * Sends an MCP message to the broker by POST. Redirects are not followed, so that the token is sent to no other server.
 */
import { connectionError, noAnswer } from "../../client/connection-errors.ts";
import { environmentFetch } from "../../client/environment-fetch.ts";
import { ErrandApiError } from "../../client/errors.ts";
import type { KnownBroker } from "../../client/known-broker.ts";
import { notTheBroker } from "../../client/not-the-broker.ts";
import { startOf } from "../../util/text.ts";
import type { TimeLimit } from "../../util/timing.ts";
import type { Target } from "../discover.ts";

/** The broker that `known` stands for. */
export interface KnownTarget extends Target {
  readonly known: KnownBroker;
}

/** Sends a message to the broker. Throws an {@link ErrandApiError} for a failed connection, or an answer of another. */
export async function post(
  { url, token, known }: KnownTarget,
  headers: Readonly<Record<string, string>>,
  body: string,
  limit: TimeLimit,
): Promise<Response> {
  try {
    const response = await environmentFetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        ...headers,
      },
      body,
      redirect: "manual",
      signal: limit.signal,
    });
    if (known.sent(response)) return response;
    const { text } = await startOf(response, SHOWN_BYTES);
    throw notTheBroker({ url, response, text, known, token, mayComeBack: true });
  } catch (error) {
    throw toError(url, error, limit);
  }
}

const SHOWN_BYTES = 2_000;

/** Yields the same parts, and throws an {@link ErrandApiError} if the connection fails before the last one. */
export async function* reading(
  parts: AsyncGenerator<string>,
  url: string,
  limit: TimeLimit,
): AsyncGenerator<string> {
  for (;;) {
    const next = await parts.next().catch((error: unknown) => {
      throw toError(url, error, limit);
    });
    if (next.done === true) return;
    yield next.value;
  }
}

const toError = (url: string, error: unknown, limit: TimeLimit): ErrandApiError =>
  limit.expired
    ? noAnswer(url, error)
    : error instanceof ErrandApiError
      ? error
      : connectionError(url, error, true);

/**
 * A message of MCP as a POST to the broker. Limit: redirects are not followed, so that the token goes nowhere else.
 */
import type { ErrandApiError } from "../../client/errors.ts";
import { failed, noAnswer } from "../../client/failures.ts";
import type { TimeLimit } from "../../util/timing.ts";
import type { Target } from "../discover.ts";

/** A message for the broker; what fails on the way is thrown in our words. */
export async function post(
  { url, token }: Target,
  headers: Readonly<Record<string, string>>,
  body: string,
  limit: TimeLimit,
): Promise<Response> {
  try {
    return await fetch(`${url}/mcp`, {
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
  } catch (error) {
    throw lost(url, error, limit);
  }
}

/** The same parts; what breaks while they are read is told in our words. */
export async function* reading(
  parts: AsyncGenerator<string>,
  url: string,
  limit: TimeLimit,
): AsyncGenerator<string> {
  for (;;) {
    const next = await parts.next().catch((error: unknown) => {
      throw lost(url, error, limit);
    });
    if (next.done === true) return;
    yield next.value;
  }
}

const lost = (url: string, error: unknown, limit: TimeLimit): ErrandApiError =>
  limit.expired ? noAnswer(url) : failed(url, error, true);

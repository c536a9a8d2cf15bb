/** Calls a broker's REST API as the operator, for scripts that run against any build. */

export const OPERATOR = "operator-token-for-tests";

/** Sends one request; resolves to the status and the parsed body, whatever the status is. */
export async function send(url, method, path, body, headers = {}, timeoutMs = 30_000) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${OPERATOR}`,
      accept: "application/json",
      "content-type": "application/json",
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

/** Returns a function that sends a request to this broker, resolves to the body, and throws for an error. */
export function callerOf(url) {
  return async (method, path, body, headers) => {
    const answer = await send(url, method, path, body, headers);
    if (answer.status < 400) return answer.body;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
}

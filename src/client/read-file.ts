/**
 * Reads a file of the broker, and continues where a broken connection ended. Limit: nothing is loaded from other servers,
 * because the token is for the broker.
 */
import { fileOfUrl } from "../schema/file-url.ts";
import { backoffMs, sleep, TimeLimit } from "../util/timing.ts";
import { ErrandApiError, localError } from "./errors.ts";
import { type Http, route } from "./http.ts";

const HEAD_MS = 15_000;
/** A connection that is silent for longer is dead. */
const SILENCE_MS = 30_000;

/**
 * The path at this broker. Messages have URLs of delegations, by whatever name their sender knows the broker. Your own files
 * only have this broker's: another's URL must not lead to them.
 */
function pathOf(http: Http, url: string): string {
  const { file_id, delegation_id } = fileOfUrl(url) ?? {};
  const isOwn = url.startsWith("/") || url.startsWith(`${http.url}/`);
  if (file_id === undefined || (delegation_id === undefined && !isOwn)) {
    throw localError({
      code: "invalid_request",
      category: "PROTOCOL",
      detail: `${url} is not a file of the broker`,
      recovery: "Load it from its own server. The token is only for the broker.",
    });
  }
  return delegation_id === undefined
    ? route`/v1/files/${file_id}`
    : route`/v1/delegations/${delegation_id}/files/${file_id}`;
}

const isAtEnd = (error: unknown, at: number): boolean =>
  error instanceof ErrandApiError && error.code === "range_not_satisfiable" && error.details?.size === at;

/** `url`: as in the part. */
export async function* readFile(
  http: Http,
  url: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
  const path = pathOf(http, url);
  let at = 0;
  let giveUpAt: number | undefined;
  for (let failures = 0; ; failures += 1) {
    const limit = new TimeLimit(HEAD_MS, signal);
    try {
      for await (const chunk of bytesFrom(http, path, at, limit)) {
        at += chunk.length;
        giveUpAt = undefined;
        yield chunk;
      }
      return;
    } catch (error) {
      // A connection broke after the last byte, and nothing had said how many there are.
      if (isAtEnd(error, at)) return;
      const failure = at > 0 && !(error instanceof ErrandApiError) ? http.toError(error, limit) : error;
      if (!http.isTemporary(failure)) throw failure;
      giveUpAt ??= performance.now() + http.retryForMs;
      const delayMs = backoffMs(failures, failure.retryAfterMs);
      if (performance.now() + delayMs > giveUpAt) throw failure;
      http.onRetry?.(failure, delayMs);
      await sleep(delayMs, signal);
    } finally {
      limit.close();
    }
  }
}

async function* bytesFrom(
  http: Http,
  path: string,
  at: number,
  limit: TimeLimit,
): AsyncGenerator<Uint8Array, void> {
  const headers = { accept: "*/*", ...(at > 0 && { range: `bytes=${at}-` }) };
  const response = await http.open({ path, headers }, limit);
  const length = Number(response.headers.get("content-length"));
  // Something on the way may have dropped the range.
  let skip = response.status === 206 ? 0 : at;
  const reader = response.body?.getReader();
  let received = 0;
  try {
    for (;;) {
      // Only the wait for the broker counts as silence, not the time that the consumer takes.
      limit.restart(SILENCE_MS);
      const chunk = await reader?.read().catch((error: unknown) => {
        throw http.toError(error, limit);
      });
      limit.restart(Number.POSITIVE_INFINITY);
      if (!chunk || chunk.done) break;
      received += chunk.value.length;
      const value = chunk.value.subarray(skip);
      skip = Math.max(0, skip - chunk.value.length);
      if (value.length > 0) yield value;
    }
  } finally {
    // A stream that has failed or ended cannot be canceled.
    reader?.cancel().catch(() => undefined);
  }
  if (received < length) throw http.toError(new TypeError("the connection ended too early"), limit);
}

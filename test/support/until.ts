/**
 * Waits for a condition instead of a time. It checks less often the longer it waits, because most probes are requests.
 * Limit: it checks every 10 to 50 ms, so it cannot show the order of faster events.
 */
import { setTimeout as sleep } from "node:timers/promises";

const LEAST_MS = 10;
const MOST_MS = 50;
/** The next pause, in proportion to the time waited so far. */
const SHARE = 0.1;

/** Resolves with the first result that is not null, undefined or false; a probe that throws is called again. */
export async function until<T>(
  probe: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly what?: string } = {},
): Promise<NonNullable<T>> {
  const { timeoutMs = 50_000, what = "the condition" } = options;
  const startedAt = Date.now();
  for (;;) {
    let cause: unknown;
    try {
      const answer = await probe();
      if (answer !== null && answer !== undefined && answer !== false) return answer;
    } catch (error) {
      cause = error;
    }
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`${what} did not come true in ${timeoutMs} ms`, { cause });
    await sleep(Math.min(Math.max(LEAST_MS, waitedMs * SHARE), MOST_MS));
  }
}

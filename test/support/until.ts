/** Waits for a condition instead of a time. Limit: checks every 10 ms, so it cannot show the order of faster events. */
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves with the first result that is not null, undefined or false; a probe that throws is called again. */
export async function until<T>(
  probe: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly what?: string } = {},
): Promise<NonNullable<T>> {
  const { timeoutMs = 50_000, what = "the condition" } = options;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const answer = await probe();
      if (answer !== null && answer !== undefined && answer !== false) return answer;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > deadline) throw new Error(`${what} did not come true in ${timeoutMs} ms`, { cause });
    await sleep(10);
  }
}

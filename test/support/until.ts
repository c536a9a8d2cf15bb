/** Waits for a condition instead of a time. Limit: polls every 10 ms, so it tells nothing about order below that. */
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves with the first answer that is neither null, undefined nor false; a throwing probe is asked again. */
export async function until<T>(
  probe: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly what?: string } = {},
): Promise<NonNullable<T>> {
  const { timeoutMs = 20_000, what = "the condition" } = options;
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

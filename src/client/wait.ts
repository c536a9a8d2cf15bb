/** Waits for a delegation's result or question: sends long-poll requests, one after the other. */
import { type Delegation, isPending, LIVE_STATES } from "../schema/delegation.ts";
import { pauseIfEarly, TimeLimit } from "../util/timing.ts";
import type { GetOptions, WaitOptions } from "./delegator-options.ts";
import { type ErrandApiError, localError } from "./errors.ts";
import { durationText } from "./words.ts";

/** Below the idle timeout of common proxies. */
const HOLD_SECONDS = 25;
/** How late the last answer may be before the wait gives up on it. */
const GRACE_MS = 1000;

/** `get` reads the delegation and waits on the broker for `waitSeconds`. */
export async function waitForResult(
  id: string,
  { timeoutSeconds = Number.POSITIVE_INFINITY, signal }: WaitOptions,
  get: (options: GetOptions) => Promise<Delegation>,
): Promise<Delegation> {
  const endsAt = performance.now() + timeoutSeconds * 1000;
  const limit = new TimeLimit(timeoutSeconds * 1000 + GRACE_MS, signal);
  try {
    for (;;) {
      const askedAt = performance.now();
      const holdSeconds = Math.min(HOLD_SECONDS, Math.max(0, (endsAt - askedAt) / 1000));
      const delegation = await get({ waitSeconds: holdSeconds, signal: limit.signal });
      if (!isPending(delegation.state)) return delegation;
      if (performance.now() >= endsAt) throw waitRanOut(id, timeoutSeconds, delegation.state);
      await pauseIfEarly(askedAt, limit.signal);
    }
  } catch (error) {
    throw limit.expired ? waitRanOut(id, timeoutSeconds) : error;
  } finally {
    limit.close();
  }
}

function waitRanOut(id: string, timeoutSeconds: number, state = LIVE_STATES.join(" or ")): ErrandApiError {
  return localError({
    code: "wait_ran_out",
    category: "TIMEOUT",
    detail: `${id} is not finished after ${durationText(timeoutSeconds * 1000)} (${state})`,
    recovery: "The delegation continues: wait again, or cancel it.",
    retryable: true,
  });
}

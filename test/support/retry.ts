/**
 * Repeats a call that failed because of a lost connection or a 503. The caller must only pass calls that are safe to
 * repeat.
 */
import type { Answer } from "./broker.ts";
import { until } from "./until.ts";

export const retryUntilAnswered = (call: () => Promise<Answer>, timeoutMs = 20_000): Promise<Answer> =>
  until(
    async () => {
      const answer = await call();
      return answer.status === 503 ? null : answer;
    },
    { timeoutMs, what: "an answer" },
  );

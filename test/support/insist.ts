/** Sends again what came to nothing: a lost connection, a 503. Limit: safe to repeat is what the caller sends. */
import type { Answer } from "./broker.ts";
import { until } from "./until.ts";

export const insist = (call: () => Promise<Answer>, timeoutMs = 20_000): Promise<Answer> =>
  until(
    async () => {
      const answer = await call();
      return answer.status === 503 ? null : answer;
    },
    { timeoutMs, what: "an answer" },
  );

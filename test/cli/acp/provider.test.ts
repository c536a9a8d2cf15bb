/** Errors of agents that are about their provider: no failure of the task, so the work returns and the worker pauses. */
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { type Step, say, setup } from "./agent.ts";

const refused = (code: number, message: string, data?: unknown): Step => ({ fail: { code, message, data } });

describe("the work returns, and the worker pauses, if the agent answers a prompt with", () => {
  test.each<readonly [string, Step, RegExp]>([
    ["429 as its code", refused(429, "Rate limit exceeded."), /has reached its limit \(429\)$/],
    ["401 as its code", refused(401, "no"), /is not signed in, .* \(401\)$/],
    [
      "a key that is not valid",
      refused(400, "API key not valid. Please pass a valid API key."),
      /is not signed in, or may not use the provider/,
    ],
    [
      "a status in its words",
      refused(-32603, "Internal error", { details: "unexpected status 429 Too Many Requests" }),
      /has reached its limit \(429\)$/,
    ],
    [
      "a limit in its words",
      refused(-32603, "Internal error", "You've hit your usage limit."),
      /has reached its limit$/,
    ],
    ["no sign-in", refused(-32000, "Authentication required"), /is not signed in/],
  ])("%s", async (_, step, reason) => {
    const { delegate, api } = await setup({ turns: [[say("Half"), step]] });
    const id = await delegate();
    const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
    expect(paused.reason).toMatch(reason);
    expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
  });
});

test.each<readonly [string, Step]>([
  ["an error of its own", refused(500, "the tool crashed")],
  ["what it says about a task", refused(-32603, "Internal error: port 429 is in use")],
])("%s fails the delegation", async (_, step) => {
  const { delegate, ended } = await setup({ turns: [[step]] });
  expect((await ended(await delegate())).error).toMatchObject({ code: "command_failed" });
});

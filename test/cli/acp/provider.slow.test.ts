/** Errors of agents that are about their provider: no failure of the task, so the work returns and the worker pauses. */
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { held, MODES, type Step, say, setup, touch } from "./agent.ts";

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
      "a status under another name",
      refused(-32603, "Internal error", { message: "unexpected status 503 Service Unavailable" }),
      /is overloaded \(503\)$/,
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

test("a turn that the agent reports as failed beside its answer is no answer", async () => {
  const failure = { category: "service", severity: "error", title: "stream error: it was cut" };
  const prompted = { _meta: { jetbrains: { air: { version: 1, sessionFailure: failure } } } };
  const { delegate, ended, log } = await setup({ prompted, turns: [[say("stream error: it was cut")]] });
  expect((await ended(await delegate())).error).toMatchObject({
    code: "command_failed",
    message: "stream error: it was cut",
  });
  const initialize = log().find(({ method }) => method === "initialize");
  expect(Object(initialize?.params).clientCapabilities._meta.jetbrains.air.capabilities).toEqual([
    "sessionFailure",
  ]);
});

test("an error that Copilot says in the place of its model is no answer", async () => {
  const turns = [[say("Error: 503 Overloaded")]];
  const used = { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } };
  const late = await setup({ name: "Copilot", prompted: used, turns });
  expect((await late.ended(await late.delegate())).error).toMatchObject({
    code: "command_failed",
    message: "Error: 503 Overloaded",
  });
  const { delegate, api } = await setup({ name: "Copilot", turns });
  await delegate();
  const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
  expect(paused.reason).toMatch(/is overloaded \(503\)$/);
});

test("Copilot goes on after a denial, with which it ends the turn", async () => {
  const turns = [[touch("1"), say("Info: Operation cancelled by user")], [say("Without it.")]];
  const { approvals } = held([{ decision: "deny" }]);
  const { delegate, ended } = await setup({ name: "Copilot", modes: MODES, turns }, { approvals });
  expect((await ended(await delegate())).reply.parts).toEqual([{ text: "Without it." }]);
});

test.each<readonly [string, Step]>([
  ["an error of its own", refused(500, "the tool crashed")],
  ["what it says about a task", refused(-32603, "Internal error: port 429 is in use")],
])("%s fails the delegation", async (_, step) => {
  const { delegate, ended } = await setup({ turns: [[step]] });
  expect((await ended(await delegate())).error).toMatchObject({ code: "command_failed" });
});

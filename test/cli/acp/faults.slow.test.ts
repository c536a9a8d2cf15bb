/** Agents that fail, break the protocol or do not end, and what ends them. */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";
import {
  broker,
  got,
  held,
  MODES,
  type Script,
  type Step,
  say,
  scripted,
  setup,
  touch,
  work,
} from "./agent.ts";

/** Of an agent that does not start, or opens no session; others get the time that they need. */
const limitsOf = ({ start, deafNew }: Script) => ({
  startTimeoutMs: "silent" in Object(start) ? 100 : 30_000,
  openTimeoutMs: deafNew === true ? 100 : 30_000,
});

const isGone = (pid: number | undefined) =>
  until(() => !existsSync(`/proc/${pid}`), { what: "the end of the process" });

describe("a turn that is not done is never completed, and ends no other work:", () => {
  const said = say("Half of it");
  const internal = { code: -32603, message: "Internal error", data: { details: "no disk" } };
  type Case = readonly [code: string, turn: readonly Step[], error?: object];
  const goesOn: readonly Case[] = [
    ["model_refused", [said, { stop: "refusal" }], { message: "Half of it", retryable: false }],
    ["token_limit", [said, { stop: "max_tokens" }], { retryable: false }],
    ["turn_limit", [said, { stop: "max_turn_requests" }], { retryable: false }],
    ["agent_canceled", [said, { stop: "cancelled" }]],
    ["empty_answer", [{ stop: "end_turn" }]],
    ["command_failed", [{ fail: internal }], { message: "Internal error: no disk" }],
  ];
  const ends: readonly Case[] = [
    ["command_failed", [{ exit: 3 }], { message: "out of luck" }],
    ["command_failed", [{ exit: 0 }], { message: "scripted ended in the middle of its work\nout of luck" }],
    ["command_failed", [{ kill: true }], { message: "killed by SIGKILL" }],
    [
      "agent_protocol_error",
      [{ megabyte: true }, { hang: true }],
      { message: expect.stringContaining("without a line end") },
    ],
    [
      "agent_protocol_error",
      [{ answer: { stopReason: 7 } }],
      { message: expect.stringContaining("its answer to session/prompt") },
    ],
  ];
  test.each([
    ["the process goes on", goesOn, 1],
    ["the next delegation has a new process", ends, ends.length + 1],
  ])("%s", async (_, cases, processes) => {
    const turns = cases.flatMap(([, turn]) => [turn, [say("well")]]);
    const { delegate, ended, log } = await setup({ turns });
    for (const [code, turn, error] of cases) {
      const done = await ended(await delegate());
      expect(done, JSON.stringify(turn)).toMatchObject({ state: "failed", error: { code, ...error } });
      if (turn.includes(said)) expect(done.reply.parts).toEqual([{ text: "Half of it" }]);
      expect((await ended(await delegate())).reply?.parts).toEqual([{ text: "well" }]);
    }
    expect(new Set(log().map(({ pid }) => pid)).size).toBe(processes);
  });
});

test("what an agent prints besides messages, calls of unknown methods and second answers change nothing", async () => {
  const noise =
    'Debugger attached.\n\n{"no": json\n["a batch"]\n{"jsonrpc":"2.0","method":"session/update","params":7}\n';
  const { delegate, ended, log } = await setup({
    start: { print: "A warning at the start\n" },
    turns: [
      [{ raw: noise }, { call: "fs/read_text_file" }, { call: "x/y" }, say("fine"), { twice: true }],
      [say("again")],
    ],
  });
  const first = await ended(await delegate());
  expect([first.error?.message ?? null, first.reply?.parts]).toEqual([null, [{ text: "fine" }]]);
  expect((await ended(await delegate())).reply.parts).toEqual([{ text: "again" }]);
  const called = log().filter(({ method }) => method === "called");
  expect(called.map(({ answer }) => answer)).toEqual([{ code: -32601 }, { code: -32601 }]);
});

describe("the work returns, and the worker pauses, if the agent", () => {
  test.each([
    ["never answers", { start: { silent: true } }, /did not answer within 100 ms \(--acp-start-timeout\)$/],
    [
      "ends at its start",
      { start: { exit: 1, says: "no config" } },
      /ended with exit status 1 before it spoke the protocol$/,
    ],
    ["speaks another version", { protocolVersion: 9 }, /speaks version 9 of the protocol, not 1$/],
    [
      "opens no session",
      { deafNew: true },
      /^the agent opened no conversation within 100 ms \(--acp-start-timeout\)$/,
    ],
    [
      "is not signed in",
      { refuseNew: { code: -32000, message: "Authentication required" } },
      /^scripted is not signed in/,
    ],
  ])("%s", async (_, script, reason) => {
    const { delegate, api, log } = await setup(script, limitsOf(script));
    const id = await delegate();
    const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
    expect(paused.reason).toMatch(reason);
    expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
    if ("start" in script) await isGone(log()[0]?.pid);
  });

  test("cannot be started", async () => {
    const agent = scripted({});
    const { url, delegate, api } = await broker();
    work(url, { ...agent, command: ["/no/such/agent"] });
    await delegate();
    const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
    expect(paused.reason).toBe("cannot start /no/such/agent (ENOENT)");
  });
});

describe("a cancel", () => {
  const call = (status: string): Step => ({
    update: { sessionUpdate: "tool_call", toolCallId: "t", title: "make", status },
  });
  test.each([
    ["goes on with other work", "completed", 1],
    ["is ended if a tool may still run", "in_progress", 2],
  ])("reaches the agent, which ends its turn and %s", async (_, status, processes) => {
    const agent = await setup({ turns: [[call(status), { hang: true }], [say("next")]] });
    const id = await agent.delegate();
    await until(async () => (await agent.api.get(id)).body.progress?.message === "make");
    await agent.api.cancel(id);
    await got(agent, "session/cancel");
    const next = await agent.ended(await agent.delegate());
    expect(next.reply.parts).toEqual([{ text: "next" }]);
    expect((await agent.api.get(id)).body.state).toBe("canceled");
    expect(agent.methods().filter((one) => one === "start")).toHaveLength(processes);
  });

  test("answers an open permission with cancelled; an agent that is deaf to it is ended", async () => {
    const agent = scripted({ modes: MODES, turns: [[touch("1"), { deaf: true }], [say("next")]] });
    const { url, api, delegate, ended } = await broker();
    // The question is held: it has no answer, and the lease stays.
    work(url, agent, {
      approvals: () => ({ ask: () => new Promise(() => undefined), use: async () => "first" }),
    });
    const id = await delegate();
    await until(async () => (await api.get(id)).body.progress?.message === "touch a.txt");
    await api.cancel(id);
    await got(agent, "outcome");
    expect(agent.log().find(({ method }) => method === "outcome")?.outcome).toEqual({ outcome: "cancelled" });
    await isGone(agent.log()[0]?.pid);
    expect((await ended(await delegate())).reply.parts).toEqual([{ text: "next" }]);
  });
});

test("a follow-up is the next prompt of the same conversation", async () => {
  const agent = scripted({ modes: MODES, turns: [[touch("1"), say("first")], [say("second")]] });
  const { url, api, delegate, ended } = await broker();
  const id = await delegate();
  const { approvals } = held([{ decision: "approve" }]);
  // The turn ends after the follow-up has come.
  work(url, agent, {
    approvals: (task, notes) => ({
      ...approvals(task, notes),
      ask: async (requests) => {
        await new Promise<void>((resolve) => task.onMessage(() => resolve()));
        return approvals(task, notes).ask(requests);
      },
    }),
  });
  await got(agent, "session/prompt");
  await api.message(id, "and b.txt");
  const done = await ended(id);
  expect(done.reply.parts).toEqual([{ text: "second" }]);
  const prompts = agent.log().filter(({ method }) => method === "session/prompt");
  expect(prompts.map(({ params }) => Object(params).prompt[0].text).at(-1)).toBe("and b.txt");
  expect(new Set(prompts.map(({ params }) => Object(params).sessionId)).size).toBe(1);
});

test.each([
  ["timeout", { timeoutMs: 300 }, "ran longer than"],
  ["idle-timeout", { idleTimeoutMs: 300 }, "printed nothing for"],
])("--%s stops a turn, and the agent ends", async (_, limits, words) => {
  const { delegate, ended, log } = await setup({ turns: [[{ deaf: true }]] }, { limits });
  const { error } = await ended(await delegate());
  expect(error).toMatchObject({ code: "command_timeout", message: expect.stringContaining(words) });
  await isGone(log()[0]?.pid);
});

test("a worker that stops returns the work without an attempt, and its agent ends", async () => {
  const { delegate, stop, api, ...agent } = await setup({ turns: [[{ deaf: true }]] });
  const id = await delegate();
  await got(agent, "session/prompt");
  await stop();
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
  await isGone(agent.log()[0]?.pid);
});

test("errand work --acp runs it; its options need it", async () => {
  const agent = scripted({ modes: MODES, turns: [[say("by the command")]] });
  const { url, delegate, ended } = await broker();
  const id = await delegate();
  const args = ["work", "--agent", "coder", "--once", "--acp", "--", ...agent.command];
  const env = { url, token: "operator-token-for-tests" };
  const { code } = await run(args, {
    env,
    childEnv: { PATH: process.env.PATH, XDG_STATE_HOME: agent.folder },
  });
  expect(code).toBe(0);
  expect((await ended(id)).reply.parts).toEqual([{ text: "by the command" }]);
  expect(agent.log().find(({ method }) => method === "initialize")?.params).toMatchObject({
    protocolVersion: 1,
    clientCapabilities: { elicitation: { form: {}, url: {} } },
    clientInfo: { name: "errand", version: "1.2.3" },
  });
  const alone = await run(["work", "--agent", "coder", "--acp-mode", "default", "--", "true"], { env });
  expect([alone.code, alone.stderr]).toEqual([64, expect.stringContaining("require --acp")]);
});

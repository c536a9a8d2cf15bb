/** `errand work --preset claude`: runs that are not done, what ends them, and conversations that are gone. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { brokerApprovals } from "../../../src/cli/work/acp/approvals.ts";
import { until } from "../../support/until.ts";
import { broker } from "../acp/agent.ts";
import { run as cli } from "../fake-host.ts";
import { run, type Step, say, scripted, setup, work } from "./program.ts";

const isGone = (pid: number | undefined) =>
  until(() => !existsSync(`/proc/${pid}`), { what: "the end of the process" });

test.each<[code: string, turn: readonly Step[], message: string]>([
  [
    "permission_denied",
    [say("Half"), { result: { permission_denials: [{ tool_name: "Bash", tool_input: { command: "ls" } }] } }],
    "Bash ls",
  ],
  ["approval_needed", [{ result: { stop_reason: "tool_deferred", deferred_tool_use: {} } }], "put it off"],
  ["empty_answer", [{ result: {} }], "without an answer"],
  [
    "budget_limit",
    [say("Half"), { result: { subtype: "error_max_budget_usd", is_error: true } }],
    "has spent",
  ],
  ["command_failed", [say("Half"), { exit: 3 }], "exit status 3"],
  ["agent_protocol_error", [{ megabyte: true }, { hang: true }], "without a line end"],
])("a run that is not done is never completed: %s", async (code, turn, message) => {
  const { begin } = await setup({ turns: [turn] });
  expect(await begin()).toMatchObject({
    state: "failed",
    error: { code, message: expect.stringContaining(message) },
  });
});

test("a conversation is continued; one that is gone begins anew, and the progress says so", async () => {
  const { begin, folder, log } = await setup({ turns: [[say("one")], [say("two")], [say("three")]] });
  expect((await begin({ context_id: "c" })).usage.total).toMatchObject({ cost: 0.25, currency: "USD" });
  const second = await begin({ context_id: "c" });
  expect(second.reply.parts).toEqual([{ text: "two" }]);
  // The program counts over the conversation.
  expect(second.usage.total).toMatchObject({ cost: 0.25 });
  rmSync(join(folder, "sessions"), { recursive: true });
  const third = await begin({ context_id: "c" });
  expect(third.reply.parts).toEqual([{ text: "three" }]);
  expect(third.progress.message).toContain("The conversation of this context is gone; a new one begins.");
  const resumes = log("start").map(({ args }) => String(args).includes("--resume"));
  expect(resumes).toEqual([false, true, true, false]);
});

test("it works in the folder of its worktree", async () => {
  const workspace = {
    folder: realpathSync(mkdtempSync(join(tmpdir(), "errand-workspace-"))),
    isWorktree: true,
  };
  onTestFinished(() => rmSync(workspace.folder, { recursive: true }));
  const { begin, log } = await setup({ turns: [[say("one")]] }, { workspace });
  await begin();
  expect(log("start")).toMatchObject([{ cwd: workspace.folder }]);
});

test("a conversation that is gone while its question was open: the task begins anew, with that word", async () => {
  const { begin, answer, folder, prompts } = await setup(
    { turns: [[run("touch a.txt")], [say("Looked.")]] },
    { parks: true },
  );
  const { id, interrupt } = await begin({ task: "make a" });
  rmSync(join(folder, "sessions"), { recursive: true });
  expect((await answer(id, interrupt.id, { decision: "approve" })).reply.parts).toEqual([
    { text: "Looked." },
  ]);
  expect(prompts()[1]).toMatch(/^make a\n\nAn earlier run of this task asked a person and was answered/);
});

test.each([
  ["timeout", { timeoutMs: 300 }, "ran longer than"],
  ["idle-timeout", { idleTimeoutMs: 300 }, "printed nothing for"],
])("--%s stops it", async (_, limits, words) => {
  const { begin, log } = await setup({ turns: [[{ hang: true }]] }, { limits });
  const { error } = await begin();
  expect(error).toMatchObject({ code: "command_timeout", message: expect.stringContaining(words) });
  await isGone(log("start")[0]?.pid);
});

describe("the process ends", () => {
  test("with a cancel", async () => {
    const { delegate, api, log } = await setup({ turns: [[{ hang: true }]] });
    const id = await delegate();
    await until(() => log("user").length > 0);
    await api.cancel(id);
    await isGone(log("start")[0]?.pid);
    expect((await api.get(id)).body.state).toBe("canceled");
  });

  test("with the worker, which returns the work without an attempt", async () => {
    const { delegate, api, log, stop } = await setup({ turns: [[{ hang: true }]] });
    const id = await delegate();
    await until(() => log("user").length > 0);
    await stop();
    expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
    await isGone(log("start")[0]?.pid);
  });
});

test.each([
  ["held", { holdMs: 0 }],
  ["parked", { parks: true }],
])("an answer that cannot be used ends the run, and no other (%s)", async (_, options) => {
  const program = scripted({ turns: [[run("touch a.txt"), say("Made.")], [run("touch a.txt")], [say("2")]] });
  const { url, api, delegate, ended } = await broker();
  const { stop } = work(url, program, options);
  const id = await delegate();
  const { interrupt } = await ended(id);
  await stop();
  const use = () => Promise.reject(new Error("the disk is full"));
  work(url, program, {
    ...options,
    settleMs: 300,
    approvals: (task, times) => ({ ...brokerApprovals(task, times), use }),
  });
  await api.answer(id, interrupt.id, { decision: "approve" });
  expect(await ended(id)).toMatchObject({
    state: "failed",
    error: { message: expect.stringContaining("the disk is full") },
  });
  expect(program.ran()).toEqual([]);
  await isGone(program.log("start").at(-1)?.pid);
});

test("a provider that refuses all work costs no approval: the next attempt goes on with it", async () => {
  const program = scripted({
    turns: [
      [run("touch a.txt")],
      [{ result: { is_error: true, api_error_status: 429 } }],
      [run("touch a.txt"), say("Made.")],
    ],
  });
  const { url, api, delegate, ended } = await broker();
  const first = work(url, program);
  const id = await delegate({ task: "make a" });
  const { interrupt } = await ended(id);
  await api.answer(id, interrupt.id, { decision: "approve" });
  await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
  await first.stop();
  work(url, program);
  expect((await ended(id)).reply.parts).toEqual([{ text: "Made." }]);
  const decided = expect.stringContaining("Bash touch a.txt: allowed once");
  expect([program.ran(), program.prompts()]).toEqual([["touch a.txt"], ["make a", decided, decided]]);
});

test("work returns, and the worker pauses, if the program cannot be started", async () => {
  const { url, delegate, api } = await broker();
  work(url, { ...scripted({ turns: [] }), program: "/no/such/claude" });
  await delegate();
  const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
  expect(paused.reason).toBe("cannot start /no/such/claude (ENOENT)");
});

test("work returns, and the worker pauses, if the hook's socket has no room in the temporary folder", async () => {
  const { url, delegate, api } = await broker();
  const program = scripted({ turns: [] });
  const long = join(program.folder, "x".repeat(80));
  mkdirSync(long);
  vi.stubEnv("TMPDIR", long);
  onTestFinished(() => void vi.unstubAllEnvs());
  work(url, program, { parks: true });
  await delegate();
  const paused = await until(async () => (await api.call("GET", "/v1/agents/coder")).body.presence?.paused);
  expect(paused.reason).toMatch(/socket is too long \(\d+ bytes\): set TMPDIR/);
});

test("errand work --preset claude runs it, with its options", async () => {
  const { folder, log } = scripted({ turns: [[say("by the preset")]] });
  const { url, delegate, ended } = await broker();
  const id = await delegate();
  const env = { url, token: "operator-token-for-tests" };
  const childEnv = { PATH: `${folder}:${process.env.PATH}`, XDG_STATE_HOME: folder };
  const options = ["--ask", "park", "--max-budget-usd", "2.50"];
  const args = [
    "work",
    "--agent",
    "coder",
    "--once",
    "--preset",
    "claude",
    ...options,
    "--",
    "--model",
    "small",
  ];
  expect((await cli(args, { env, childEnv })).code).toBe(0);
  expect((await ended(id)).reply.parts).toEqual([{ text: "by the preset" }]);
  const given = String(log("start")[0]?.args).replaceAll(/\/[^,]+/g, "PATH");
  expect(given).toBe(
    "-p,--input-format,stream-json,--output-format,stream-json,--add-dir,PATH,--verbose,--replay-user-messages," +
      "--permission-prompt-tool,stdio,--settings,PATH,--max-budget-usd,2.5,--model,small",
  );
  const alone = await cli(["work", "--agent", "coder", "--max-budget-usd", "1", "--", "true"], { env });
  expect([alone.code, alone.stderr]).toEqual([64, expect.stringContaining("requires --preset claude")]);
});

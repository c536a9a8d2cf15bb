/** `errand work --acp`: answers, conversations, modes, files. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { unapproved } from "../../../src/cli/work/acp/mode.ts";
import type { Usage } from "../../../src/cli/work/acp/usage.ts";
import { as } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";
import { broker, got, held, MODES, type Script, say, scripted, setup, touch, work } from "./agent.ts";

const promptsOf = (log: { method: string; params?: unknown }[]) =>
  log.filter(({ method }) => method === "session/prompt").map(({ params }) => Object(params).prompt);

test("the answer is what the agent says after its last tool call, without warnings", async () => {
  const tool = {
    sessionUpdate: "tool_call",
    toolCallId: "t1",
    title: "Read a.txt",
    kind: "read",
    status: "completed",
  };
  const { delegate, ended, log, methods } = await setup({
    modes: MODES,
    turns: [
      [
        say("I look at it.", { messageId: "m1" }),
        {
          update: {
            sessionUpdate: "plan",
            entries: [{ content: "Look", priority: "high", status: "in_progress" }],
          },
        },
        { update: { sessionUpdate: "a_kind_of_next_year", x: 1 } },
        { update: tool },
        say("Warning: the model is old."),
        say("Two ", { messageId: "m2" }),
        say("Update available", { messageId: "m9", _meta: { claudeCode: { kind: "informational" } } }),
        say("words.", { messageId: "m2" }),
      ],
      [say("Again.")],
    ],
  });
  const first = await ended(await delegate({ task: "read it" }));
  expect(first.error).toBeNull();
  expect(first.reply.parts).toEqual([{ text: "Two words." }]);
  expect(first.progress).toMatchObject({ current_step: "Look", done: 0, total: 1 });
  const second = await ended(await delegate({ context_id: "other" }));
  expect(second.reply.parts).toEqual([{ text: "Again." }]);
  // One process for both, without the worker's secrets.
  expect(methods().filter((one) => one === "start")).toHaveLength(1);
  expect(log()[0]?.env).toEqual(["ERRAND_AGENT_PROCESS"]);
  expect(promptsOf(log())[0]?.[0].text).toMatch(/^read it\n/);
});

test("a result that must fit is told in the prompt, and is JSON, also in a fence", async () => {
  const result_schema = { type: "object", required: ["words"] };
  const { delegate, ended, log } = await setup({
    turns: [[say('```json\n{"words": 2}\n```')], [say("Two words.")], [say("Two words.")]],
  });
  const first = await ended(await delegate({ task: "count", result_schema }));
  expect([first.state, first.reply.parts]).toEqual(["completed", [{ data: { words: 2 } }]]);
  expect(promptsOf(log())[0]?.[0].text).toContain(
    `count\n\nYour final message must be JSON only, without any other text. It must fit this JSON Schema:\n${JSON.stringify(result_schema)}\n`,
  );
  const second = await ended(await delegate({ result_schema }));
  expect([second.error.code, second.reply.parts]).toEqual(["result_invalid", [{ text: "Two words." }]]);
  expect((await ended(await delegate())).state).toBe("completed");
  expect(promptsOf(log())[2]?.[0].text).not.toContain("JSON");
});

test("each slot has a process of its own", async () => {
  const agent = scripted({
    turns: [
      [touch("1"), say("one")],
      [touch("2"), say("two")],
    ],
  });
  const { url, delegate, ended } = await broker();
  // Neither turn ends before the other has begun.
  const { approvals } = held([{ decision: "approve" }, { decision: "approve" }]);
  const both = () => got(agent, "session/prompt", 2);
  const waiting: typeof approvals = (...given) => {
    const own = approvals(...given);
    return { ...own, ask: (requests) => both().then(() => own.ask(requests)) };
  };
  work(url, agent, { approvals: waiting }, 2);
  const ids = await Promise.all([delegate(), delegate()]);
  const ends = await Promise.all(ids.map(ended));
  expect(ends.map(({ state }) => state)).toEqual(["completed", "completed"]);
  expect(new Set(agent.log().map(({ pid }) => pid)).size).toBe(2);
});

test("files that do not fit fail the delegation, also before a question", async () => {
  const large = { put: "film.bin", bytes: 3_200_000 };
  const { delegate, ended } = await setup({
    turns: [
      [large, say("done")],
      [large, touch("1")],
    ],
  });
  for (const id of [await delegate(), await delegate()])
    expect((await ended(id)).error).toMatchObject({
      code: "output_too_large",
      message: expect.stringContaining("film.bin"),
    });
});

test("a child that a worker leaves ends with it", async () => {
  const { delegate, ended, log, stop } = await setup({ turns: [[say("done")]] });
  await ended(await delegate());
  await stop();
  const pid = log()[0]?.pid ?? 0;
  expect(() => process.kill(pid, 0)).toThrow();
});

test("files go both ways, and what the agent changed is among the artifacts", async () => {
  const file = (path: string, oldText: string | null, newText: string) => ({
    sessionUpdate: "tool_call",
    toolCallId: newText,
    title: "Edit",
    kind: "edit",
    status: "completed",
    content: [{ type: "diff", path: join(process.cwd(), path), oldText, newText }],
  });
  const used: Usage[] = [];
  const script: Script = {
    capabilities: { promptCapabilities: { embeddedContext: true } },
    prompted: { usage: { inputTokens: 7, outputTokens: 2, totalTokens: 9 } },
    turns: [
      [
        { put: "report.txt" },
        {
          update: {
            sessionUpdate: "usage_update",
            used: 50,
            size: 100,
            cost: { amount: 0.5, currency: "USD" },
          },
        },
        { update: file("src/a.ts", "one\ntwo\n", "one\n2\n") },
        { update: file("src/a.ts", "one\n2\n", "one\n3\n") },
        { update: { ...file("src/no.ts", null, "x"), status: "failed" } },
        say("done"),
      ],
    ],
  };
  const { delegate, ended, log } = await setup(script, { onUsage: (_task, usage) => void used.push(usage) });
  const raw = (text: string | Uint8Array) => Buffer.from(text).toString("base64");
  const parts = [
    { text: "edit" },
    { raw: raw("# Notes"), filename: "notes.md", mediaType: "text/markdown" },
    { raw: raw(new Uint8Array([0, 255])), filename: "a.bin", mediaType: "application/octet-stream" },
  ];
  const { artifacts, error, usage } = await ended(await delegate({ message: { parts } }));
  expect(error).toBeNull();
  const [text, notes, binary] = promptsOf(log())[0];
  expect(text.text).toMatch(/^edit\n\nFiles that came with this task:\n- \S+\/notes\.md\n- \S+\/a\.bin\n/);
  expect(notes.resource).toMatchObject({ mimeType: expect.stringContaining("text/plain"), text: "# Notes" });
  expect(binary).toMatchObject({ type: "resource_link", name: "a.bin", size: 2 });
  expect(binary.uri).toMatch(/^file:\/\/\/.*\/a\.bin$/);
  expect(artifacts.map(({ name }: { name: string }) => name)).toEqual(["report.txt", "src/a.ts.diff"]);
  expect(artifacts[1].parts[0].text).toBe("--- src/a.ts\n+++ src/a.ts\n@@ -1,2 +1,2 @@\n one\n-two\n+3");
  expect(usage.total).toEqual({
    ...{ input_tokens: 7, output_tokens: 2, cost: 0.5, currency: "USD", complete: true },
  });
  expect(used).toEqual([
    {
      ...{ input_tokens: 7, output_tokens: 2, context: { used: 50, size: 100 } },
      conversation_cost: { amount: 0.5, currency: "USD" },
    },
  ]);
});

test("in a worktree, the agent works in its folder, and git says what changed", async () => {
  const change = { type: "diff", path: "/worktree/a.txt", oldText: null, newText: "a" };
  const call = { toolCallId: "t1", title: "Edit", kind: "edit", status: "completed", content: [change] };
  const turns = [[{ update: { sessionUpdate: "tool_call", ...call } }, say("done")]];
  const workspace = { folder: "/worktree", isWorktree: true };
  const { delegate, ended, log } = await setup({ turns }, { workspace });
  expect((await ended(await delegate())).artifacts).toEqual([]);
  const opened = log().filter(({ method }) => method === "session/new");
  expect(opened.map(({ params }) => Object(params).cwd)).toEqual(["/worktree"]);
});

describe("a conversation", () => {
  const both = { loadSession: true, sessionCapabilities: { resume: {} } };
  test.each([
    ["resume", both, "session/resume"],
    ["load, without its replay", { loadSession: true }, "session/load"],
  ])("is continued by %s, and the mode is set again", async (_, capabilities, method) => {
    const turns = [[say("first")], [say("second")]];
    const agent = await setup({ capabilities, modes: MODES, turns });
    await agent.ended(await agent.delegate({ context_id: "c" }));
    // The process that has the conversation open ends.
    await agent.stop();
    work(agent.url, agent);
    const second = await agent.ended(await agent.delegate({ context_id: "c" }));
    expect(second.reply.parts).toEqual([{ text: "second" }]);
    const set = ["session/set_mode", "session/prompt"];
    expect(agent.methods().filter((one) => one.startsWith("session/"))).toEqual([
      ...["session/new", ...set],
      ...[method, ...set],
    ]);
    const modes = agent.log().filter((one) => one.method === "session/set_mode");
    expect(modes.map(({ params }) => Object(params).modeId)).toEqual(["default", "default"]);
  });

  test("that is gone is begun again, visibly, and that of another delegator is another one", async () => {
    const turns = [[say("first")], [say("second")], [say("third")]];
    const agent = await setup({ capabilities: both, modes: MODES, turns });
    await agent.ended(await agent.delegate({ context_id: "c" }));
    await agent.stop();
    rmSync(join(agent.folder, "sessions"), { recursive: true });
    const { api } = agent;
    work(agent.url, agent);
    const id = await agent.delegate({ context_id: "c" });
    const second = await agent.ended(id);
    expect(second.reply.parts).toEqual([{ text: "second" }]);
    const { events } = (await api.events(id)).body;
    expect(JSON.stringify(events)).toContain("The conversation of this context is gone; a new one begins.");
    const eve = await as(agent.url, "caller:eve");
    const third = (await eve.delegate("coder", { context_id: "c" })).body;
    await agent.ended(third.id);
    expect(agent.methods().filter((one) => one === "session/new")).toHaveLength(3);
    expect(agent.methods().filter((one) => one === "session/set_mode")).toHaveLength(3);
  });
});

describe("the mode", () => {
  const select = (values: string[], category = "mode") => ({
    ...{ id: "m", name: "Mode", category, type: "select", currentValue: values[0] },
    options: [{ group: "g", name: "G", options: values.map((value) => ({ value, name: value })) }],
  });
  test.each([
    ["agent", ["agent", "workspace-write", "agent-full-access"], "workspace-write"],
    ["autopilot", ["https://x/y#autopilot", "https://x/y#agent"], "https://x/y#agent"],
  ])("is never the default of the agent (%s) if there is one that asks", async (_, values, wanted) => {
    const { delegate, ended, log } = await setup({
      modes: MODES,
      configOptions: [select(values)],
      turns: [[say("done")]],
    });
    await ended(await delegate());
    const set = log().find(({ method }) => method === "session/set_config_option");
    expect(set?.params).toMatchObject({ configId: "m", value: wanted });
    expect(log().some(({ method }) => method === "session/set_mode")).toBe(false);
  });

  test("is left as it is if none is known, which is said once", async () => {
    const options = { configOptions: [select(["build", "plan"])], turns: [[say("one")], [say("two")]] };
    const { delegate, ended, methods, warnings } = await setup(options);
    await ended(await delegate());
    await ended(await delegate());
    expect(methods()).not.toContain("session/set_config_option");
    expect(warnings).toEqual([expect.stringContaining("this worker knows no mode of the agent")]);
  });

  test("may be chosen, with other options; a wrong one stops the worker before the prompt", async () => {
    const model = { ...select(["fast", "deep"], "model"), id: "model" };
    const script = { configOptions: [select(["default", "plan"]), model], turns: [[say("done")]] };
    const chosen = { mode: "plan", config: [["model", "deep"]] } as const;
    const { delegate, ended, log } = await setup(script, { choice: chosen });
    await ended(await delegate());
    const set = log().filter(({ method }) => method === "session/set_config_option");
    expect(set.map(({ params }) => Object(params).value)).toEqual(["plan", "deep"]);
    const other = await setup(script, { choice: { mode: "turbo", config: [] } });
    const id = await other.delegate();
    const paused = await until(
      async () => (await other.api.call("GET", "/v1/agents/coder")).body.presence?.paused,
    );
    expect(paused.reason).toBe("the agent has no mode 'turbo'; it has: default, plan");
    expect((await other.api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
    expect(other.methods()).not.toContain("session/prompt");
  });

  test.each([
    ["--acp-mode", "bypassPermissions"],
    ["--acp-mode", "acceptEdits"],
    ["--acp-mode", "agent"],
    ["--acp-config", "mode=agent-full-access"],
    ["--acp-config", "allow_all=true"],
  ])("%s %s needs a flag that says what it does", async (flag, value) => {
    const args = ["work", "--agent", "coder", "--acp", flag, value];
    const refused = await run([...args, "--", "true"]);
    expect(refused.code).toBe(64);
    expect(refused.stderr).toContain("--allow-unapproved-tools");
    // The command is looked for after the options were accepted.
    const accepted = await run([...args, "--allow-unapproved-tools", "--", "no-such-program"]);
    expect(accepted.stderr).toContain("'no-such-program' was not found");
  });
});

test("the option for the model decides nothing about approvals", () => {
  expect(unapproved({ mode: undefined, config: [["model", "fast"]] })).toBeUndefined();
  expect(unapproved({ mode: undefined, config: [["permission_mode", "bypass"]] })).toBe(
    "--acp-config permission_mode=bypass",
  );
});

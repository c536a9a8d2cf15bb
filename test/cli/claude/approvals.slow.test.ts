/** `errand work --preset claude`: what Claude Code asks, as questions of the broker, and what becomes of the answers. */
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { broker, held } from "../acp/agent.ts";
import { bash, got, run, say, scripted, setup, work } from "./program.ts";

const HOLD = { holdMs: 60_000 };
const PARK = { parks: true };
const oneAsked = { turns: [[say("I will."), run("touch a.txt"), say("Made.")]] };

test("a result that must fit is what it hands over, also after a question", async () => {
  const result_schema = { type: "object", properties: { words: { type: "integer" } } };
  const handed = { say: "Here.", result: { structured_output: { words: 5 } } };
  const { begin, answer, log, prompts } = await setup(
    { turns: [[run("wc"), handed], [handed], [say("5")]] },
    PARK,
  );
  const { id, interrupt } = await begin({ result_schema });
  const done = await answer(id, interrupt.id, { decision: "approve" });
  expect([done.state, done.reply.parts]).toEqual(["completed", [{ data: { words: 5 } }]]);
  for (const { args } of log("start"))
    expect(Object(args).join(" ")).toContain(`--json-schema ${JSON.stringify(result_schema)}`);
  expect(log("start")).toHaveLength(2);
  expect((await begin({ result_schema })).state).toBe("completed");
  const failed = await begin({ result_schema });
  expect([failed.error.code, failed.reply.parts]).toEqual(["result_invalid", [{ text: "5" }]]);
  const told = await begin({ result_schema: { type: "integer" } });
  expect(told.error.code).toBe("result_invalid");
  expect(prompts().at(-1)).toContain('It must fit this JSON Schema:\n{"type":"integer"}');
});

describe("a call whose process is held", () => {
  test("is approved, and runs in the same process", async () => {
    const { api, begin, answer, ran, log, prompts } = await setup(
      { ...oneAsked, asked: { decision_reason: "It creates a file." } },
      HOLD,
    );
    const { id, interrupt, lease } = await begin({ task: "make a" });
    expect(lease).not.toBeNull();
    expect(interrupt.requests).toMatchObject([
      {
        message: { parts: [{ text: "Bash touch a.txt\n\nIt creates a file." }] },
        action: { name: "Bash", arguments: { command: "touch a.txt" } },
        edit: true,
      },
    ]);
    // Before the reply, which does not wait for the progress of the last half second.
    await until(async () => (await api.get(id)).body.progress?.tools_used?.includes("Bash"));
    const done = await answer(id, interrupt.id, { decision: "approve" });
    expect(done.reply.parts).toEqual([{ text: "Made." }]);
    expect([ran(), prompts(), log("start")]).toEqual([
      ["touch a.txt"],
      ["make a"],
      [expect.objectContaining({ env: expect.not.arrayContaining(["ERRAND_TOKEN"]) })],
    ]);
  });

  test("runs with edited arguments, and the model is told", async () => {
    const { begin, answer, ran, prompts } = await setup(oneAsked, HOLD);
    const { id, interrupt } = await begin({ task: "make a" });
    await answer(id, interrupt.id, {
      decision: "approve",
      data: { command: "touch b.txt" },
      text: "b, please",
    });
    expect(ran()).toEqual(["touch b.txt"]);
    expect(prompts()[1]).toBe(
      `A person allowed 'Bash touch a.txt', but with other arguments, with which it runs: {"command":"touch b.txt"}. The person says: b, please`,
    );
  });

  test("is denied with the reason, which fails nothing by itself", async () => {
    const { begin, answer, ran, log } = await setup(oneAsked, HOLD);
    const { id, interrupt } = await begin();
    const done = await answer(id, interrupt.id, { decision: "deny", text: "not here" });
    expect([done.state, ran()]).toEqual(["completed", []]);
    expect(log("answered")).toMatchObject([
      { response: { behavior: "deny", message: "A person denied this, and says: not here" } },
    ]);
  });

  test("a follow-up message reaches the same turn", async () => {
    const program = scripted(oneAsked);
    const { url, api, delegate, ended } = await broker();
    const { approvals } = held([{ decision: "approve" }]);
    // The broker takes no message while it holds a question.
    const afterMessage: typeof approvals = (task, holdMs) => ({
      ...approvals(task, holdMs),
      ask: async (requests) => {
        await got(program, "user", 2);
        return approvals(task, holdMs).ask(requests);
      },
    });
    work(url, program, { approvals: afterMessage });
    const id = await delegate({ task: "make a" });
    await got(program, "user");
    await api.message(id, "and hurry");
    expect((await ended(id)).reply.parts).toEqual([{ text: "Made." }]);
    expect([program.prompts(), program.log("start").length]).toEqual([["make a", "and hurry"], 1]);
  });

  test("that is used already is asked for again, with that word", async () => {
    const { approvals, asked } = held([{ decision: "approve" }, { decision: "deny" }], ["again", "first"]);
    const { begin, ran } = await setup(oneAsked, { approvals });
    await begin();
    expect(asked.map(({ text }) => text)).toEqual([
      "Bash touch a.txt",
      expect.stringMatching(/may already have run\.\n\nBash touch a\.txt$/),
    ]);
    expect(ran()).toEqual([]);
  });

  test("is parked after its time, and its repetition runs once, edited", async () => {
    const { begin, answer, ran, log, prompts } = await setup({
      turns: [[run("touch a.txt")], [run("touch a.txt"), run("touch a.txt"), say("Twice?")]],
    });
    const { id, interrupt, lease } = await begin();
    expect(lease).toBeNull();
    const again = await answer(id, interrupt.id, { decision: "approve", data: { command: "touch b.txt" } });
    expect(prompts()[1]).toBe(
      'Continue. A person has decided what you asked:\n- Bash touch a.txt: allowed once with other arguments; ask again for exactly the same, and it runs with these: {"command":"touch b.txt"}',
    );
    expect(ran()).toEqual(["touch b.txt"]);
    expect(again.interrupt.requests[0].message.parts[0].text).toBe("Bash touch a.txt");
    await answer(id, again.interrupt.id, { decision: "deny" });
    expect(log("start").map(({ args }) => String(args).includes("--resume"))).toEqual([false, true, true]);
  });
});

describe("a call that is parked in its conversation", () => {
  test("runs after the answer, without a prompt, with what the person edited", async () => {
    const { begin, answer, ran, prompts, log, folder } = await setup(oneAsked, PARK);
    const { id, interrupt, lease } = await begin({ task: "make a" });
    expect(lease).toBeNull();
    const [first] = log("start");
    expect(first?.mode).toBe("600");
    expect(() => process.kill(first?.pid ?? 0, 0)).toThrow();
    const states = join(folder, "state", "errand", "sessions");
    const modes = readdirSync(states).map((name) => statSync(join(states, name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o600]));
    const edited = { command: "touch b.txt" };
    const done = await answer(id, interrupt.id, { decision: "approve", data: edited, text: "b, please" });
    expect(done.reply.parts).toEqual([{ text: "Made." }]);
    expect([ran(), prompts()]).toEqual([["touch b.txt"], ["make a"]]);
    expect(log("hook").at(-1)?.said).toMatchObject({
      permissionDecision: "allow",
      updatedInput: edited,
      additionalContext: expect.stringContaining("The person says: b, please"),
    });
  });

  test("runs after the answer also if an ask rule of the settings asks after the hook", async () => {
    const { begin, answer, ran, log } = await setup({ ...oneAsked, hasAskRule: true }, PARK);
    const { id, interrupt } = await begin();
    const edited = { command: "touch b.txt" };
    const done = await answer(id, interrupt.id, { decision: "approve", data: edited });
    expect([done.state, ran()]).toEqual(["completed", ["touch b.txt"]]);
    expect(log("answered")).toMatchObject([{ response: { behavior: "allow", updatedInput: edited } }]);
  });

  test("is denied after the answer, with the reason", async () => {
    const { begin, answer, ran, log } = await setup(oneAsked, PARK);
    const { id, interrupt } = await begin();
    const done = await answer(id, interrupt.id, { decision: "deny", text: "not here" });
    expect([done.state, ran()]).toEqual(["completed", []]);
    expect(log("hook").at(-1)?.said).toMatchObject({
      permissionDecision: "deny",
      permissionDecisionReason: "A person denied this, and says: not here",
    });
  });

  test("another worker that shares the folder goes on", async () => {
    const { begin, answer, ran, url, stop, log, ...program } = await setup(oneAsked, PARK);
    const { id, interrupt } = await begin();
    await stop();
    work(url, program, PARK);
    await answer(id, interrupt.id, { decision: "approve" });
    expect([ran(), log("start").length]).toEqual([["touch a.txt"], 2]);
  });

  test("that the conversation has lost is asked for again", async () => {
    const turns = [[run("touch a.txt")], [run("touch a.txt"), say("Made.")]];
    const { begin, answer, ran, prompts, folder } = await setup(
      { turns, greets: true },
      { ...PARK, goesOnMs: 3_000 },
    );
    const { id, interrupt } = await begin({ task: "make a" });
    const [conversation = ""] = readdirSync(join(folder, "sessions"));
    writeFileSync(join(folder, "sessions", conversation), "{}");
    const done = await answer(id, interrupt.id, { decision: "approve" });
    expect(done.reply.parts).toEqual([{ text: "Made." }]);
    expect([ran(), prompts()]).toEqual([["touch a.txt"], ["make a", "Continue."]]);
  });

  test.each([
    ["another run", 0, {}],
    ["the same run", HOLD.holdMs, { auto_approve: { actions: ["Bash"] } }],
  ])("a follow-up that the ended process has not read is said again, in %s", async (_, holdMs, more) => {
    const program = scripted({
      turns: [[{ queued: 1 }, run("touch a.txt"), say("Made.")], [say("Hurried.")]],
      endsWhenDeferred: true,
    });
    const { url, api, delegate, ended } = await broker();
    work(url, program, { ...PARK, holdMs });
    const id = await delegate({ task: "make a", ...more });
    await got(program, "user");
    await api.message(id, "and hurry");
    const { state, interrupt } = await ended(id);
    if (state === "input_required") await api.answer(id, interrupt.id, { decision: "approve" });
    expect((await ended(id)).state).toBe("completed");
    expect([program.ran(), program.prompts()]).toEqual([
      ["touch a.txt"],
      ["make a", "and hurry", "and hurry"],
    ]);
  });

  test("several in a turn are one question, and each runs once", async () => {
    const both = { use: [bash("touch a.txt"), bash("touch b.txt")] };
    const { begin, answer, ran, log } = await setup(
      { turns: [[both, { useOthers: true }, say("Both.")]] },
      PARK,
    );
    const { id, interrupt } = await begin();
    expect(interrupt.requests).toHaveLength(2);
    const said = log("hook").map(({ said }) => Object(said).permissionDecision);
    expect(said.sort()).toEqual(["defer", "deny"]);
    const approve = { decision: "approve" };
    const answers = Object.fromEntries(
      interrupt.requests.map((one: { request_id: string }) => [one.request_id, approve]),
    );
    await answer(id, interrupt.id, { answers });
    expect(ran().sort()).toEqual(["touch a.txt", "touch b.txt"]);
  });

  test("two that are the same have a decision each, and the kept one has its own", async () => {
    const both = { use: [bash("touch a.txt"), bash("touch a.txt")] };
    const { begin, answer, ran, log } = await setup(
      { turns: [[both, { useOthers: true }, say("Both.")]] },
      { ...PARK, ...HOLD },
    );
    const { id, interrupt } = await begin();
    const [first, second] = interrupt.requests.map(({ request_id }: { request_id: string }) => request_id);
    const edited = (name: string) => ({ decision: "approve", data: { command: `touch ${name}.txt` } });
    await answer(id, interrupt.id, { answers: { [first]: edited("kept"), [second]: edited("other") } });
    expect([ran(), log("start").length]).toEqual([["touch kept.txt", "touch other.txt"], 2]);
  });

  describe("that is not put off all the same", () => {
    const both = { use: [bash("touch a.txt"), bash("touch b.txt")] };
    const auto = { auto_approve: { actions: ["Bash"] } };

    test("is asked for, with what was denied besides", async () => {
      const turns = [[both], [both, say("Both.")]];
      const { begin, answer, ran } = await setup({ turns, ignoresDefer: "ask" }, PARK);
      const { id, interrupt } = await begin();
      const approve = { decision: "approve" };
      const answers = Object.fromEntries(
        interrupt.requests.map((one: { request_id: string }) => [one.request_id, approve]),
      );
      expect(Object.keys(answers)).toHaveLength(2);
      expect((await answer(id, interrupt.id, { answers })).state).toBe("completed");
      expect(ran().sort()).toEqual(["touch a.txt", "touch b.txt"]);
    });

    test.each([
      ["the host is asked", "ask", { state: "completed" }, 2],
      ["another hook denies it", "deny", { error: { code: "permission_denied" } }, 1],
    ])("does not keep others from running: %s", async (_, ignoresDefer, ended, count) => {
      const turns = [[both, { useDenied: true }, say("Both.")]];
      const { begin, ran, log } = await setup({ turns, ignoresDefer }, { ...PARK, ...HOLD });
      expect(await begin(auto)).toMatchObject(ended);
      expect([new Set(ran()).size, ran().length, log("start").length]).toEqual([count, count, 1]);
    });
  });

  test("a tool that needs nobody runs; one that the delegator approved in advance, too", async () => {
    const read = { name: "Read", input: { file_path: "a" } };
    const { begin, log, ran } = await setup(
      { turns: [[{ use: [read] }, run("touch a.txt"), say("ok")]] },
      PARK,
    );
    const asks = await begin({ auto_approve: { actions: ["Bash", "Read"] } });
    expect(asks.state).toBe("completed");
    expect(log("hook").map(({ said }) => Object(said).permissionDecision)).toEqual([
      undefined,
      "defer",
      "allow",
    ]);
    expect(ran()).toEqual([undefined, "touch a.txt"]);
  });

  test("an answer that an earlier run has used is asked for again", async () => {
    const { begin, api, ended, ran, url, stop, ...program } = await setup(oneAsked, PARK);
    const { id, interrupt } = await begin();
    await stop();
    const { approvals, asked } = held([{ decision: "deny" }], ["again", "first"]);
    work(url, program, { ...PARK, approvals });
    await api.answer(id, interrupt.id, { decision: "approve" });
    await ended(id);
    expect(asked.map(({ text }) => text)).toEqual([expect.stringMatching(/may already have run/)]);
    expect(ran()).toEqual([]);
  });
});

test("the change of a file is shown as a diff, by what the tool says alone", async () => {
  const input = { file_path: "/srv/a.txt", old_string: "one\ntwo", new_string: "one\nthree" };
  const { begin } = await setup({ turns: [[{ use: [{ name: "Edit", input }] }]] }, HOLD);
  const { interrupt } = await begin();
  expect(interrupt.requests[0].message.parts[0].text).toBe(
    "Edit /srv/a.txt\n\n--- /srv/a.txt\n+++ /srv/a.txt\n@@\n one\n-two\n+three",
  );
});

describe("AskUserQuestion", () => {
  const asked = {
    question: "Which color?",
    header: "Color",
    multiSelect: false,
    options: [{ label: "red", description: "like fire" }, { label: "blue" }],
  };
  const turns = [[{ use: [{ name: "AskUserQuestion", input: { questions: [asked] } }] }, say("Blue it is.")]];

  test.each([
    ["held", HOLD],
    ["parked", PARK],
  ])("is a question with its options (%s)", async (_, options) => {
    const { begin, answer, log } = await setup({ turns }, options);
    const { id, interrupt } = await begin();
    expect(interrupt.requests).toMatchObject([
      {
        message: { parts: [{ text: "Color: Which color?\n\n- red: like fire\n- blue" }] },
        options: ["red", "blue"],
      },
    ]);
    const done = await answer(id, interrupt.id, { text: "blue" });
    expect(done.state).toBe("completed");
    expect(log("ran").map(({ input }) => input)).toEqual([
      { questions: [asked], answers: { "Which color?": "blue" } },
    ]);
  });
});

test("what is too long to be shown whole is refused, and never completed", async () => {
  const { begin } = await setup({ turns: [[run(`echo ${"x".repeat(70_000)}`), say("Done.")]] }, HOLD);
  expect(await begin()).toMatchObject({ state: "failed", error: { code: "permission_denied" } });
});

/** What an agent asks, as questions of the broker, and what becomes of the answers. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { got, held, MODES, OPTIONS, type Script, type Scripted, say, setup, touch } from "./agent.ts";

const capabilities = { sessionCapabilities: { resume: {} } };
const outcomesOf = (agent: Pick<Scripted, "log">) =>
  agent
    .log()
    .flatMap(({ method, outcome }) =>
      method === "outcome" ? [Object(outcome).optionId ?? "cancelled"] : [],
    );
const promptsOf = (agent: Pick<Scripted, "log">) =>
  agent
    .log()
    .flatMap(({ method, params }) => (method === "session/prompt" ? [Object(params).prompt[0].text] : []));

/** One delegation whose agent asks in its first prompt. */
async function asking(script: Script) {
  const agent = await setup({ capabilities, modes: MODES, ...script });
  const id = await agent.delegate();
  const { interrupt, error } = await agent.ended(id);
  expect(error).toBeNull();
  const answer = async (given: Record<string, unknown>) => {
    const answered = await agent.api.answer(id, interrupt.id, given);
    expect(answered.body.code).toBeUndefined();
    return agent.ended(id);
  };
  return { ...agent, id, interrupt, answer };
}

describe("a tool call", () => {
  test("that is approved runs once, in the same conversation, after a new process asked for it again", async () => {
    const { interrupt, answer, ...agent } = await asking({
      turns: [
        [say("I will."), touch("call-1")],
        [touch("call-2"), say("Made.")],
      ],
    });
    expect(interrupt.requests).toMatchObject([
      {
        message: { parts: [{ text: "touch a.txt" }] },
        action: { name: "execute", arguments: { command: "touch a.txt" } },
        options: ["approve", "deny", "Always allow touch"],
        edit: true,
      },
    ]);
    // The process has ended; what was asked is kept where only this user can read it.
    const [first] = agent.log();
    await until(() => !existsSync(`/proc/${first?.pid}`), { what: "the end of the process" });
    const states = join(agent.folder, "state", "errand", "sessions");
    const noted = readdirSync(states).filter((name) =>
      readFileSync(join(states, name), "utf8").includes("acp_"),
    );
    expect(noted.map((name) => statSync(join(states, name)).mode & 0o777)).toEqual([0o600]);
    const done = await answer({ decision: "approve" });
    expect(done.reply.parts).toEqual([{ text: "Made." }]);
    expect(outcomesOf(agent)).toEqual(["yes"]);
    expect(promptsOf(agent)[1]).toContain(
      "Continue. A person has decided what you asked:\n- touch a.txt: allowed once",
    );
    expect(agent.methods().filter((one) => one.startsWith("session/"))).toEqual([
      ...["session/new", "session/set_mode", "session/prompt"],
      ...["session/resume", "session/set_mode", "session/prompt"],
    ]);
    expect(readdirSync(states)).toHaveLength(2);
  });

  test("that is denied is rejected, with the reason, and fails nothing by itself", async () => {
    const { answer, ...agent } = await asking({ turns: [[touch("1")], [touch("2"), say("Then not.")]] });
    const done = await answer({ decision: "deny", text: "not here" });
    expect(done.reply.parts).toEqual([{ text: "Then not." }]);
    expect(outcomesOf(agent)).toEqual(["no"]);
    expect(promptsOf(agent)[1]).toContain("- touch a.txt: denied. The person says: not here");
  });

  test("that is edited is rejected, and the agent is told the arguments and asks for them", async () => {
    const { answer, ...agent } = await asking({
      turns: [
        [touch("1")],
        [touch("2"), touch("3", "touch b.txt")],
        [touch("4", "touch b.txt"), say("Made b.")],
      ],
    });
    const asks = await answer({ decision: "approve", data: { command: "touch b.txt" } });
    expect(asks.interrupt.requests[0].action.arguments).toEqual({ command: "touch b.txt" });
    expect(outcomesOf(agent)).toEqual(["no"]);
    expect(promptsOf(agent)[1]).toContain(
      'do it with these arguments instead, and ask again: {"command":"touch b.txt"}',
    );
    const events = JSON.stringify((await agent.api.events(agent.id)).body);
    expect(events).toContain("'touch a.txt' is denied, and the agent is told the edited arguments");
    const { id } = agent;
    await agent.api.answer(id, asks.interrupt.id, { decision: "approve" });
    expect((await agent.ended(id)).reply.parts).toEqual([{ text: "Made b." }]);
    expect(outcomesOf(agent)).toEqual(["no", "yes"]);
  });

  test("is always allowed only if the person picks that option", async () => {
    const { answer, ...agent } = await asking({ turns: [[touch("1")], [touch("2"), say("ok")]] });
    const done = await answer({ text: "Always allow touch" });
    expect(done.state).toBe("completed");
    expect(outcomesOf(agent)).toEqual(["ever"]);
  });

  test("that differs, or that comes twice, is a new question", async () => {
    const { answer, ...agent } = await asking({
      turns: [[touch("1")], [touch("2"), touch("3", "touch c.txt")], [touch("4"), say("no")]],
    });
    const again = await answer({ decision: "approve" });
    expect(again.interrupt.requests[0].action.arguments).toEqual({ command: "touch c.txt" });
    expect(outcomesOf(agent)).toEqual(["yes"]);
    const { id } = agent;
    await agent.api.answer(id, again.interrupt.id, { decision: "deny" });
    const third = await agent.ended(id);
    // The first one was handed over before this process began.
    expect(third.interrupt.requests[0].message.parts[0].text).toMatch(
      /the call may already have run\.\n\ntouch a\.txt$/,
    );
  });

  test("several at once are one question, each answered on its own", async () => {
    const both = { askAll: [touch("1").ask, touch("2", "touch b.txt").ask] };
    const { interrupt, id, ...agent } = await asking({ turns: [[both], [both, say("ok")]] });
    const [one, two] = interrupt.requests;
    expect([one.action.arguments.command, two.action.arguments.command]).toEqual([
      "touch a.txt",
      "touch b.txt",
    ]);
    const answers = { [one.request_id]: { decision: "approve" }, [two.request_id]: { decision: "deny" } };
    await agent.api.answer(id, interrupt.id, { answers });
    expect((await agent.ended(id)).state).toBe("completed");
    expect(outcomesOf(agent).sort()).toEqual(["no", "yes"]);
  });

  test("shows the change of a file; what is too long to be shown whole is refused, and the agent is told", async () => {
    const edit = (newText: string) => ({
      ask: {
        toolCall: {
          ...{ toolCallId: newText.slice(0, 9), title: "Edit a.txt", kind: "edit" },
          content: [
            { type: "content", content: { type: "text", text: "In /srv." } },
            { type: "diff", path: "a.txt", oldText: "old\n", newText },
          ],
        },
        options: OPTIONS,
      },
    });
    const { interrupt, ...agent } = await asking({
      turns: [[edit("x".repeat(70_000)), say("Then so.")], [edit("new\n")]],
    });
    expect(outcomesOf(agent)).toEqual(["no"]);
    expect(promptsOf(agent)[1]).toMatch(
      /^'Edit a\.txt' was refused: its \d+ bytes are too long to be shown whole$/,
    );
    expect(interrupt.requests[0].message.parts[0].text).toBe(
      "Edit a.txt\n\nIn /srv.\n\n--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-old\n+new",
    );
  });

  test("that the delegator approved in advance needs nobody", async () => {
    const agent = await setup({ capabilities, modes: MODES, turns: [[touch("1")], [touch("2"), say("ok")]] });
    const done = await agent.ended(await agent.delegate({ auto_approve: { actions: ["execute"] } }));
    expect(done.reply.parts).toEqual([{ text: "ok" }]);
    expect(outcomesOf(agent)).toEqual(["yes"]);
  });

  test("a turn that the agent cancels after a denial goes on; the comment of an approval is the next prompt", async () => {
    const turns = [[touch("1"), { stop: "cancelled" }], [touch("2"), say("one")], [say("two")]];
    const { approvals } = held([{ decision: "deny" }, { decision: "approve", text: "be quick" }]);
    const agent = await setup({ modes: MODES, turns }, { approvals });
    expect((await agent.ended(await agent.delegate())).reply.parts).toEqual([{ text: "two" }]);
    expect(outcomesOf(agent)).toEqual(["no", "yes"]);
    expect(promptsOf(agent).slice(1)).toEqual([
      "A person denied this. Go on without it, or say what is missing.",
      "A person allowed 'touch a.txt', and says: be quick",
    ]);
  });

  test("whose answer was handed over already is asked again, with that word", async () => {
    const { approvals, asked } = held([{ decision: "approve" }, { decision: "deny" }], ["again", "first"]);
    const agent = await setup({ modes: MODES, turns: [[touch("1"), say("ok")]] }, { approvals });
    await agent.ended(await agent.delegate());
    expect(asked.map(({ text }) => text)).toEqual([
      "touch a.txt",
      expect.stringMatching(/the call may already have run\.\n\ntouch a\.txt$/),
    ]);
    expect(asked[0]?.requestId).not.toBe(asked[1]?.requestId);
    expect(outcomesOf(agent)).toEqual(["no"]);
  });
});

describe("a question that is held", () => {
  test("goes to the agent that waits, in the same process; its time is not the agent's", async () => {
    const turns = [[touch("1"), touch("2", "touch b.txt"), say("Both.")]];
    const agent = await setup(
      { capabilities, modes: MODES, turns },
      { holdMs: 60_000, limits: { timeoutMs: 20_000, idleTimeoutMs: 15_000 } },
    );
    const id = await agent.delegate();
    for (const command of ["touch a.txt", "touch b.txt"]) {
      const { interrupt, lease, error } = await agent.ended(id);
      expect(error).toBeNull();
      expect([interrupt.requests[0].action.arguments.command, lease === null]).toEqual([command, false]);
      await agent.api.answer(id, interrupt.id, { decision: "approve" });
    }
    const done = await agent.ended(id);
    expect([done.state, done.attempt, done.reply.parts]).toEqual(["completed", 1, [{ text: "Both." }]]);
    expect(outcomesOf(agent)).toEqual(["yes", "yes"]);
    expect(new Set(agent.log().map(({ pid }) => pid)).size).toBe(1);
  });

  test("is parked after the time, and the process ends; the answer starts another", async () => {
    const turns = [[touch("1")], [touch("2"), say("ok")]];
    const agent = await setup({ capabilities, modes: MODES, turns }, { holdMs: 100 });
    const id = await agent.delegate();
    await until(async () => JSON.stringify((await agent.api.events(id)).body).includes('"parked"'));
    const { interrupt, lease } = await agent.ended(id);
    expect(lease).toBeNull();
    const [first] = agent.log();
    await until(() => !existsSync(`/proc/${first?.pid}`), { what: "the end of the process" });
    await agent.api.answer(id, interrupt.id, { decision: "approve" });
    expect((await agent.ended(id)).state).toBe("completed");
    expect(outcomesOf(agent)).toEqual(["yes"]);
  });
});

test("an approval is handed over once: after a crash the call is asked for again, and may have run", async () => {
  const agent = await setup({
    capabilities,
    modes: MODES,
    turns: [[touch("1")], [touch("2"), { exit: 75 }], [touch("3"), say("ok")]],
  });
  await agent.api.agent("coder", { limits: { max_attempts: 2 } });
  const id = await agent.delegate();
  const { interrupt } = await agent.ended(id);
  await agent.api.answer(id, interrupt.id, { decision: "approve" });
  const again = await agent.ended(id);
  expect(again.interrupt.requests[0].message.parts[0].text).toMatch(
    /the call may already have run\.\n\ntouch a\.txt$/,
  );
  expect(again.attempt).toBe(2);
  expect(outcomesOf(agent)).toEqual(["yes"]);
  await agent.api.answer(id, again.interrupt.id, { decision: "approve" });
});

test.each([
  { picked: { decision: "approve" }, how: "approved" },
  { picked: { text: "Always allow touch" }, how: "allowed by an option of the agent" },
])("a call that was $how in a conversation that is gone may have run", async ({ picked }) => {
  const turns = [
    [touch("1"), { exit: 75 }],
    [touch("2"), say("ok")],
  ];
  const agent = await setup({ modes: MODES, turns }, { holdMs: 60_000 });
  await agent.api.agent("coder", { limits: { max_attempts: 2 } });
  const id = await agent.delegate();
  const { interrupt } = await agent.ended(id);
  await agent.api.answer(id, interrupt.id, picked);
  const again = await until(async () => {
    const found = (await agent.api.get(id)).body;
    return found.interrupt && found.interrupt.id !== interrupt.id ? found : undefined;
  });
  expect(again.interrupt.requests[0].message.parts[0].text).toMatch(
    /the call may already have run\.\n\ntouch a\.txt$/,
  );
  await agent.api.answer(id, again.interrupt.id, { decision: "approve" });
});

test("an answer for a conversation that is gone approves nothing: the task is given again, and asks anew", async () => {
  const { interrupt, id, ...agent } = await asking({ turns: [[touch("1")], [say("two")], [touch("3")]] });
  const context_id = (await agent.api.get(id)).body.context_id;
  rmSync(join(agent.folder, "sessions"), { recursive: true });
  // Another delegation of the context has begun a new conversation meanwhile.
  expect((await agent.ended(await agent.delegate({ context_id }))).reply.parts).toEqual([{ text: "two" }]);
  await agent.api.answer(id, interrupt.id, { decision: "approve" });
  const asked = await agent.ended(id);
  expect(asked.interrupt.requests[0].message.parts).toEqual([{ text: "touch a.txt" }]);
  expect(promptsOf(agent)[2]).toMatch(/^do it\n\nAn earlier run of this task asked a person/);
  expect(outcomesOf(agent)).toEqual([]);
});

describe("an elicitation", () => {
  test("is a question with its schema; the data is the answer", async () => {
    const requestedSchema = {
      type: "object",
      properties: { host: { type: "string", pattern: "^a" } },
      required: ["host"],
    };
    const elicit = { mode: "form", message: "Which host?", requestedSchema };
    const { interrupt, answer, ...agent } = await asking({ turns: [[{ elicit }], [{ elicit }, say("ok")]] });
    expect(interrupt.requests[0]).toMatchObject({
      message: { parts: [{ text: "Which host?" }] },
      schema: { type: "object", properties: { host: { type: "string" } }, required: ["host"] },
    });
    await answer({ data: { host: "alpha" } });
    const elicited = agent.log().find(({ method }) => method === "elicited");
    expect(elicited?.answer).toEqual({ action: "accept", content: { host: "alpha" } });
  });

  test("by an address is a question with the link", async () => {
    const elicit = { mode: "url", message: "Sign in.", url: "https://login.example/x", elicitationId: "e" };
    const { interrupt, answer, ...agent } = await asking({ turns: [[{ elicit }], [{ elicit }, say("ok")]] });
    expect(interrupt.requests[0].message.parts).toEqual([{ text: "Sign in.\nhttps://login.example/x" }]);
    await answer({ decision: "deny" });
    await got(agent, "elicited");
    expect(agent.log().find(({ method }) => method === "elicited")?.answer).toEqual({ action: "decline" });
  });
});

/** Questions over AG-UI: a run ends with an interrupt, and a later run answers it, denies it, or raises it again. */
import type { ResumeEntry } from "@ag-ui/core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { agUi, type Client, type Json, setup, started } from "./support.ts";

const HOUR_MS = 3_600_000;
const DEPLOY = {
  text: "Deploy to production?",
  action: { name: "deploy", arguments: { host: "a" } },
  edit: true,
};

/** A delegation that asks; the run has ended. */
async function asking(question: object, errand?: object) {
  const world = await setup();
  const ui = world.client("t");
  ui.say("go", "m");
  const { run, lease_id, delegation } = await started(ui, world.lease, {
    ...(errand && { forwardedProps: { errand } }),
  });
  const asked = await world.scout.interrupt(lease_id, { request_id: "q", ...question });
  const { last, error } = await run;
  expect([asked.status, error]).toEqual([200, undefined]);
  return { ...world, ui, id: String(delegation.id), interrupt: last.outcome.interrupts[0] };
}

/** Resumes, and completes what the answer continues; returns the answer as the agent got it. */
async function resumed(
  { lease, scout, interrupt }: Pick<Awaited<ReturnType<typeof asking>>, "lease" | "scout" | "interrupt">,
  ui: Client,
  entry: Omit<ResumeEntry, "interruptId">,
): Promise<Json> {
  const { run, lease_id, delegation } = await started(ui, lease, {
    resume: [{ interruptId: interrupt.id, ...entry }],
  });
  await scout.reply(lease_id, { text: "done" });
  expect(await run).toMatchObject({ error: undefined, last: { outcome: { type: "success" } } });
  return delegation.history.at(-1);
}

test("a question: its id, text, schema and expiry; an answer an hour later, by another client", async () => {
  const schema = { type: "object", properties: { branch: { type: "string" } }, required: ["branch"] };
  const world = await asking({ text: "Which branch?", schema });
  const { url, alice, clock, interrupt, id, ui, client } = world;
  const { body } = await alice.get(id);
  expect(interrupt).toMatchObject({
    ...{ id: body.interrupt.id, reason: "input_required", message: "Which branch?", responseSchema: schema },
    expiresAt: body.interrupt.expires_at,
    metadata: { errand: { delegation_id: id, requests: [{ request_id: "q" }] } },
  });
  expect(ui.messages().map(({ role, content }) => [role, content])).toEqual([
    ["user", "go"],
    ["assistant", "Which branch?"],
  ]);
  // A run that does not answer it raises it again, and delegates nothing.
  const again = client("t");
  again.say("go", "m");
  expect((await again.run()).last.outcome.interrupts).toEqual([interrupt]);
  clock.offset_ms += HOUR_MS;
  const later = agUi(url, alice.token, "t");
  const answer = await resumed(world, later, { status: "resolved", payload: { branch: "main" } });
  expect(answer).toMatchObject({
    parts: [{ data: { branch: "main" } }],
    metadata: { interrupt_id: interrupt.id, request_id: "q", by: "caller:alice" },
  });
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
});

describe("payloads", () => {
  const choice = { text: "Now?", options: ["approve", "deny", "later"] };
  test.each([
    [
      "the body of an answer",
      DEPLOY,
      { decision: "approve", text: "ok" },
      { decision: "approve" },
      [{ text: "ok" }],
    ],
    [
      "edited arguments",
      DEPLOY,
      { decision: "approve", data: { host: "b" } },
      { decision: "approve" },
      [{ data: { host: "b" } }],
    ],
    ["a decision alone", DEPLOY, "deny", { decision: "deny" }, []],
    ["another option", choice, "later", {}, [{ text: "later" }]],
    ["a text", { text: "Which?" }, "this one", {}, [{ text: "this one" }]],
    [
      "a value that fits the schema",
      { text: "How many?", schema: { type: "integer" } },
      3,
      {},
      [{ data: 3 }],
    ],
    [
      "a value that looks like an answer",
      { text: "Say?", schema: { type: "object", required: ["text"] } },
      { text: "x" },
      {},
      [{ data: { text: "x" } }],
    ],
    ["an option that is no text", { text: "How many?", options: [1, 2] }, 2, {}, [{ data: 2 }]],
  ])("%s", async (_name, question, payload, metadata, parts) => {
    const world = await asking(question);
    const answer = await resumed(world, world.ui, { status: "resolved", payload });
    expect(answer.metadata).toMatchObject(metadata);
    expect(answer.metadata.decision).toBe("decision" in metadata ? metadata.decision : undefined);
    expect(answer.parts).toEqual(parts);
  });

  test("one for several requests", async () => {
    const requests = [
      { text: "Where?", request_id: "a" },
      { text: "When?", request_id: "b" },
    ];
    const world = await asking({ request_id: undefined, requests });
    expect(world.interrupt).toMatchObject({ message: "Where?\nWhen?" });
    expect(world.interrupt.responseSchema).toBeUndefined();
    const payload = { answers: { a: { text: "Lyon" }, b: { text: "today" } } };
    expect((await resumed(world, world.ui, { status: "resolved", payload })).parts).toEqual([
      { text: "today" },
    ]);
  });

  test.each([
    ["one that does not fit", { n: "x" }, "resume.payload"],
    ["none", undefined, "resume.payload"],
  ])("%s is refused before the run, and the question stays", async (_name, payload, path) => {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const { ui, interrupt, alice, id } = await asking({ text: "How many?", schema });
    const entry = { interruptId: interrupt.id, status: "resolved" as const, ...(payload && { payload }) };
    const { events, error } = await ui.run({ resume: [entry] });
    expect([events, error]).toEqual([[], expect.stringContaining("invalid_request")]);
    expect(error).toContain(payload === undefined ? path : "data");
    expect((await alice.get(id)).body.state).toBe("input_required");
  });
});

describe("a cancelled entry", () => {
  test.each([
    ["an action", DEPLOY],
    ["options with deny", { text: "?", options: ["approve", "deny"] }],
    ["a credential", { kind: "auth", text: "Log in" }],
  ])("denies %s", async (_name, question) => {
    const world = await asking(question);
    const answer = await resumed(world, world.ui, { status: "cancelled" });
    expect([answer.metadata.decision, answer.parts]).toEqual(["deny", []]);
  });

  test("cancels a delegation whose question cannot be denied", async () => {
    const { ui, interrupt, alice, id } = await asking({ text: "Which branch?" });
    const { last, error } = await ui.run({ resume: [{ interruptId: interrupt.id, status: "cancelled" }] });
    expect([error, last.outcome]).toEqual([undefined, { type: "cancelled" }]);
    expect((await alice.get(id)).body).toMatchObject({ state: "canceled", error: { message: /abandoned/ } });
  });
});

test("an entry for a question that is not open changes nothing, and the run says so", async () => {
  const world = await asking({ text: "Which branch?" });
  const { alice, id, interrupt, lease, scout, ui } = world;
  await alice.answer(id, interrupt.id, { text: "main" });
  const { run, lease_id, delegation } = await started(ui, lease, {
    resume: [{ interruptId: interrupt.id, status: "resolved", payload: "other" }],
  });
  expect(delegation.history.at(-1).parts).toEqual([{ text: "main" }]);
  // The next question is not answered by an answer to the first.
  const second = await scout.interrupt(lease_id, { text: "Which tag?" });
  const { events, last } = await run;
  expect(events.find(({ type }) => type === "CUSTOM")).toMatchObject({
    name: "errand.resume_ignored",
    value: {
      reason: "not_open",
      message: expect.stringContaining("not open"),
      interrupt_ids: [interrupt.id],
    },
  });
  expect(last.outcome.interrupts[0].id).toBe(second.body.interrupt_id);
});

test("an entry of a run that cancels or follows up answers nothing, and the run says so", async () => {
  const { alice, id, interrupt, ui, client } = await asking({ text: "Which branch?" });
  const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload: "main" }];
  const { events, last } = await ui.run({ resume, forwardedProps: { errand: { cancel: true } } });
  expect(last.outcome).toEqual({ type: "cancelled" });
  const { name, value } = events.find(({ type }) => type === "CUSTOM");
  const { message, ...rest } = value;
  expect(name).toBe("errand.resume_ignored");
  expect(rest).toEqual({ reason: "cancel", interrupt_ids: [interrupt.id] });
  expect(message).toContain("only cancels");
  expect(message).not.toContain("not open");
  expect((await alice.get(id)).body.history).toHaveLength(1);
  // Its message is the task, which the agent has, so it only shows the end.
  const late = client("t");
  late.say("go", "m");
  const followed = await late.run({ resume, forwardedProps: { errand: { follow_up: true } } });
  expect(followed.events.find(({ type }) => type === "CUSTOM").value.reason).toBe("follow_up");
});

test("an entry that is repeated after the answer, without messages, shows the thread", async () => {
  const { alice, id, client, interrupt } = await asking({ text: "Which branch?" });
  await alice.answer(id, interrupt.id, { text: "main" });
  await alice.cancel(id);
  const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload: "main" }];
  const { events, last, error } = await client("t").run({ resume });
  expect([error, last.outcome]).toEqual([undefined, { type: "cancelled" }]);
  expect(events.find(({ type }) => type === "CUSTOM")).toMatchObject({ name: "errand.resume_ignored" });
});

test("a task that has a question's id in its metadata is no answer", async () => {
  const { alice, client } = await setup();
  const message = { role: "ROLE_USER", parts: [{ text: "go" }], metadata: { interrupt_id: "int_x" } };
  const posing = (await alice.delegate("scout", { context_id: "t", message })).body;
  const newest = (await alice.delegate("scout", { context_id: "t" })).body;
  for (const { id } of [posing, newest]) await alice.cancel(id);
  const resume = [{ interruptId: "int_x", status: "resolved" as const, payload: "yes" }];
  const { events } = await client("t").run({ resume });
  expect(events[0].metadata.errand.delegation_id).toBe(newest.id);
});

describe("an answer that is sent again after the end delegates nothing", () => {
  const resumeOf = (interrupt: Json) => [
    { interruptId: interrupt.id, status: "resolved" as const, payload: "main" },
  ];
  const count = async ({ alice }: Pick<Awaited<ReturnType<typeof asking>>, "alice">) =>
    (await alice.call("GET", "/v1/delegations")).body.delegations.length;

  test("if the last message was a follow-up", async () => {
    const world = await asking({ text: "Which branch?" });
    const { ui, interrupt, id, scout, lease } = world;
    const first = world.client("t");
    first.say("go", "m");
    const { lease_id } = await started(ui, lease, { resume: resumeOf(interrupt) });
    first.say("hurry", "m2");
    const followed = first.run({ forwardedProps: { errand: { follow_up: true } } });
    await until(() => first.seen("ACTIVITY_SNAPSHOT"), { what: "the follow-up" });
    const asked = await scout.interrupt(lease_id, { text: "Which tag?", request_id: "q2" });
    const { last } = await followed;
    expect([asked.status, last.outcome.type]).toEqual([200, "interrupt"]);
    const second = last.outcome.interrupts[0];
    await resumed({ ...world, interrupt: second }, first, { status: "resolved", payload: "v1" });
    first.agent.messages = [{ id: "m2", role: "user", content: "hurry" }];
    const again = await first.run({ resume: resumeOf(second) });
    expect(again).toMatchObject({ error: undefined, last: { result: { delegation_id: id } } });
    expect(await count(world)).toBe(1);
  });

  test.each([["with the task"], ["without a message"]])("if the operator answered, %s", async (what) => {
    const world = await asking({ text: "Which branch?" });
    const { url, interrupt, id } = world;
    const other = agUi(url, OPERATOR, "t");
    await resumed(world, other, { status: "resolved", payload: "main" });
    other.agent.messages = what === "with the task" ? [{ id: "m", role: "user", content: "go" }] : [];
    const again = await other.run({ resume: resumeOf(interrupt) });
    expect(again).toMatchObject({ error: undefined, last: { result: { delegation_id: id } } });
    expect(again.events.some(({ type }) => type === "CUSTOM")).toBe(true);
    expect((await client(url).call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  });

  test("but a new message is new work, also with an old entry", async () => {
    const world = await asking({ text: "Which branch?" });
    const { ui, interrupt, lease, scout } = world;
    await resumed(world, ui, { status: "resolved", payload: "main" });
    ui.say("and now this", "m3");
    const { run, lease_id } = await started(ui, lease, { resume: resumeOf(interrupt) });
    await scout.reply(lease_id, { text: "done" });
    expect(await run).toMatchObject({ error: undefined });
    expect(await count(world)).toBe(2);
  });
});

test("the answer to a credential question reaches the lease only", async () => {
  const secret = "hunter2-very-secret";
  const world = await asking({ kind: "auth", text: "The password?" });
  const { ui, client, log, lease, scout, interrupt } = world;
  expect(interrupt.reason).toBe("auth_required");
  const { run, lease_id, delegation } = await started(ui, lease, {
    resume: [{ interruptId: interrupt.id, status: "resolved", payload: secret }],
  });
  expect(JSON.stringify(delegation)).toContain(secret);
  await scout.reply(lease_id, { text: "logged in" });
  const ran = await run;
  const late = await client("t").run({ forwardedProps: { errand: { attach: true } } });
  expect(JSON.stringify([ran.events, late.events, log])).not.toContain(secret);
  expect(ui.messages().map(({ content }) => content)).toEqual([
    "go",
    "The password?",
    "(hidden)",
    "logged in",
  ]);
});

test("an approver answers in another's thread; a stranger and a viewer cannot", async () => {
  const world = await asking(DEPLOY);
  const { url, interrupt, id, alice } = world;
  const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload: "approve" }];
  const by = async (principal: string) => agUi(url, (await as(url, principal)).token, "t");
  const named = { forwardedProps: { errand: { attach: true, delegation_id: id } } };
  expect((await (await by("caller:bob")).run({ resume, ...named })).error).toContain("delegation_not_found");
  expect((await (await by("viewer:eve")).run({ resume })).error).toContain("forbidden");
  expect((await (await by("agent:scout")).run({ resume })).error).toContain("forbidden");
  expect((await alice.get(id)).body.state).toBe("input_required");
  const answer = await resumed(world, await by("approver:ann"), { status: "resolved", payload: "approve" });
  expect(answer.metadata).toMatchObject({ decision: "approve", by: "approver:ann" });
});

describe("auto_approve", () => {
  test("answers in the delegator's name, and the run goes on", async () => {
    const { client, lease, scout } = await setup();
    const ui = client("t");
    ui.say("go");
    const { run, lease_id, delegation } = await started(ui, lease, {
      forwardedProps: { errand: { auto_approve: { actions: ["deploy"] } } },
    });
    expect(delegation.auto_approve).toEqual({ actions: ["deploy"] });
    await scout.interrupt(lease_id, DEPLOY);
    const back = await lease();
    expect(back.delegation.history.at(-1).metadata).toMatchObject({ by: "caller:alice", auto: true });
    await scout.reply(back.lease_id, { text: "deployed" });
    const { types, ...ran } = await run;
    expect(ran).toMatchObject({ error: undefined, last: { outcome: { type: "success" } } });
    // The question and its answer are shown together, once.
    expect(types.filter((type) => type === "MESSAGES_SNAPSHOT")).toHaveLength(2);
    expect(ui.messages().map(({ content }) => content)).toEqual([
      ...["go", "Deploy to production?", "approve", "deployed"],
    ]);
  });

  test.each([
    ["a credential", { ...DEPLOY, kind: "auth" }, true],
    ["an action outside the list", { ...DEPLOY, action: { name: "drop" } }, { actions: ["deploy"] }],
    ["free text", { text: "Which branch?" }, true],
  ])("does not approve %s", async (_name, question, auto_approve) => {
    const { interrupt, alice, id } = await asking(question, { auto_approve });
    expect((await alice.get(id)).body.interrupt.id).toBe(interrupt.id);
  });

  test("is refused for an agent whose approvals need a person", async () => {
    const { client, scout, alice } = await setup();
    await scout.call("PATCH", "/v1/agents/scout", { approvals: "person" });
    const ui = client("t");
    ui.say("go");
    const { events, error } = await ui.run({ forwardedProps: { errand: { auto_approve: true } } });
    expect([events, error]).toEqual([[], expect.stringContaining("approval_required")]);
    expect((await alice.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
  });

  test("does nothing in a later run for the same work: repeated, followed up or resumed", async () => {
    const { client, lease, scout, alice } = await setup();
    const ui = client("t");
    ui.say("go", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    ui.agent.abortRun();
    await run;
    const glance = async (options: object) => {
      const ran = ui.run(options);
      await Promise.race([ran, until(() => ui.seen("ACTIVITY_SNAPSHOT"), { what: "the snapshots" })]);
      ui.agent.abortRun();
      expect((await ran).events[0].metadata.errand.delegation_id).toBe(delegation.id);
    };
    const approving = (more: object = {}) => ({
      forwardedProps: { errand: { auto_approve: true, ...more } },
    });
    await glance(approving());
    ui.say("hurry", "f");
    await glance(approving({ follow_up: true }));
    const { interrupt_id } = (await scout.interrupt(lease_id, { text: "Which branch?" })).body;
    const resume = [{ interruptId: interrupt_id, status: "resolved" as const, payload: "main" }];
    await glance({ resume, ...approving() });
    const back = await lease();
    expect(back.delegation.auto_approve).toBeUndefined();
    await scout.interrupt(back.lease_id, DEPLOY);
    const { body } = await alice.get(delegation.id);
    expect([body.state, body.auto_approve]).toEqual(["input_required", undefined]);
  });

  test("does nothing for work that exists: one's own, or another's", async () => {
    const { url, client, alice, id, interrupt, scout, lease } = await asking({ text: "Which branch?" });
    const errand = { attach: true, delegation_id: id, auto_approve: true };
    const operator = agUi(url, (await as(url, "approver:ann")).token, "t");
    await alice.answer(id, interrupt.id, { text: "main" });
    const { lease_id } = await lease();
    const watching = [
      client("t").run({ forwardedProps: { errand } }),
      operator.run({ forwardedProps: { errand } }),
    ];
    await scout.interrupt(lease_id, DEPLOY);
    for (const run of watching) expect((await run).last.outcome).toMatchObject({ type: "interrupt" });
    const { body } = await alice.get(id);
    expect([body.state, body.auto_approve]).toEqual(["input_required", undefined]);
  });
});

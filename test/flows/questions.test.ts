/** Questions, answers and follow-ups, from the agent to the delegator and back. */
import { expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { checkHistory } from "../support/history.ts";

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const scout = await as(broker.url, "agent:scout");
  const alice = await as(broker.url, "caller:alice");
  const leased = async (more: Record<string, unknown> = {}) => {
    const { id } = (await alice.delegate("scout", more)).body;
    const [lease] = (await scout.lease("scout")).body.leases;
    return { id: String(id), lease: String(lease.lease_id) };
  };
  const next = async () => (await scout.lease("scout", { wait_seconds: 5 })).body.leases[0];
  return { ...broker, api, scout, alice, leased, next };
}

test("a question parks the delegation; its answer queues it before new work, with the history", async () => {
  const { api, scout, alice, leased, next } = await setup();
  const { id, lease } = await leased();
  const asked = await scout.interrupt(lease, { text: "Which branch?", options: ["main", "next"] });
  expect(asked.status).toBe(200);
  const { interrupt_id } = asked.body;

  const parked = (await alice.get(id)).body;
  expect(parked).toMatchObject({
    state: "input_required",
    lease: null,
    attempt: 1,
    interrupt: {
      id: interrupt_id,
      kind: "input",
      requests: [
        { message: { role: "ROLE_AGENT", parts: [{ text: "Which branch?" }] }, options: ["main", "next"] },
      ],
    },
  });
  expect((await scout.heartbeat(lease)).body).toMatchObject({
    code: "lease_lost",
    details: { reason: "interrupted" },
  });
  const newer = (await alice.delegate("scout")).body.id;

  expect((await alice.answer(id, "int_other", { text: "main" })).body.code).toBe("interrupt_not_open");
  const answered = await alice.answer(id, interrupt_id, { text: "main" });
  expect([answered.status, answered.body.state, answered.body.interrupt]).toEqual([200, "submitted", null]);
  // The same answer again changes nothing; another answer is too late.
  const { version } = answered.body;
  expect((await alice.answer(id, interrupt_id, { text: "main" })).body).toMatchObject({ id, version });
  expect((await alice.answer(id, interrupt_id, { text: "next" })).body.code).toBe("interrupt_not_open");

  const back = await next();
  expect(back).toMatchObject({ attempt: 1, delegation: { id } });
  expect(back.delegation.history).toMatchObject([
    { role: "ROLE_AGENT", parts: [{ text: "Which branch?" }] },
    { role: "ROLE_USER", parts: [{ text: "main" }], metadata: { interrupt_id } },
  ]);
  expect(back.request.params.message).toMatchObject({
    role: "ROLE_USER",
    parts: [{ text: "main" }],
    metadata: { interrupt_id, delegation_id: id, lease_id: back.lease_id },
  });
  // Asked again, the question is answered at once and the lease continues.
  const request_id = parked.interrupt.requests[0].request_id;
  const again = await scout.interrupt(back.lease_id, { text: "Which branch?", request_id });
  expect(again.body).toMatchObject({
    interrupt_id,
    answers: { [request_id]: { message: { parts: [{ text: "main" }] } } },
  });
  expect((await scout.reply(back.lease_id)).body.outcome).toBe("matched");
  expect((await next()).delegation.id).toBe(newer);
  checkHistory((await api.events(id)).body.events, "finished");
});

test("an agent that asks without a text still interrupts, and never completes", async () => {
  const { alice, scout, leased } = await setup();
  for (const kind of ["input", "auth"] as const) {
    const { id, lease } = await leased();
    const { interrupt_id } = (await scout.interrupt(lease, { kind })).body;
    const { state, interrupt } = (await alice.get(id)).body;
    expect([state, interrupt.id]).toEqual([`${kind}_required`, interrupt_id]);
    expect(interrupt.requests[0].message.parts[0].text).toMatch(/agent needs/);
  }
});

test("the same text asked again later is another question", async () => {
  const { alice, scout, leased, next } = await setup();
  const { id, lease } = await leased();
  const first = (await scout.interrupt(lease, { text: "Go on?" })).body.interrupt_id;
  // The retry of a request whose answer was lost.
  expect((await scout.interrupt(lease, { text: "Go on?" })).body.interrupt_id).toBe(first);
  expect((await scout.interrupt(lease, { text: "Something else?" })).body.code).toBe("lease_lost");
  await alice.answer(id, first, { decision: "approve" });
  // Even after the answer, and after another worker has the work.
  expect((await scout.interrupt(lease, { text: "Go on?" })).body.interrupt_id).toBe(first);
  const back = await next();
  expect((await scout.interrupt(lease, { text: "Go on?" })).body.interrupt_id).toBe(first);
  // No text that nobody wrote; only the request for A2A servers needs a part.
  expect(back.delegation.history.at(-1).parts).toEqual([]);
  expect(back.request.params.message.parts).toEqual([{ data: { decision: "approve" } }]);
  expect(back.request.params.message.metadata.decision).toBe("approve");
  const second = (await scout.interrupt(back.lease_id, { text: "Go on?" })).body;
  expect(second.answers).toBeUndefined();
  expect(second.interrupt_id).not.toBe(first);
});

test("several requests are answered together or not at all", async () => {
  const { alice, scout, leased, next, redis } = await setup();
  const { id, lease } = await leased();
  const requests = [
    { request_id: "host", text: "Which host?" },
    { request_id: "token", text: "A token for it?", schema: { type: "object" } },
  ];
  const { interrupt_id } = (await scout.interrupt(lease, { kind: "auth", requests })).body;
  const before = await dump(redis);
  for (const more of [
    { text: "both" },
    { answers: { host: { text: "a" } } },
    { answers: { host: { text: "a" }, token: { data: {} }, other: { text: "b" } } },
    { answers: { host: {}, token: { data: {} } } },
    {},
  ]) {
    const refused = await alice.answer(id, interrupt_id, more);
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
  }
  expect(await dump(redis)).toEqual(before);
  const answers = { host: { text: "db1" }, token: { decision: "approve", data: { secret: 7 } } };
  expect((await alice.answer(id, interrupt_id, { answers })).status).toBe(200);
  const back = await next();
  expect(back.request.params.message.parts).toEqual([{ text: "db1" }, { data: { secret: 7 } }]);
  const [, , host, token] = back.delegation.history;
  expect([host.metadata.request_id, token.metadata]).toEqual([
    "host",
    {
      interrupt_id,
      request_id: "token",
      decision: "approve",
      by: "caller:alice",
      at: expect.stringMatching(/^20.*Z$/),
    },
  ]);
  const again = await scout.interrupt(back.lease_id, { kind: "auth", requests });
  expect(again.body.answers).toMatchObject({ token: { decision: "approve", data: { secret: 7 } } });
});

test("the delegator, approvers and the operator may answer; the agent, viewers and others may not", async () => {
  const { url, api, alice, scout, leased } = await setup();
  const { id, lease } = await leased();
  const { interrupt_id } = (await scout.interrupt(lease, { text: "May I?" })).body;
  const no = { text: "no" };
  expect((await scout.answer(id, interrupt_id, no)).body.code).toBe("forbidden");
  expect((await (await as(url, "viewer:eve")).answer(id, interrupt_id, no)).body.code).toBe("forbidden");
  expect((await (await as(url, "caller:bob")).answer(id, interrupt_id, no)).body.code).toBe(
    "delegation_not_found",
  );
  expect((await (await as(url, "approver:ann")).answer(id, interrupt_id, { decision: "deny" })).status).toBe(
    200,
  );
  const event = (await api.events(id)).body.events.at(-1);
  expect(event).toMatchObject({ status: "answered", by: "approver:ann", decision: "deny", interrupt_id });
  expect(event).not.toHaveProperty("answer_preview");
  const { state, history } = (await alice.get(id)).body;
  expect(state).toBe("submitted");
  expect(history.at(-1).metadata).toMatchObject({ by: "approver:ann", at: event.at });
});

test("the event of an answer says who answered, what was decided, and how the text begins", async () => {
  const { api, alice, scout, leased } = await setup();
  const { id, lease } = await leased();
  const { interrupt_id } = (await scout.interrupt(lease, { request_id: "go", text: "May I?" })).body;
  const claimed = { by: "caller:mallory", at: "never", redacted: true, mine: 1 };
  const message = { parts: [{ text: "x".repeat(200) }], metadata: claimed };
  await alice.answer(id, interrupt_id, { decision: "approve", message });
  const event = (await api.events(id)).body.events.at(-1);
  const shown = { decision: "approve", answer_preview: "x".repeat(100) };
  expect(event).toMatchObject({ ...shown, by: "caller:alice", answers: { go: shown } });
  expect((await alice.get(id)).body.history.at(-1).metadata).toEqual({
    mine: 1,
    interrupt_id,
    request_id: "go",
    decision: "approve",
    by: "caller:alice",
    at: event.at,
  });
});

test("an unanswered question expires after its own time", async () => {
  const { alice, scout, leased, clock, gateway } = await setup();
  const { id, lease } = await leased();
  const { interrupt_id } = (await scout.interrupt(lease, { text: "?", expires_in_seconds: 10 })).body;
  clock.offset_ms = 9_000;
  await gateway.sweep.tick();
  expect((await alice.get(id)).body.state).toBe("input_required");
  clock.offset_ms = 10_500;
  await gateway.sweep.tick();
  expect((await alice.get(id)).body).toMatchObject({ state: "failed", error: { code: "interrupt_expired" } });
  expect((await alice.answer(id, interrupt_id, { text: "late" })).body.code).toBe("interrupt_not_open");
});

test("a follow-up is sent with every heartbeat until it is marked as seen; a held heartbeat returns it at once", async () => {
  const { alice, scout, leased, api } = await setup();
  const { id, lease } = await leased();
  const held = scout.heartbeat(lease, { wait_seconds: 20 });
  const sent = await alice.message(id, "also the tests");
  expect([sent.status, sent.body.history.length]).toEqual([202, 1]);
  const [first] = (await held).body.messages;
  expect(first).toMatchObject({ role: "ROLE_USER", parts: [{ text: "also the tests" }] });
  await alice.message(id, "and the docs");
  const texts = async (more: Record<string, unknown>) =>
    (await scout.heartbeat(lease, more)).body.messages.map(
      (one: { parts: [{ text: string }] }) => one.parts[0].text,
    );
  expect(await texts({})).toEqual(["also the tests", "and the docs"]);
  expect(await texts({ seen: first.messageId })).toEqual(["and the docs"]);
  expect(await texts({ seen: "msg_unknown" })).toEqual(["and the docs"]);
  const [second] = (await scout.heartbeat(lease)).body.messages;
  expect(await texts({ seen: second.messageId, progress: { done: 1 } })).toEqual([]);

  // A repeat with the same id and content is the same message.
  const message = { messageId: "mine", parts: [{ text: "once" }] };
  for (let n = 0; n < 2; n += 1) {
    expect((await alice.call("POST", `/v1/delegations/${id}/messages`, { message })).status).toBe(202);
  }
  expect(await texts({})).toEqual(["once"]);
  expect((await api.get(id)).body.history).toHaveLength(3);
  await scout.reply(lease);
  expect((await alice.message(id, "too late")).body.code).toBe("already_finished");
});

test("a follow-up sent before the lease arrives with the first heartbeat; none while a question is open", async () => {
  const { alice, scout, next } = await setup();
  const { id } = (await alice.delegate("scout")).body;
  expect((await alice.message(id, "early")).status).toBe(202);
  const { lease_id, delegation } = await next();
  expect(delegation.history).toHaveLength(1);
  expect((await scout.heartbeat(lease_id)).body.messages).toHaveLength(1);
  await scout.interrupt(lease_id, { text: "?" });
  expect((await alice.message(id, "now?")).body.code).toBe("wrong_state");
});

test("a follow-up that is repeated after the agent asked or ended is accepted, if it is the same; another is not", async () => {
  const { alice, scout, leased, next, url } = await setup();
  const { id, lease } = await leased();
  const say = (text: string, caller: Pick<typeof alice, "call"> = alice) =>
    caller.call("POST", `/v1/delegations/${id}/messages`, { message: { messageId: "f", parts: [{ text }] } });
  const { version } = (await say("hurry")).body;
  const { interrupt_id } = (await scout.interrupt(lease, { text: "?" })).body;
  const asked = await say("hurry");
  expect([asked.status, asked.body.state, asked.body.version]).toEqual([202, "input_required", version + 1]);
  expect((await say("slowly")).body.code).toBe("wrong_state");
  await alice.answer(id, interrupt_id, { text: "yes" });
  await scout.reply((await next()).lease_id);
  const ended = await say("hurry");
  expect([ended.status, ended.body.state]).toEqual([202, "completed"]);
  expect(ended.body.history.filter((one: { messageId: string }) => one.messageId === "f")).toHaveLength(1);
  expect((await say("slowly")).body.code).toBe("already_finished");
  // Not for those that may not send it.
  for (const [principal, code] of [
    ["viewer:eve", "forbidden"],
    ["caller:bob", "delegation_not_found"],
  ] as const)
    expect((await say("hurry", await as(url, principal))).body.code).toBe(code);
});

test("a follow-up cannot pass for an answer", async () => {
  const { url, alice, scout, leased, next } = await setup();
  const { id, lease } = await leased();
  const { interrupt_id } = (await scout.interrupt(lease, { request_id: "go", text: "May I?" })).body;
  await (await as(url, "approver:ann")).answer(id, interrupt_id, { decision: "deny" });
  const posing = { interrupt_id, request_id: "go", decision: "approve" };
  const message = { parts: [{ text: "approve" }], metadata: { ...posing, by: "operator", mine: 1 } };
  expect((await alice.call("POST", `/v1/delegations/${id}/messages`, { message })).status).toBe(202);
  const { request, delegation } = await next();
  expect(request.params.message).toMatchObject({
    parts: [{ data: { decision: "deny" } }],
    metadata: { decision: "deny", by: "approver:ann" },
  });
  const real = { by: "caller:alice", at: expect.any(String) };
  expect(delegation.history.at(-1).metadata).toEqual({ mine: 1, ...real });
});

test("an answer that arrives before its question closes nothing", async () => {
  const { gateway, alice, scout, leased } = await setup();
  const asked = await leased();
  const { interrupt_id } = (await scout.interrupt(asked.lease, { request_id: "go", text: "?" })).body;
  const { writer } = gateway.broker;
  const move = writer.move.bind(writer);
  // As if the question had been opened after the record was read.
  const late = vi
    .spyOn(writer, "move")
    .mockImplementationOnce((command) =>
      move({ ...command, params: { ...command.params, only_repeat: true } }),
    );
  expect((await alice.answer(asked.id, interrupt_id, { decision: "deny" })).body.code).toBe(
    "interrupt_not_open",
  );
  late.mockRestore();
  expect((await alice.get(asked.id)).body.state).toBe("input_required");
  expect((await alice.answer(asked.id, interrupt_id, { decision: "deny" })).status).toBe(200);
});

test("two requests never share an id, and the size of a question counts", async () => {
  const { scout, leased } = await setup();
  const { lease } = await leased();
  const message = { messageId: "same", parts: [{ text: "?" }] };
  const twice = await scout.interrupt(lease, { requests: [{ message }, { request_id: "same", text: "!" }] });
  expect([twice.status, twice.body.code]).toEqual([400, "invalid_request"]);
  expect((await scout.interrupt(lease, { request_id: "__proto__", text: "?" })).status).toBe(400);
});

test("an agent's question cannot pass for somebody's answer", async () => {
  const { scout, alice, leased } = await setup();
  const { id, lease } = await leased();
  const forged = { interrupt_id: "int_0", request_id: "go", decision: "approve", by: "caller:alice" };
  const said = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "yes" }] };
  const asked = { message: { ...said, metadata: { ...forged, colour: "red" } } };
  expect((await scout.interrupt(lease, asked)).status).toBe(200);
  const [question] = (await alice.get(id)).body.history;
  expect(question.role).toBe("ROLE_AGENT");
  expect(question.metadata).toEqual({ by: "caller:alice", colour: "red" });
});

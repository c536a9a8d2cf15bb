/** The list of answers: who answered what, what an edit changed, by which way, and what expired unanswered. */
import { describe, expect, test } from "vitest";
import { Delegator } from "../../src/client/delegator.ts";
import type { TestOptions } from "../support/broker.ts";
import { as, client, OPERATOR, request, startBroker } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";

type Api = ReturnType<typeof client>;

async function setup(options: TestOptions = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout");
  const [scout, alice, ann] = await Promise.all([
    as(broker.url, "agent:scout"),
    as(broker.url, "caller:alice"),
    as(broker.url, "approver:ann"),
  ]);
  /** Delegates, leases and asks. */
  const asked = async (question: Record<string, unknown>, more: Record<string, unknown> = {}) => {
    const { id } = (await alice.delegate("scout", more)).body;
    const [{ lease_id: lease }] = (await scout.lease("scout")).body.leases;
    const { interrupt_id } = (await scout.interrupt(lease, question)).body;
    return { id: String(id), lease: String(lease), interrupt_id: String(interrupt_id) };
  };
  return { ...broker, api, scout, alice, ann, asked };
}

const answersOf = async (api: Pick<Api, "call">, query = "") =>
  (await api.call("GET", `/v1/answers?${query}`)).body.answers;

async function all(api: Pick<Api, "call">, query: string) {
  const found = [];
  for (let cursor = ""; ; ) {
    const { body } = await api.call("GET", `/v1/answers?${query}${cursor}`);
    found.push(...body.answers);
    if (body.next_cursor === null) return found;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

const settledKeys = async (redis: Parameters<typeof keysIn>[0]) =>
  (await keysIn(redis, "*")).filter((key) => key.includes(":list:answers:"));

const answeredEvent = async (api: Api, id: string) =>
  (await api.events(id)).body.events.find(({ status }: { status?: string }) => status === "answered");

const SCALE = {
  text: "Scale it?",
  action: {
    name: "scale",
    arguments: { service: "web", replicas: 3, token: "t0-canary", env: { PASSWORD: "p0-canary" } },
  },
  edit: true,
  request_id: "r",
};
const SECRETS = {
  type: "object",
  properties: {
    replicas: { type: "integer" },
    token: { type: "string", writeOnly: true },
    env: { type: "object", properties: { PASSWORD: { type: "string", format: "password" } } },
  },
};

test("an answer is listed with who, what, by which way and what it changed", async () => {
  const { alice, ann, asked } = await setup();
  const { id, interrupt_id } = await asked(SCALE, { task: "scale the shop", context_id: "c" });
  await ann.answer(id, interrupt_id, {
    decision: "approve",
    text: "more",
    data: { ...SCALE.action.arguments, replicas: 5 },
  });
  const changes = { changes: [{ path: ["replicas"], from: 3, to: 5 }], total: 1 };
  expect(await answersOf(alice)).toEqual([
    {
      delegation_id: id,
      target: "scout",
      delegator: "caller:alice",
      context_id: "c",
      task_preview: "scale the shop",
      interrupt_id,
      kind: "input",
      outcome: "answered",
      asked_at: expect.any(String),
      settled_at: expect.any(String),
      by: "approver:ann",
      via: "rest",
      requests: [
        {
          request_id: "r",
          question_preview: "Scale it?",
          action: "scale",
          decision: "approve",
          answer_preview: "more",
          changes,
        },
      ],
    },
  ]);
  expect(await answeredEvent(alice, id)).toMatchObject({ via: "rest", changes: { r: changes } });
});

test("secrets among the arguments are changed without their values, also in the preview", async () => {
  const { alice, asked } = await setup();
  const { id, interrupt_id } = await asked({ ...SCALE, schema: SECRETS });
  const data = { service: "web", replicas: 4, token: "t1-canary", env: { PASSWORD: "p1-canary" } };
  expect((await alice.answer(id, interrupt_id, { decision: "approve", data })).status).toBe(200);
  const [answer] = await answersOf(alice);
  expect(answer.requests[0].changes).toEqual({
    changes: [
      { path: ["replicas"], from: 3, to: 4 },
      { path: ["token"], hidden: true },
      { path: ["env", "PASSWORD"], hidden: true },
    ],
    total: 3,
  });
  const shown = JSON.stringify([answer, await answeredEvent(alice, id)]);
  expect(shown).not.toMatch(/canary/);
});

test("the answer to a question for a credential shows nothing of it", async () => {
  const { alice, asked } = await setup();
  const { id, interrupt_id } = await asked({ ...SCALE, kind: "auth" });
  await alice.answer(id, interrupt_id, { decision: "approve", data: { service: "canary" } });
  const [answer] = await answersOf(alice);
  expect(answer).toMatchObject({ kind: "auth", outcome: "answered", by: "caller:alice" });
  expect(answer.requests).toEqual([
    {
      request_id: "r",
      question_preview: "Scale it?",
      action: "scale",
      decision: "approve",
      redacted: true,
    },
  ]);
  expect(JSON.stringify([answer, await answeredEvent(alice, id)])).not.toContain("canary");
});

test("each request of a question has its own answer and changes", async () => {
  const { alice, asked } = await setup();
  const { action } = SCALE;
  const { id, interrupt_id } = await asked({
    requests: [
      { ...SCALE, request_id: "a" },
      { request_id: "b", text: "And why?" },
      { request_id: "c", text: "Drop it?", action: { name: "drop" } },
    ],
  });
  await alice.answer(id, interrupt_id, {
    answers: {
      a: { decision: "approve", data: { ...action.arguments, replicas: 1 } },
      b: { text: "because" },
      c: { decision: "deny" },
    },
  });
  const [{ requests }] = await answersOf(alice);
  expect(requests).toEqual([
    expect.objectContaining({
      request_id: "a",
      decision: "approve",
      changes: expect.objectContaining({ total: 1 }),
    }),
    { request_id: "b", question_preview: "And why?", answer_preview: "because" },
    { request_id: "c", question_preview: "Drop it?", action: "drop", decision: "deny" },
  ]);
  expect(await answersOf(alice, "decision=deny")).toHaveLength(1);
});

test("a large edit is cut in the event and does not break the answer", async () => {
  const { alice, asked } = await setup();
  const long = (fill: string) =>
    Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`${"n".repeat(90)}${n}`, fill.repeat(900)]));
  const { id, interrupt_id } = await asked({
    text: "May I?",
    action: { name: "put", arguments: long("x") },
    edit: true,
    request_id: "r",
  });
  expect((await alice.answer(id, interrupt_id, { decision: "approve", data: long("y") })).status).toBe(200);
  const event = await answeredEvent(alice, id);
  expect(event.changes.r.total).toBe(500);
  expect(event.changes.r.changes.length).toBeGreaterThan(5);
  expect(JSON.stringify(event).length).toBeLessThan(10_000);
});

test("a held question, an approval in advance, a question in parts and a console's answer say so", async () => {
  const { url, api, alice, scout, asked } = await setup();
  const held = await asked({ text: "Go on?", hold: true });
  await alice.answer(held.id, held.interrupt_id, { text: "yes" });
  await scout.reply(held.lease);
  const approved = await asked({ action: { name: "go" } }, { auto_approve: true });
  const [{ lease_id }] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease_id);
  const { id, interrupt_id } = await asked({ text: "And now?" });
  const session = (await request(url, "POST", "/v1/sessions", { token: OPERATOR, body: {} })).body;
  await client(url, session.token).answer(id, interrupt_id, { text: "now" });
  expect(await answersOf(api)).toMatchObject([
    { delegation_id: id, by: "operator", via: "console" },
    { delegation_id: approved.id, by: "caller:alice", via: "auto" },
    { delegation_id: held.id, by: "caller:alice", via: "rest", interrupt_id: held.interrupt_id },
  ]);
});

test("a question that expires unanswered is listed, whichever deadline passed; one that is canceled is not", async () => {
  const { alice, clock, gateway, asked } = await setup();
  const short = await asked({ text: "Quick?", expires_in_seconds: 10 });
  const canceled = await asked({ text: "Never mind?" });
  await alice.cancel(canceled.id);
  const whole = await asked({ text: "In time?" }, { ttl_seconds: 100 });
  clock.offset_ms = 11_000;
  await gateway.sweep.tick();
  clock.offset_ms = 101_000;
  await gateway.sweep.tick();
  const expired = { outcome: "expired", by: null, via: null };
  expect(await answersOf(alice)).toMatchObject([
    { ...expired, delegation_id: whole.id, interrupt_id: whole.interrupt_id },
    {
      ...expired,
      delegation_id: short.id,
      interrupt_id: short.interrupt_id,
      requests: [{ question_preview: "Quick?" }],
    },
  ]);
  expect((await alice.get(whole.id)).body.error.code).toBe("deadline_exceeded");
  const end = (await alice.events(short.id)).body.events.at(-1);
  expect(end).toMatchObject({ type: "DELEGATION_FAILED", interrupt_id: short.interrupt_id });
  expect(await answersOf(alice, "outcome=answered")).toEqual([]);
  expect(await answersOf(alice, "outcome=expired")).toHaveLength(2);
  expect(await answersOf(alice, "by=caller:alice")).toEqual([]);
});

test("several questions of one delegation are listed each in its place; erasing it removes them", async () => {
  const { url, alice, scout, clock, redis, asked } = await setup();
  const { id, interrupt_id } = await asked({ text: "One?" });
  await alice.answer(id, interrupt_id, { text: "1" });
  const other = String((await alice.delegate("scout")).body.id);
  const { leases } = (await scout.lease("scout", { max: 2 })).body;
  expect(leases).toMatchObject([{ delegation: { id } }, { delegation: { id: other } }]);
  for (const [at, text] of ["Other?", "Two?"].entries()) {
    clock.offset_ms += 10;
    const { lease_id, delegation } = leases[1 - at];
    const { body } = await scout.interrupt(lease_id, { text });
    await alice.answer(delegation.id, body.interrupt_id, { text });
  }
  const texts = async () =>
    (await answersOf(alice)).map(
      ({ requests: [one] }: { requests: { question_preview: string }[] }) => one?.question_preview,
    );
  expect(await texts()).toEqual(["Two?", "Other?", "One?"]);
  const delegator = new Delegator({ url, token: alice.token });
  const paged: string[] = [];
  for await (const { requests } of delegator.answers({ target: "scout" }, { pageSize: 1 }))
    paged.push(...requests.map(({ question_preview }) => question_preview));
  expect(paged).toEqual(["Two?", "Other?", "One?"]);
  await alice.cancel(id);
  expect((await alice.erase(id)).status).toBe(204);
  expect(await texts()).toEqual(["Other?"]);
  await alice.cancel(other);
  await alice.erase(other);
  expect(await settledKeys(redis)).toEqual([]);
});

test("the retention removes them with their delegation", async () => {
  const { alice, clock, gateway, redis, asked } = await setup({ retentionMs: 1_000_000 });
  const { id, interrupt_id } = await asked({ text: "One?" });
  await alice.answer(id, interrupt_id, { text: "1" });
  await alice.cancel(id);
  expect(await settledKeys(redis)).toHaveLength(3);
  clock.offset_ms = 1_010_000;
  await gateway.sweep.tick();
  expect((await alice.get(id)).status).toBe(404);
  expect(await settledKeys(redis)).toEqual([]);
});

describe.each([1, 4])("with %i shards", (shards) => {
  test("pages have neither a gap nor a repeat, also where instants are equal", async () => {
    const { api, alice, gateway } = await setup({ shards });
    const { broker } = gateway;
    const targets = ["scout", "agent-0"];
    await api.agent("agent-0");
    await Promise.all(Array.from({ length: 24 }, (_, n) => alice.delegate(targets[n % 2] ?? "")));
    const leased = await Promise.all(targets.map((target) => api.lease(target, { max: 32 })));
    const made = leased.flatMap(({ body }) => body.leases);
    const ids: string[] = made.map(({ delegation }) => delegation.id);
    const asked = await Promise.all(made.map(({ lease_id }) => api.interrupt(lease_id, { text: "Go on?" })));
    await Promise.all(
      ids.map((id, n) => {
        const { interrupt_id } = asked[n]?.body ?? {};
        const params = { interrupt_id, answers: '{"r":{}}', stamp: "no such text" };
        const event = {
          ...{ interrupt_id: JSON.stringify(interrupt_id), by: '"operator"', via: '"rest"' },
          answers: '{"r":{}}',
        };
        return broker.writer.move({ move: "answer", id, params, event });
      }),
    );
    const found = await all(api, "limit=5");
    expect(found.map((one) => one.delegation_id).sort()).toEqual(ids.sort());
    const times = found.map((one) => one.settled_at);
    expect(times).toEqual([...times].sort().reverse());
    expect(new Set(times).size).toBeLessThan(times.length);
    const mine = await all(api, "limit=7&target=agent-0");
    expect(mine.map((one) => one.target)).toEqual(Array(12).fill("agent-0"));
  });
});

test("everybody sees the answers of the delegations that they see", async () => {
  const { url, api, alice, ann, scout, asked } = await setup();
  const { id, interrupt_id } = await asked({ text: "One?" });
  await ann.answer(id, interrupt_id, { text: "1" });
  const seen = await Promise.all(
    ["caller:bob", "agent:other", "viewer:eve"].map(async (one) => answersOf(await as(url, one))),
  );
  expect(seen.map((list) => list.length)).toEqual([0, 0, 1]);
  for (const one of [api, alice, ann, scout]) expect(await answersOf(one)).toHaveLength(1);
  const bob = await as(url, "caller:bob");
  for (const query of ["target=scout", "delegator=caller:alice", "by=approver:ann"])
    expect([await answersOf(bob, query), (await answersOf(ann, query)).length]).toEqual([[], 1]);
  expect(await answersOf(ann, "by=approver:bo")).toEqual([]);
  // A new agent of the name sees nothing of the old one.
  await alice.cancel(id);
  expect((await api.call("DELETE", "/v1/agents/scout")).status).toBeLessThan(300);
  await api.agent("scout");
  expect(await answersOf(await as(url, "agent:scout"))).toEqual([]);
});

test("answers before an instant are left out, and a cursor that is none is refused", async () => {
  const { alice, clock, asked } = await setup();
  const { id, interrupt_id } = await asked({ text: "One?" });
  await alice.answer(id, interrupt_id, { text: "1" });
  const [{ settled_at }] = await answersOf(alice);
  expect(await answersOf(alice, `since=${settled_at}`)).toHaveLength(1);
  clock.offset_ms = 1;
  const later = new Date(Date.parse(settled_at) + 1).toISOString();
  expect(await answersOf(alice, `since=${later}`)).toEqual([]);
  for (const cursor of ["x", "1.dlg_0_x", "1.dlg_0_x.1"])
    expect((await alice.call("GET", `/v1/answers?cursor=${cursor}`)).body).toMatchObject({
      code: "invalid_request",
      details: { issues: [{ path: "cursor" }] },
    });
});

test("a redriven delegation keeps the answers of the failed one apart", async () => {
  const { alice, ann, clock, gateway, asked, scout } = await setup();
  const { id } = await asked({ text: "Quick?", expires_in_seconds: 10 });
  clock.offset_ms = 11_000;
  await gateway.sweep.tick();
  const again = String((await alice.redrive(id)).body.id);
  const [{ lease_id }] = (await scout.lease("scout")).body.leases;
  const { interrupt_id } = (await scout.interrupt(lease_id, { text: "Quick?" })).body;
  await ann.answer(again, interrupt_id, { text: "yes" });
  expect(await answersOf(alice)).toMatchObject([
    { delegation_id: again, outcome: "answered" },
    { delegation_id: id, outcome: "expired" },
  ]);
});

test("who decided about an action is in the audit log, with the first changes", async () => {
  const { api, ann, alice, asked: ask } = await setup();
  /** Answered work would be leased first. */
  const asked = async (question: Record<string, unknown>) => {
    for (const { id } of (await alice.call("GET", "/v1/delegations")).body.delegations)
      await alice.cancel(id);
    return ask(question);
  };
  const one = await asked(SCALE);
  await ann.answer(one.id, one.interrupt_id, {
    decision: "approve",
    data: { ...SCALE.action.arguments, replicas: 5 },
  });
  const two = await asked({ text: "Why?" });
  await ann.answer(two.id, two.interrupt_id, { text: "a text is no decision" });
  const three = await asked({ action: { name: "n".repeat(256), arguments: {} }, edit: true });
  const data = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`é${n}`, "é".repeat(100)]));
  await api.answer(three.id, three.interrupt_id, { decision: "approve", data });
  const many = await asked({
    requests: Array.from({ length: 20 }, (_, n) => ({
      request_id: `${n}`,
      action: { name: "n".repeat(200) },
    })),
  });
  const answers = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [n, { decision: n ? "approve" : "deny" }]),
  );
  await alice.answer(many.id, many.interrupt_id, { answers });
  const { entries } = (await api.call("GET", "/v1/audit?action=delegation.decide")).body;
  const head = { target: "scout", via: "rest" };
  expect(entries).toMatchObject([
    { by: "caller:alice", subject: many.id, details: { ...head, approved: 19, denied: 1 } },
    { by: "operator", subject: three.id, details: head },
    {
      by: "approver:ann",
      subject: one.id,
      details: {
        ...head,
        interrupt_id: one.interrupt_id,
        decisions: [
          {
            action: "scale",
            decision: "approve",
            changes: [{ path: ["replicas"], from: 3, to: 5 }],
            total: 1,
          },
        ],
      },
    },
  ]);
  expect(entries[1].details.decisions[0].total).toBe(40);
  expect(JSON.stringify(entries)).not.toContain("truncated");
  expect((await api.call("GET", "/v1/audit?by=operator&action=delegation.decide")).body.entries).toHaveLength(
    1,
  );
});

/** The answer to an `auth` question is shown only to the lease's holder, and erased when the delegation ends. */
import { expect, test } from "vitest";
import { as, client, request, startBroker } from "../support/broker.ts";
import { dump, keysIn } from "../support/dump.ts";
import { callModern, requestModern, TASKS_CAPABILITY } from "../support/mcp.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const SECRET = "geheimnis7f3a";

async function setup(delegation: Record<string, unknown> = {}) {
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const { url } = broker;
  const api = client(url);
  await api.agent("scout", { limits: { max_attempts: 2 } });
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const { id } = (await alice.delegate("scout", delegation)).body;
  const next = async () => (await scout.lease("scout")).body.leases[0];
  const { lease_id } = await next();
  const question = { kind: "auth", request_id: "token", text: "A token?" };
  const { interrupt_id } = (await scout.interrupt(lease_id, question)).body;
  const secret = { text: SECRET, data: { password: SECRET } };
  return { ...broker, api, scout, alice, id: String(id), next, question, interrupt_id, secret };
}

test("everybody except the holder sees only that there was an answer, and who gave it", async () => {
  const hook = await startReceiver();
  const { url, api, scout, alice, id, next, question, interrupt_id, secret, log } = await setup({
    callback: { url: hook.url },
  });
  const answered = await alice.answer(id, interrupt_id, { ...secret, decision: "approve" });
  expect(answered.status).toBe(200);
  const shown = answered.body.history.at(-1);
  expect(shown).toMatchObject({
    role: "ROLE_USER",
    parts: [],
    metadata: { request_id: "token", decision: "approve", by: "caller:alice", redacted: true },
  });

  const lease = await next();
  expect(lease.delegation.history.at(-1)).toMatchObject({
    parts: [{ text: SECRET }, { data: { password: SECRET } }],
    metadata: { request_id: "token", by: "caller:alice", at: shown.metadata.at },
  });
  expect(lease.delegation.history.at(-1).metadata).not.toHaveProperty("redacted");
  expect(lease.request.params.message.parts[0]).toEqual({ text: SECRET });
  const again = (await scout.interrupt(lease.lease_id, question)).body;
  expect(again.answers.token).toMatchObject({ decision: "approve", data: { password: SECRET } });

  const json = { accept: "application/json" };
  const rpc = (token: string) =>
    request(url, "POST", "/a2a/scout/rpc", {
      token,
      headers: { "a2a-version": "1.0" },
      body: { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id } },
    });
  const readers = [api, scout, alice, await as(url, "approver:ann"), await as(url, "viewer:eve")];
  const read: unknown[] = [answered.body];
  for (const reader of readers) {
    read.push((await reader.get(id)).body, (await reader.call("GET", "/v1/delegations")).body);
    read.push((await reader.events(id)).body, (await reader.events(id, "")).body);
    read.push((await reader.call("GET", "/v1/events?after=0", undefined, json)).body);
  }
  for (const { token } of [alice, scout]) {
    const task = await rpc(token);
    expect(task.body.result.history.at(-1).parts).toEqual([
      { data: { decision: "approve", redacted: true } },
    ]);
    const status = await callModern(url, token, "check_task_status", { delegation_id: id, full: true });
    expect(status.body.result.structuredContent.history.at(-1)).toMatchObject({ redacted: true });
    read.push(task.body, status.body);
  }
  read.push((await alice.call("GET", "/v1/results?after=0")).body);
  read.push((await scout.heartbeat(lease.lease_id, { progress: { done: 1 } })).body);
  read.push((await scout.reply(lease.lease_id)).body);
  await until(() => hook.received.length >= 2);
  read.push(hook.received, (await alice.call("GET", "/v1/results?after=0")).body, log);
  expect(JSON.stringify(read)).not.toContain(SECRET);
});

test("the secret is kept for the next attempt", async () => {
  const { alice, id, next, interrupt_id, secret, clock, gateway } = await setup();
  expect((await alice.answer(id, interrupt_id, secret)).status).toBe(200);
  await next();
  clock.offset_ms = 61_000;
  await gateway.sweep.tick();
  clock.offset_ms = 70_000;
  const { lease_id, attempt, delegation } = await next();
  expect([attempt, delegation.history.at(-1).parts[0]]).toEqual([2, { text: SECRET }]);
  expect(lease_id).toBeDefined();
});

const ENDS = {
  completed: ({ scout }, lease) => scout.reply(lease),
  failed: ({ scout }, lease) => scout.reply(lease, { state: "failed", text: undefined }),
  rejected: ({ scout }, lease) => scout.reply(lease, { state: "rejected", text: undefined }),
  canceled: ({ alice, id }) => alice.cancel(id),
  expired: async ({ clock, gateway }) => {
    clock.offset_ms = 604_800_000;
    await gateway.sweep.tick();
  },
} satisfies Record<string, (story: Awaited<ReturnType<typeof setup>>, lease: string) => Promise<unknown>>;

test.each(Object.entries(ENDS))(
  "no part of the secret is stored once the delegation is %s",
  async (_state, end) => {
    const story = await setup();
    const { alice, id, next, interrupt_id, secret, redis } = story;
    await alice.answer(id, interrupt_id, secret, "once");
    const { lease_id } = await next();
    const stored = async () => JSON.stringify(await dump(redis));
    expect(await stored()).toContain(SECRET);
    await end(story, lease_id);
    expect((await alice.get(id)).body.finished_at).not.toBeNull();
    expect(await stored()).not.toContain(SECRET);
    expect((await keysIn(redis, "*:secrets")).length).toBe(0);
    // A client that did not receive the answer may repeat its call.
    expect((await alice.answer(id, interrupt_id, secret, "once")).status).toBe(200);
  },
);

test("a guess of the secret is answered as any other, by whomever, in whatever state", async () => {
  const { url, api, alice, scout, id, next, interrupt_id, secret } = await setup();
  const ann = await as(url, "approver:ann");
  const answered = await ann.answer(id, interrupt_id, secret, "once");
  const guesses = [
    [secret, undefined],
    [secret, "other"],
    [{ text: SECRET }, undefined],
    [{ text: "another" }, undefined],
    [{ decision: "deny" }, undefined],
    [{ answers: { token: secret } }, undefined],
    [{ answers: { elsewhere: { text: "x" } } }, undefined],
  ] as const;
  /** All guesses get one answer, but for the id of the request. */
  const tryAll = async () => {
    const seen = new Set<string>();
    for (const by of [alice, ann, api])
      for (const [body, key] of guesses) {
        const { status, body: problem } = await by.answer(id, interrupt_id, body, key);
        seen.add(JSON.stringify([status, { ...problem, request_id: null }]));
      }
    expect([...seen]).toEqual([expect.stringMatching(/^\[409,.*"interrupt_not_open"/)]);
    // Only the principal that answered can repeat it, with whatever content.
    expect((await alice.answer(id, interrupt_id, secret, "once")).status).toBe(409);
    for (const body of [secret, { text: "another" }])
      expect((await ann.answer(id, interrupt_id, body, "once")).status).toBe(200);
  };
  expect(answered.status).toBe(200);
  await tryAll();
  const { lease_id } = await next();
  await tryAll();
  const second = (await scout.interrupt(lease_id, { text: "And now?" })).body.interrupt_id;
  await tryAll();
  await alice.answer(id, second, { text: "go" });
  expect((await alice.answer(id, second, { text: "go" })).status).toBe(200);
  await scout.reply((await next()).lease_id, { state: "failed", text: undefined });
  await tryAll();
  expect((await alice.redrive(id)).status).toBe(202);
  await tryAll();
});

test("an A2A message by its id, and an MCP call by its key, answer a question of kind auth once", async () => {
  const { url, alice, scout, id, next, interrupt_id, question } = await setup();
  const send = async (messageId: string) => {
    const message = {
      messageId,
      taskId: id,
      role: "ROLE_USER",
      parts: [{ text: SECRET }],
      metadata: { interrupt_id },
    };
    const { body } = await request(url, "POST", "/a2a/scout/rpc", {
      token: alice.token,
      headers: { "a2a-version": "1.0" },
      body: {
        jsonrpc: "2.0",
        id: 1,
        method: "SendMessage",
        params: { message, configuration: { returnImmediately: true } },
      },
    });
    return body.error?.data[0].metadata.code ?? null;
  };
  expect([await send("m1"), await send("m1"), await send("m2")]).toEqual([null, null, "interrupt_not_open"]);
  const again = { ...question, request_id: "pin" };
  const second = (await scout.interrupt((await next()).lease_id, again)).body.interrupt_id;
  const call = async (idempotency_key: string) => {
    const input = { delegation_id: id, interrupt_id: second, text: SECRET, idempotency_key };
    const { body } = await callModern(url, alice.token, "answer_task", input);
    return body.result.structuredContent.error?.code ?? null;
  };
  expect([await call("k1"), await call("k1"), await call("k2")]).toEqual([null, null, "interrupt_not_open"]);
});

test("a key that is not printable ASCII is refused, and the question stays open", async () => {
  const { alice, id, interrupt_id } = await setup();
  for (const key of ["k".repeat(256), "schl\u00fcssel"])
    expect((await alice.answer(id, interrupt_id, { text: "x" }, key)).body.details.issues).toEqual([
      { path: "Idempotency-Key", reason: "1 to 255 printable ASCII characters" },
    ]);
  expect((await alice.get(id)).body.interrupt.id).toBe(interrupt_id);
});

test.each(["answered", "canceled"] as const)(
  "partial answers are erased with their question when it is %s",
  async (end) => {
    const { url, alice, scout, redis } = await setup();
    const { id } = (await alice.delegate("scout")).body;
    const { lease_id } = (await scout.lease("scout")).body.leases[0];
    const requests = [
      { request_id: "a", text: "A?" },
      { request_id: "b", text: "B?" },
    ];
    const { interrupt_id } = (await scout.interrupt(lease_id, { requests })).body;
    const content = { answer: SECRET };
    const inputResponses = { [`${interrupt_id}:a`]: { action: "accept", content } };
    const capabilities = { ...TASKS_CAPABILITY, elicitation: { form: {} } };
    await requestModern(url, alice.token, "tasks/update", { taskId: id, inputResponses }, { capabilities });
    expect(JSON.stringify(await dump(redis))).toContain(SECRET);
    await (end === "canceled"
      ? alice.cancel(id)
      : alice.answer(id, interrupt_id, { answers: { a: { text: "1" }, b: { text: "2" } } }));
    expect(JSON.stringify(await dump(redis))).not.toContain(SECRET);
  },
);

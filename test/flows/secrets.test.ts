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

test("the secret is kept for the next attempt, and a repeated answer is the same answer", async () => {
  const { alice, id, next, interrupt_id, secret, clock, gateway } = await setup();
  const answer = (more: object) => alice.answer(id, interrupt_id, { ...secret, ...more });
  const { version } = (await answer({})).body;
  expect((await answer({})).body.version).toBe(version);
  expect((await answer({ text: "another" })).body.code).toBe("interrupt_not_open");
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
    await alice.answer(id, interrupt_id, secret);
    const { lease_id } = await next();
    const stored = async () => JSON.stringify(await dump(redis));
    expect(await stored()).toContain(SECRET);
    await end(story, lease_id);
    expect((await alice.get(id)).body.finished_at).not.toBeNull();
    expect(await stored()).not.toContain(SECRET);
    expect((await keysIn(redis, "*:secrets")).length).toBe(0);
    // A client that did not receive the answer may repeat its call.
    expect((await alice.answer(id, interrupt_id, secret)).status).toBe(200);
  },
);

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

/** Approval in advance: which questions the broker approves in the delegator's name, and which it never does. */
import { expect, test, vi } from "vitest";
import { Delegator } from "../../src/client/delegator.ts";
import type { Command } from "../../src/lifecycle/command.ts";
import { readRecord } from "../../src/lifecycle/stored-delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { BINDINGS, collect, rawCalls, sdkClient, sdkMessage, sendParams } from "../doors/a2a/support.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";
import { mcpClient } from "../support/mcp.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const scout = await as(broker.url, "agent:scout");
  const alice = await as(broker.url, "caller:alice");
  const leased = async (auto_approve?: unknown, more: Record<string, unknown> = {}) => {
    const { id } = (
      await alice.delegate("scout", { ...(auto_approve !== undefined && { auto_approve }), ...more })
    ).body;
    const [lease] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
    return { id: String(id), lease };
  };
  const askedWith = async (auto_approve: unknown, question: Record<string, unknown>) => {
    const { id, lease } = await leased(auto_approve);
    const asked = await scout.interrupt(lease.lease_id, question);
    expect(asked.status).toBe(200);
    return { id, lease, asked, after: (await alice.get(id)).body };
  };
  return { ...broker, api, scout, alice, leased, askedWith };
}

const DEPLOY = { text: "Shall I?", action: { name: "deploy", arguments: { to: "prod" } } };
const DECIDE = { text: "Go on?", options: ["deny", "approve"] };

test("an approved question is answered in the delegator's name, in the same step", async () => {
  const { api, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  expect(lease.delegation.auto_approve).toBe(true);
  const asked = await scout.interrupt(lease.lease_id, DEPLOY);
  const { interrupt_id } = asked.body;
  expect((await alice.get(id)).body).toMatchObject({
    state: "submitted",
    interrupt: null,
    auto_approve: true,
  });

  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  expect(back.delegation.history).toMatchObject([
    { role: "ROLE_AGENT", parts: [{ text: "Shall I?" }] },
    { role: "ROLE_USER", metadata: { interrupt_id, decision: "approve", by: "caller:alice", auto: true } },
  ]);
  const [, answer] = back.delegation.history;
  expect(Date.parse(answer.metadata.at)).toBeGreaterThan(0);
  expect(back).toMatchObject({ attempt: 1, delegation: { id } });
  expect((await scout.reply(back.lease_id)).body.outcome).toBe("matched");

  const { events } = (await api.events(id)).body;
  expect(events.map((event: { status?: string; type: string }) => event.status ?? event.type)).toEqual([
    "queued",
    "leased",
    "interrupted",
    "answered",
    "leased",
    "DELEGATION_COMPLETE",
  ]);
  expect(events[3]).toMatchObject({ interrupt_id, by: "caller:alice", auto: true, decision: "approve" });
  checkHistory(events, "finished");
});

test("the same answer by a person afterwards changes nothing; another one is too late", async () => {
  const { alice, askedWith } = await setup();
  const { id, asked, after } = await askedWith(true, DECIDE);
  const { interrupt_id } = asked.body;
  const again = await alice.answer(id, interrupt_id, { decision: "approve" });
  expect([again.status, again.body.version]).toEqual([200, after.version]);
  expect((await alice.answer(id, interrupt_id, { decision: "deny" })).body.code).toBe("interrupt_not_open");
});

test("an agent that asks again gets the answer, and keeps its lease", async () => {
  const { scout, leased } = await setup();
  const { lease } = await leased(true);
  await scout.interrupt(lease.lease_id, { ...DEPLOY, request_id: "first" });
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  expect(
    (await scout.interrupt(back.lease_id, { ...DEPLOY, request_id: "first" })).body.answers,
  ).toMatchObject({
    first: { decision: "approve" },
  });
  expect((await scout.reply(back.lease_id)).body.outcome).toBe("matched");
});

test("a caller that waits is not told of a question that is approved", async () => {
  const { scout, alice } = await setup();
  const waiting = alice.delegate("scout", { auto_approve: true }, { prefer: "wait=30" });
  const [lease] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await scout.interrupt(lease.lease_id, DECIDE);
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await scout.reply(back.lease_id, { text: "done" });
  expect((await waiting).body).toMatchObject({ state: "completed" });
});

test("nobody is called or told to answer it", async () => {
  const { url } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const { url: callback, received } = await startReceiver();
  const { id } = (await alice.delegate("scout", { auto_approve: true, callback: { url: callback } })).body;
  const results = async () => (await alice.call("GET", "/v1/results")).body.results;
  const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
  await scout.interrupt(lease.lease_id, DEPLOY);
  expect(await results()).toEqual([]);
  const [back] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
  // Only one that must be answered is called back.
  await scout.interrupt(back.lease_id, { text: "Which branch?" });
  expect(await results()).toMatchObject([{ id, state: "input_required" }]);
  await until(() => received.length > 0, { what: "the callback" });
  expect(received.map(({ body }) => JSON.parse(body))).toMatchObject([
    { status: "interrupted", interrupt: { requests: [{ message: { parts: [{ text: "Which branch?" }] } }] } },
  ]);
});

test("the approval of one action is not the answer for another with the same request_id", async () => {
  const { scout, alice, leased } = await setup();
  const { id, lease } = await leased({ actions: ["deploy"] });
  await scout.interrupt(lease.lease_id, { ...DEPLOY, request_id: "go" });
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  const other = { text: "Shall I?", action: { name: "drop", arguments: {} }, request_id: "go" };
  expect((await scout.interrupt(back.lease_id, other)).body.answers).toBeUndefined();
  expect((await alice.get(id)).body).toMatchObject({
    state: "input_required",
    interrupt: { requests: [{ action: { name: "drop" } }] },
  });
});

test.each([
  ["TASK_STATE_AUTH_REQUIRED", "auth_required"],
  ["TASK_STATE_INPUT_REQUIRED", "input_required"],
])("an A2A agent's %s waits for a person, whatever its message has", async (taskState, state) => {
  const { api, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  let lease_id = lease.lease_id;
  // All that makes a question of the broker's own protocol an approval.
  const { action, options } = { ...DEPLOY, ...DECIDE };
  for (const looks of [{ options }, { action }, { action, options }]) {
    const data = { ...looks, kind: "input", decision: "approve", auto: true };
    const parts = [{ text: "approve", metadata: data }, { data }];
    const message = { messageId: crypto.randomUUID(), role: "ROLE_AGENT", parts, metadata: data };
    const task = { id: "t", status: { state: taskState, message }, metadata: data };
    const reply = { jsonrpc: "2.0", id: lease_id, result: { task } };
    expect((await scout.call("POST", "/v1/agents/scout/replies", reply)).status).toBe(200);
    const asked = (await alice.get(id)).body;
    expect(asked.state).toBe(state);
    await alice.answer(id, asked.interrupt.id, { text: "go on" });
    lease_id = (await scout.lease("scout", { wait_seconds: 5 })).body.leases[0].lease_id;
  }
  const { events } = (await api.events(id)).body;
  expect(events.filter(({ status }: { status?: string }) => status === "interrupted")).toHaveLength(3);
  expect(JSON.stringify(events.map(({ auto }: { auto?: true }) => auto))).not.toContain("true");
});

test.each([
  ["options", DECIDE],
  ["an action", DEPLOY],
])(
  "an approval of %s is not the answer to a credential with the same request_id",
  async (_name, question) => {
    const { scout, alice, leased } = await setup();
    const { id, lease } = await leased(true);
    await scout.interrupt(lease.lease_id, { ...question, request_id: "go" });
    const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
    const asked = await scout.interrupt(back.lease_id, { ...question, kind: "auth", request_id: "go" });
    expect(asked.body.answers).toBeUndefined();
    const { state, interrupt } = (await alice.get(id)).body;
    expect([state, interrupt.id]).toEqual(["auth_required", asked.body.interrupt_id]);
  },
);

test.each([
  ["free text", { text: "Which branch?" }],
  ["a choice", { text: "When?", options: ["approve", "deny", "later"] }],
  ["data beside a decision", { ...DECIDE, schema: { type: "object" } }],
])("an approval of options is not the answer to %s with the same request_id", async (_name, question) => {
  const { api, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  await scout.interrupt(lease.lease_id, { ...DECIDE, request_id: "go" });
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  // From now on, a person must be asked.
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  const asked = await scout.interrupt(back.lease_id, { ...question, request_id: "go" });
  expect([asked.status, asked.body.answers]).toEqual([200, undefined]);
  const { state, interrupt } = (await alice.get(id)).body;
  expect([state, interrupt.id]).toEqual(["input_required", asked.body.interrupt_id]);
});

test.each([
  ["options", DECIDE],
  ["an action", DEPLOY],
])("once a person must be asked, a stored approval of %s answers nothing", async (_name, question) => {
  const { api, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  const ask = (lease_id: string, text: string) =>
    scout.interrupt(lease_id, { ...question, text, request_id: "confirm" });
  const next = async () => (await scout.lease("scout", { wait_seconds: 5 })).body.leases[0].lease_id;
  const approvals = (who: string) => api.call("PATCH", "/v1/agents/scout", { approvals: who });
  await ask(lease.lease_id, "Delete staging?");
  const second = await next();
  await approvals("person");
  const asked = await ask(second, "Delete PRODUCTION?");
  expect([asked.status, asked.body.answers]).toEqual([200, undefined]);
  const { interrupt_id } = asked.body;
  expect((await alice.get(id)).body).toMatchObject({
    state: "input_required",
    interrupt: { id: interrupt_id, requests: [{ message: { parts: [{ text: "Delete PRODUCTION?" }] } }] },
  });
  // What the person decides holds, also after the agent's owner allows approval in advance again.
  await alice.answer(id, interrupt_id, { decision: "deny" });
  const third = await next();
  const answers = { confirm: { decision: "deny" } };
  expect((await ask(third, "Delete PRODUCTION?")).body).toMatchObject({ interrupt_id, answers });
  await approvals("any");
  expect((await ask(third, "Delete PRODUCTION?")).body).toMatchObject({ interrupt_id, answers });
});

test("what a person decided about an action outside the list holds once a person must be asked about all", async () => {
  const { api, scout, alice, leased } = await setup();
  const { id, lease } = await leased({ actions: ["read*"] });
  const question = { ...DEPLOY, request_id: "confirm" };
  const { interrupt_id } = (await scout.interrupt(lease.lease_id, question)).body;
  expect((await alice.get(id)).body.state).toBe("input_required");
  await alice.answer(id, interrupt_id, { decision: "deny" });
  const [next] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  expect((await scout.interrupt(next.lease_id, question)).body).toMatchObject({
    interrupt_id,
    answers: { confirm: { decision: "deny" } },
  });
});

test("a question whose approval would exceed the delegation's size is refused, not left open", async () => {
  const { gateway, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  const { redis, shards } = gateway.broker;
  const bytes = async () => (await readRecord(redis, shards, id))?.get("bytes") ?? 0;
  const put = async (artifactId: string, length: number) => {
    const artifact = { artifactId, parts: [{ text: "x".repeat(length) }] };
    const sent = await scout.call("POST", `/v1/leases/${lease.lease_id}/artifacts`, { artifact });
    expect(sent.status).toBe(200);
  };
  for (const name of ["a", "b", "c"]) await put(name, 1_000_000);
  const before = await bytes();
  await put("d", 1);
  const overhead = (await bytes()) - before - 1;
  // The question takes about 120 bytes, its answer about 330.
  await put("d", LIMITS.delegation_bytes.value - 300 - before - overhead);
  const asked = await scout.interrupt(lease.lease_id, DECIDE);
  expect([asked.status, asked.body.code]).toEqual([413, "payload_too_large"]);
  expect((await alice.get(id)).body).toMatchObject({ state: "working", history: [], interrupt: null });
  expect((await scout.reply(lease.lease_id, { text: "ok" })).body.outcome).toBe("matched");
});

/** In the script, `%` is no pattern for the stamp, so this answer fails with an error of the script. */
const failing = (answer: Command): Command => ({ ...answer, params: { ...answer.params, stamp: "%" } });

test("an approval that the script fails to make is made again, so that no question is left open unseen", async () => {
  const { gateway, scout, alice, leased } = await setup();
  const { writer } = gateway.broker;
  const moveBoth = writer.moveBoth.bind(writer);
  const both = vi.spyOn(writer, "moveBoth").mockImplementation((one, two) => moveBoth(one, failing(two)));
  const first = await leased(true);
  expect((await scout.interrupt(first.lease.lease_id, DEPLOY)).status).toBe(200);
  expect((await alice.get(first.id)).body).toMatchObject({ state: "submitted", interrupt: null });
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  expect(back.delegation.history[1].metadata).toMatchObject({ decision: "approve", auto: true });
  await scout.reply(back.lease_id);

  // If that fails, too, the agent hears of it, and its next try approves.
  const { id, lease } = await leased(true);
  const move = writer.move.bind(writer);
  const moves = vi
    .spyOn(writer, "move")
    .mockImplementation((one, taker) => move(one.move === "answer" ? failing(one) : one, taker));
  expect((await scout.interrupt(lease.lease_id, DEPLOY)).status).toBe(500);
  expect((await alice.get(id)).body.state).toBe("input_required");
  moves.mockRestore();
  both.mockRestore();
  const again = await scout.interrupt(lease.lease_id, DEPLOY);
  const { state, history } = (await alice.get(id)).body;
  expect([again.status, state, history]).toMatchObject([
    ...[200, "submitted"],
    [{}, { metadata: { interrupt_id: again.body.interrupt_id, decision: "approve", auto: true } }],
  ]);
  const { version } = (await alice.get(id)).body;
  expect((await scout.interrupt(lease.lease_id, DEPLOY)).body).toEqual(again.body);
  expect((await alice.get(id)).body.version).toBe(version);
});

test("a question that a person is asked because memory is short keeps that person's answer", async () => {
  const { api, gateway, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  const question = { ...DEPLOY, request_id: "go" };
  const next = async () => (await scout.lease("scout", { wait_seconds: 5 })).body.leases[0].lease_id;
  const short = () => vi.spyOn(gateway.broker.writer, "moveBoth").mockResolvedValueOnce(null);
  short();
  const { interrupt_id } = (await scout.interrupt(lease.lease_id, question)).body;
  expect((await alice.get(id)).body).toMatchObject({
    state: "input_required",
    interrupt: { id: interrupt_id },
  });
  // A repeat does not approve what a person is asked.
  expect((await scout.interrupt(lease.lease_id, question)).body).toEqual({ interrupt_id });
  expect((await alice.answer(id, interrupt_id, { decision: "deny" })).status).toBe(200);
  const lease_id = await next();
  const denied = { interrupt_id, answers: { go: { decision: "deny" } } };
  expect((await scout.interrupt(lease_id, question)).body).toMatchObject(denied);
  short();
  expect((await scout.interrupt(lease_id, question)).body).toMatchObject(denied);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  expect((await scout.interrupt(lease_id, question)).body).toMatchObject(denied);
});

test("what was approved in advance stays approved when memory is short", async () => {
  const { gateway, scout, leased } = await setup();
  const { lease } = await leased(true);
  const question = { ...DEPLOY, request_id: "go" };
  const { interrupt_id } = (await scout.interrupt(lease.lease_id, question)).body;
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  vi.spyOn(gateway.broker.writer, "moveBoth").mockResolvedValueOnce(null);
  expect((await scout.interrupt(back.lease_id, question)).body).toMatchObject({
    interrupt_id,
    answers: { go: { decision: "approve" } },
  });
});

test("a stored setting that cannot be read approves nothing", async () => {
  const { redis, gateway, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  const key = gateway.broker.shards.ofId(id)?.delegation(id) ?? "";
  await redis.hset(key, "auto_approve", JSON.stringify({ actions: 7 }));
  expect((await scout.interrupt(lease.lease_id, DEPLOY)).status).toBe(200);
  expect((await alice.get(id)).body.state).toBe("input_required");
});

test("one poll reads the agent's setting once, however many leases it gets", async () => {
  const { gateway, scout, alice } = await setup();
  const one = { target: "scout", task: "go", auto_approve: true };
  await alice.call("POST", "/v1/delegations/batch", { delegations: [one, one, one] });
  const reads = vi.spyOn(gateway.broker.agents, "read");
  const { leases } = (await scout.lease("scout", { wait_seconds: 5, max: 3 })).body;
  const shown = leases.map((lease: { delegation: typeof one }) => lease.delegation.auto_approve);
  expect(shown).toEqual([true, true, true]);
  expect(reads).toHaveBeenCalledTimes(1);
});

test("a list approves the actions that it names, exactly or by their beginning", async () => {
  const { scout, askedWith } = await setup();
  const named = (name: string) => ({ text: "?", action: { name } });
  const list = { actions: ["deploy", "fs.*"] };
  for (const name of ["deploy", "fs.read", "fs."]) {
    expect((await askedWith(list, named(name))).after.state, name).toBe("submitted");
    const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
    await scout.reply(back.lease_id);
  }
  for (const name of ["Deploy", "deploy2", "redeploy", "fs", "net.fs.read", "*"]) {
    expect((await askedWith(list, named(name))).after.state, name).toBe("input_required");
  }
  expect((await askedWith(list, DECIDE)).after.state).toBe("input_required");
});

test.each([
  ["a credential", { ...DECIDE, kind: "auth" }],
  ["a credential for an action", { ...DEPLOY, kind: "auth" }],
  ["free text", { text: "Which branch?" }],
  ["other options", { text: "?", options: ["approve", "deny", "later"] }],
  ["an option less", { text: "?", options: ["approve"] }],
  ["an option twice", { text: "?", options: ["approve", "approve"] }],
  ["data", { text: "?", schema: { type: "object" } }],
  ["data beside a decision", { ...DECIDE, schema: { type: "object" } }],
  ["one part that is not approved", { requests: [DEPLOY, { text: "Which branch?" }] }],
])("a question for %s waits for a person", async (_name, question) => {
  const { id, asked, after } = await (await setup()).askedWith(true, question);
  expect(after.id).toBe(id);
  expect(after.state).toMatch(/_required$/);
  expect(after.interrupt.id).toBe(asked.body.interrupt_id);
});

test("several approved requests are answered together", async () => {
  const { scout, askedWith } = await setup();
  await askedWith(true, {
    requests: [
      { ...DEPLOY, request_id: "a" },
      { ...DECIDE, request_id: "b" },
    ],
  });
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  const answers = back.delegation.history.slice(2);
  expect(answers.map((one: { metadata: unknown }) => one.metadata)).toMatchObject([
    { request_id: "a", decision: "approve", auto: true },
    { request_id: "b", decision: "approve", auto: true },
  ]);
});

test("an agent whose questions need a person refuses such work, and its open questions wait", async () => {
  const { api, scout, alice, leased } = await setup();
  const before = await leased(true);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  const refused = await alice.delegate("scout", { auto_approve: { actions: ["deploy"] } });
  expect([refused.status, refused.body.code, refused.body.category]).toEqual([
    422,
    "approval_required",
    "PROTOCOL",
  ]);
  await scout.interrupt(before.lease.lease_id, DEPLOY);
  expect((await alice.get(before.id)).body.state).toBe("input_required");
  expect((await alice.delegate("scout")).status).toBe(202);
});

test("no API lets such work through", async () => {
  const { api, url, alice } = await setup();
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  const delegations = [{ target: "scout", task: "go", auto_approve: true }];
  const batch = (await alice.call("POST", "/v1/delegations/batch", { delegations })).body.results;
  expect(batch[0].error.code).toBe("approval_required");
  const raw = rawCalls(url, alice.token);
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "go" }] };
  const params = { message, metadata: { auto_approve: true } };
  const a2a = [await raw.rpc("SendMessage", params), await raw.rpc("SendStreamingMessage", params)];
  for (const { body } of a2a) expect(body.error.data[0].metadata.code).toBe("approval_required");
  const { body } = await raw.rest("POST", "/message:send", params);
  expect(body.error.details[0].metadata.code).toBe("approval_required");
  const caller = await mcpClient(url, alice.token, "modern");
  for (const name of ["delegate_task", "delegate_task_async"]) {
    const refused = await caller.callTool({
      name,
      arguments: { agent: "scout", task: "go", auto_approve: true },
    });
    expect(JSON.stringify(refused)).toContain("approval_required");
  }
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

test("a change to approvals by a person holds at once, also at another gateway", async () => {
  const { api, scout, alice, leased, another } = await setup();
  const { id, lease } = await leased(true);
  const elsewhere = client((await another()).url, scout.token);
  // That gateway has read the agent's settings before.
  expect((await elsewhere.heartbeat(lease.lease_id)).status).toBe(200);
  expect((await elsewhere.call("GET", "/v1/agents/scout")).body.approvals).toBe("any");
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  await elsewhere.interrupt(lease.lease_id, DEPLOY);
  expect((await alice.get(id)).body.state).toBe("input_required");
});

test("a lease does not show it once a person must be asked, so that the worker asks", async () => {
  const { api, scout, alice, leased } = await setup();
  const metadata = { auto_approve: true };
  const { id, lease } = await leased(true, { metadata });
  expect(lease.delegation.auto_approve).toBe(true);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  await scout.release(lease.lease_id);
  const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  expect(back.delegation).toMatchObject({ id, metadata, state: "working" });
  expect(back.delegation.auto_approve).toBeUndefined();
  // The record still has it: it holds again when the owner allows it again.
  expect((await alice.get(id)).body.auto_approve).toBe(true);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "any" });
  await scout.interrupt(back.lease_id, DEPLOY);
  expect((await alice.get(id)).body.state).toBe("submitted");
});

test("a child does not inherit it; nor does a redriven delegation, if a person must be asked by then", async () => {
  const { api, url, scout, alice, leased } = await setup();
  await api.agent("helper");
  const helper = await as(url, "agent:helper");
  const parent = await leased(true);
  const child = await scout.delegate("helper", { parent_id: parent.id });
  expect([child.status, child.body.auto_approve]).toEqual([202, undefined]);
  const [work] = (await helper.lease("helper", { wait_seconds: 5 })).body.leases;
  await helper.interrupt(work.lease_id, DEPLOY);
  expect((await scout.get(child.body.id)).body.state).toBe("input_required");
  await scout.reply(parent.lease.lease_id, { state: "failed", error: { code: "broken", message: "no" } });
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  const second = await alice.redrive(parent.id);
  expect(second.body).toMatchObject({ redrive_of: parent.id, state: "submitted" });
  expect(second.body.auto_approve).toBeUndefined();
});

test("a redriven delegation keeps it if its delegator redrives it, not if the operator does", async () => {
  const { api, scout, alice, leased } = await setup();
  const failed = async () => {
    const { id, lease } = await leased({ actions: ["deploy"] });
    await scout.reply(lease.lease_id, { state: "failed", error: { code: "broken", message: "no" } });
    return id;
  };
  const own = await failed();
  expect((await alice.redrive(own)).body).toMatchObject({
    redrive_of: own,
    auto_approve: { actions: ["deploy"] },
  });
  await scout.lease("scout", { wait_seconds: 5 });
  const operators = await failed();
  const { body } = await api.redrive(operators);
  expect(body).toMatchObject({ redrive_of: operators, delegator: "caller:alice" });
  expect(body.auto_approve).toBeUndefined();
  await scout.lease("scout", { wait_seconds: 5 });
  const bulk = await failed();
  const many = await api.call("POST", "/v1/delegations/redrive", { target: "scout", limit: 1 });
  expect(many.body.delegations).toMatchObject([{ redrive_of: bulk }]);
  expect(many.body.delegations[0].auto_approve).toBeUndefined();
});

test("an agent that is deleted and created again while its work is redriven does not get the approval", async () => {
  const { api, clock, gateway, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  await scout.reply(lease.lease_id, { state: "failed", error: { code: "broken", message: "no" } });
  const { agents } = gateway.broker;
  const read = agents.read.bind(agents);
  vi.spyOn(agents, "read").mockImplementationOnce(async (name) => {
    const found = await read(name);
    expect((await api.call("DELETE", "/v1/agents/scout")).status).toBeLessThan(300);
    clock.offset_ms += 1_000;
    await api.agent("scout");
    return found;
  });
  const refused = await alice.redrive(id);
  expect([refused.status, refused.body.code]).toEqual([409, "agent_busy"]);
  expect(refused.body.title).toBe("The agent has live delegations, or is being changed");
  const redriven = await alice.redrive(id);
  expect(redriven.body).toMatchObject({ redrive_of: id });
  expect(redriven.body.auto_approve).toBeUndefined();
});

test("a delegation that is redriven at a new agent of the same name loses it", async () => {
  const { api, url, scout, alice, leased } = await setup();
  const { id, lease } = await leased(true);
  await scout.reply(lease.lease_id, { state: "failed", error: { code: "broken", message: "no" } });
  expect((await api.call("DELETE", "/v1/agents/scout")).status).toBeLessThan(300);
  await api.agent("scout");
  const other = await as(url, "agent:scout");
  const redriven = await alice.redrive(id);
  expect(redriven.body).toMatchObject({ redrive_of: id });
  expect(redriven.body.auto_approve).toBeUndefined();
  const [work] = (await other.lease("scout", { wait_seconds: 5 })).body.leases;
  await other.interrupt(work.lease_id, DEPLOY);
  expect((await alice.get(redriven.body.id)).body.state).toBe("input_required");
});

test("nobody adds an approval in advance to work that exists: its own delegator, or others", async () => {
  const { url, api, scout, alice, leased } = await setup();
  const { id, lease } = await leased();
  const key = { "idempotency-key": "once" };
  const first = await alice.delegate("scout", {}, key);
  expect((await alice.delegate("scout", { auto_approve: true }, key)).body.code).toBe("idempotency_conflict");
  const said = { messageId: "m2", role: "ROLE_USER", parts: [{ text: "hurry" }], taskId: id };
  for (const [caller, token] of [
    [alice, alice.token],
    [api, OPERATOR],
  ] as const) {
    const { result } = (
      await rawCalls(url, token).rpc("SendMessage", {
        message: { ...said, messageId: crypto.randomUUID(), metadata: { auto_approve: true } },
        configuration: { returnImmediately: true },
        metadata: { auto_approve: true },
      })
    ).body;
    expect(result.task.id).toBe(id);
    for (const [path, body] of [
      ["messages", { text: "more", auto_approve: true }],
      ["cancel", { auto_approve: true }],
      ["redrive", { auto_approve: true }],
    ] as const) {
      const refused = await caller.call("POST", `/v1/delegations/${id}/${path}`, body);
      expect([path, refused.status, refused.body.code]).toEqual([path, 400, "invalid_request"]);
    }
  }
  await scout.interrupt(lease.lease_id, DEPLOY);
  expect((await alice.get(id)).body).toMatchObject({ state: "input_required" });
  for (const each of [id, first.body.id]) expect((await alice.get(each)).body.auto_approve).toBeUndefined();
});

test("it leaves the same events and history as an approval by the delegator", async () => {
  const { scout, alice, leased, api } = await setup();
  const run = async (auto_approve?: unknown) => {
    const { id, lease } = await leased(auto_approve);
    const { interrupt_id } = (await scout.interrupt(lease.lease_id, { ...DEPLOY, request_id: "go" })).body;
    if (auto_approve === undefined) await alice.answer(id, interrupt_id, { decision: "approve" });
    const [back] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
    await scout.reply(back.lease_id);
    const { history } = (await alice.get(id)).body;
    const shown = JSON.stringify([(await api.events(id)).body.events, history])
      .replaceAll(id, "the delegation")
      .replaceAll(interrupt_id, "the question");
    return JSON.parse(shown, (name, value: unknown) => (OF_ONE_RUN.includes(name) ? "of this run" : value));
  };
  const inPerson = await run();
  const inAdvance = await run(true);
  const [events, history] = inAdvance;
  expect(inAdvance).not.toEqual(inPerson);
  for (const one of [events[2], events[3], history[1].metadata]) {
    expect(one.auto).toBe(true);
    delete one.auto;
  }
  expect([events[3].via, inPerson[0][3].via]).toEqual(["auto", "rest"]);
  events[3].via = "rest";
  expect(inAdvance).toEqual(inPerson);
});

/** Members that differ between two delegations of the same story. */
const OF_ONE_RUN = [
  ...["id", "at", "messageId", "context_id", "raised_at", "expires_at", "duration_ms", "worker_id"],
];

test("under its name in metadata, or elsewhere, it approves nothing", async () => {
  const { url, scout, alice } = await setup();
  const hidden = { auto_approve: true, autoApprove: true };
  const raw = rawCalls(url, alice.token);
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "go", metadata: hidden }] };
  const ways: Record<string, () => Promise<unknown>> = {
    "metadata of a delegation": () => alice.delegate("scout", { metadata: hidden }),
    "metadata of its message": () => alice.delegate("scout", { message: { ...message, metadata: hidden } }),
    "metadata of A2A's message": () =>
      raw.rpc("SendMessage", {
        message: { ...message, metadata: hidden },
        metadata: { autoApprove: true },
        configuration: { returnImmediately: true },
      }),
    "AG-UI's other properties and state": () =>
      alice
        .call("POST", "/ag-ui/scout", {
          ...{ threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "go" }] },
          ...{ state: { ...hidden, errand: hidden }, resume: [] },
          forwardedProps: { ...hidden, errand: { metadata: hidden } },
        })
        // The stream is no JSON; it ends with the question.
        .catch(() => undefined),
  };
  for (const [name, delegate] of Object.entries(ways)) {
    const sent = delegate();
    const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
    expect(lease.delegation.auto_approve, name).toBeUndefined();
    await scout.interrupt(lease.lease_id, DEPLOY);
    expect((await alice.get(lease.delegation.id)).body.state, name).toBe("input_required");
    await sent;
  }
});

test("the library's `auto_approve`", async () => {
  const { url, scout, alice, leased } = await setup();
  await leased();
  const delegator = new Delegator({ url, token: alice.token });
  const made = await delegator.delegate({
    ...{ target: "scout", task: "go", auto_approve: { actions: ["deploy"] } },
  });
  const [lease] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  await scout.interrupt(lease.lease_id, DEPLOY);
  const { state, history } = await delegator.get(made.id);
  expect([state, history[1]?.metadata?.auto]).toEqual(["submitted", true]);
  await scout.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  await expect(delegator.delegate({ target: "scout", task: "go", auto_approve: true })).rejects.toMatchObject(
    {
      code: "approval_required",
    },
  );
});

test("an agent cannot approve its own question: neither with its lease, nor over MCP, nor as its answer", async () => {
  const { url, scout, alice, leased } = await setup();
  const { id, lease } = await leased();
  const calls: Record<string, object> = {
    heartbeat: {},
    artifacts: { artifact: { artifactId: "a", parts: [{ text: "x" }] } },
    interrupt: { kind: "input", ...DEPLOY },
    release: {},
    reply: { state: "completed", text: "done" },
  };
  for (const [call, body] of Object.entries(calls)) {
    const path = `/v1/leases/${lease.lease_id}/${call}`;
    const refused = await scout.call("POST", path, { ...body, auto_approve: true });
    expect([call, refused.status, refused.body.code]).toEqual([call, 400, "invalid_request"]);
  }
  const worker = await mcpClient(url, scout.token, "modern");
  const tool = async (name: string, more: object) =>
    worker.callTool({ name, arguments: { lease_id: lease.lease_id, ...more, auto_approve: true } });
  // An unknown argument is ignored, and the answer says so: it approves nothing.
  const reported = await tool("report_progress", {});
  expect(reported.structuredContent).toMatchObject({ ignored_arguments: ["auto_approve"] });
  const asked = await scout.interrupt(lease.lease_id, DEPLOY);
  const { interrupt_id } = asked.body;
  expect((await scout.answer(id, interrupt_id, { decision: "approve" })).body.code).toBe("forbidden");
  const caller = await mcpClient(url, alice.token, "modern");
  const args = { delegation_id: id, text: "more", auto_approve: true };
  await caller.callTool({ name: "send_follow_up", arguments: args });
  expect((await alice.get(id)).body).toMatchObject({
    state: "input_required",
    interrupt: { id: interrupt_id },
  });
});

test("each of a batch has its own", async () => {
  const { scout, alice } = await setup();
  const one = { target: "scout", task: "go" };
  const delegations = [{ ...one, auto_approve: true }, one, { ...one, auto_approve: { actions: [] } }];
  const { results } = (await alice.call("POST", "/v1/delegations/batch", { delegations })).body;
  expect(results.map(({ status }: { status: number }) => status)).toEqual([202, 202, 400]);
  const leases = (await scout.lease("scout", { wait_seconds: 5, max: 2 })).body.leases;
  for (const { lease_id } of leases) await scout.interrupt(lease_id, DEPLOY);
  const states = [0, 1].map(async (n) => (await alice.get(results[n].delegation.id)).body.state);
  expect(await Promise.all(states)).toEqual(["submitted", "input_required"]);
});

/** A list of names that has so many bytes as JSON. */
function sized(bytes: number): { actions: string[] } {
  const whole = Array.from({ length: 15 }, (_, index) => `${index}`.padEnd(256, "x"));
  const rest = bytes - JSON.stringify({ actions: [...whole, ""] }).length;
  return { actions: [...whole, "x".repeat(rest)] };
}

test("as much as the limit allows is accepted", async () => {
  const { alice } = await setup();
  expect(
    (await alice.delegate("scout", { auto_approve: sized(LIMITS.auto_approve_bytes.value) })).status,
  ).toBe(202);
});

test.each([
  ["false", false],
  ["no actions", { actions: [] }],
  ["a star in the middle", { actions: ["fs.*.read"] }],
  ["an empty name", { actions: [""] }],
  ["another member", { actions: ["a"], kinds: ["auth"] }],
  ["too much", sized(LIMITS.auto_approve_bytes.value + 1)],
])("%s is refused", async (_name, auto_approve) => {
  const { alice } = await setup();
  const refused = await alice.delegate("scout", { auto_approve });
  expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
  expect(refused.body.details.issues[0].path).toMatch(/^auto_approve/);
});

test.each(BINDINGS)(
  "A2A over %s: the stream goes on after a question approved in advance",
  async (binding) => {
    const { url, scout, alice, token } = await a2aSetup();
    const client = await sdkClient(url, "scout", token, binding);
    const params = {
      ...sendParams(sdkMessage("go")),
      metadata: { auto_approve: { actions: ["deploy"] }, tone: "dry" },
    };
    const stream = collect(client.sendMessageStream(params));
    const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
    expect(lease.delegation).toMatchObject({
      auto_approve: { actions: ["deploy"] },
      metadata: { tone: "dry" },
    });
    await scout.interrupt(lease.lease_id, DEPLOY);
    const [back] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
    await scout.reply(back.lease_id, { text: "deployed" });
    await stream.ended;
    expect(stream.lines().at(-1)).toBe("COMPLETED deployed");
    expect(stream.lines().join()).not.toContain("INPUT_REQUIRED");
    expect((await alice.get(back.delegation.id)).body.metadata).toEqual({ tone: "dry" });
  },
);

test("MCP: a tool's `auto_approve`", async () => {
  const { url, scout, token } = await a2aSetup();
  const caller = await mcpClient(url, token, "modern");
  const args = { agent: "scout", task: "go", auto_approve: true };
  await caller.callTool({ name: "delegate_task_async", arguments: args });
  const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
  expect(lease.delegation.auto_approve).toBe(true);
  const wrong = await caller.callTool({
    name: "delegate_task_async",
    arguments: { ...args, auto_approve: { actions: ["a*b"] } },
  });
  expect(wrong.isError).toBe(true);
});

async function a2aSetup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  return { url, scout, alice, token: alice.token };
}

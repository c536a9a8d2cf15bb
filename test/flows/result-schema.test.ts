/** A delegation may say which JSON its result must be: no API completes it with anything else. */
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent, Delegator } from "../../src/index.ts";
import { readRecord } from "../../src/lifecycle/stored-delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { rawCalls } from "../doors/a2a/support.ts";
import { agUi } from "../doors/agui/support.ts";
import { as, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { mcpClient } from "../support/mcp.ts";

const SCHEMA = {
  type: "object",
  properties: { words: { type: "integer" }, tag: { enum: ["a", "b"] } },
  required: ["words"],
};
const NONE = Symbol("no schema");
const FITS = { data: { words: 3 } };

async function setup() {
  const broker = await startBroker();
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const leased = async (result_schema: unknown = SCHEMA, more: Record<string, unknown> = {}) => {
    await alice.delegate("scout", { ...(result_schema !== NONE && { result_schema }), ...more });
    const [lease] = (await scout.lease("scout")).body.leases;
    return { id: String(lease.delegation.id), lease: String(lease.lease_id), delegation: lease.delegation };
  };
  const replyWith = (lease: string, parts: readonly object[]) =>
    scout.call("POST", `/v1/leases/${lease}/reply`, { state: "completed", message: { parts } });
  return { ...broker, scout, alice, leased, replyWith };
}

test("the worker gets the schema, and a reply with one data part that fits completes", async () => {
  const { alice, leased, replyWith } = await setup();
  const { id, lease, delegation } = await leased();
  expect(delegation.result_schema).toEqual(SCHEMA);
  const parts = [{ text: "counted" }, FITS, { raw: "aGk=" }];
  expect((await replyWith(lease, parts)).body.outcome).toBe("matched");
  // The repeat of an accepted reply needs no check.
  expect((await replyWith(lease, parts)).body.outcome).toBe("duplicate");
  const { body } = await alice.get(id);
  expect(body).toMatchObject({ state: "completed", result_schema: SCHEMA, reply: { parts } });
});

test("a reply that does not fit is refused, and changes nothing", async () => {
  const { leased, replyWith, scout, redis } = await setup();
  const { id, lease } = await leased();
  const before = await dump(redis);
  for (const [parts, path, reason] of [
    [[], "message.parts", "must have a data part"],
    [[{ text: '{"words":3}' }], "message.parts", "must have a data part"],
    [[FITS, FITS], "message.parts", "must have exactly one data part, not 2"],
    [[{ text: "x" }, { data: { words: "3" } }], "message.parts.1.data.words", "must be a whole number"],
    [[{ data: null }], "message.parts.0.data", "must be an object"],
    [[{ data: {} }], "message.parts.0.data.words", "missing"],
  ] as const) {
    const { status, body } = await replyWith(lease, parts);
    expect([status, body.code, body.details.issues[0]]).toEqual([
      422,
      "result_invalid",
      { path, reason: expect.stringContaining(reason) },
    ]);
    expect(body).toMatchObject({
      detail: expect.stringContaining(path),
      delegation_id: id,
      delegation_valid: true,
      retryable: false,
    });
  }
  expect((await scout.reply(lease)).body.code).toBe("result_invalid");
  expect(await dump(redis)).toEqual(before);
  expect((await replyWith(lease, [FITS])).body.delegation.state).toBe("completed");
});

test("it may fail or be rejected with any reply", async () => {
  const { leased, scout } = await setup();
  for (const state of ["failed", "rejected"]) {
    const { lease } = await leased();
    expect((await scout.reply(lease, { state, text: "no" })).body.delegation.state).toBe(state);
  }
});

test("only a delegation with a schema costs a second move", async () => {
  const { leased, replyWith, gateway } = await setup();
  const move = vi.spyOn(gateway.broker.writer, "move");
  const moves = () => move.mock.calls.filter(([command]) => command.move === "complete").length;
  const plain = await leased(NONE);
  expect(plain.delegation).not.toHaveProperty("result_schema");
  await replyWith(plain.lease, [{ text: "any" }]);
  expect(moves()).toBe(1);
  await replyWith((await leased()).lease, [FITS]);
  expect(moves()).toBe(3);
});

test("schemas of any kind hold: none fits false, everything fits true", async () => {
  const { leased, replyWith } = await setup();
  const never = await leased(false);
  expect(never.delegation.result_schema).toBe(false);
  expect((await replyWith(never.lease, [{ data: 1 }])).body.code).toBe("result_invalid");
  const any = await leased(true);
  expect((await replyWith(any.lease, [{ text: "x" }])).body.code).toBe("result_invalid");
  expect((await replyWith(any.lease, [{ data: null }])).status).toBe(200);
});

test("a schema that cannot be enforced is refused, as that of a question", async () => {
  const { alice } = await setup();
  const large = { description: "x".repeat(LIMITS.schema_bytes.value) };
  for (const [result_schema, path, reason] of [
    ["text", "result_schema", "must be a JSON Schema"],
    [null, "result_schema", "must be a JSON Schema"],
    [{ properties: { a: { pattern: "x" } } }, "result_schema.properties.a.pattern", "not supported"],
    [{ $ref: "http://x.example" }, "result_schema.$ref", "must refer to"],
    [large, "result_schema", "at most 65536 bytes"],
  ] as const) {
    const { status, body } = await alice.delegate("scout", { result_schema });
    expect([status, body.code, body.details.issues[0]]).toEqual([
      400,
      "invalid_request",
      { path, reason: expect.stringContaining(reason) },
    ]);
  }
});

test("it counts for the bytes of the delegation", async () => {
  const { gateway, leased } = await setup();
  const { redis, shards } = gateway.broker;
  const bytes = async (result_schema: unknown) =>
    (await readRecord(redis, shards, (await leased(result_schema)).id))?.get("bytes") ?? 0;
  expect(await bytes(SCHEMA)).toBe((await bytes(NONE)) + JSON.stringify(SCHEMA).length);
});

test("the replies of A2A agents are checked: a Message and a Task", async () => {
  const { leased, scout } = await setup();
  const { lease } = await leased();
  const replied = (result: object) =>
    scout.call("POST", "/v1/agents/scout/replies", { jsonrpc: "2.0", id: lease, result });
  const message = (parts: readonly object[]) => ({ messageId: "m", role: "ROLE_AGENT", parts });
  const task = (parts: readonly object[]) => ({
    task: { id: "t", status: { state: "TASK_STATE_COMPLETED", message: message(parts) } },
  });
  for (const wrong of [{ message: message([{ text: "3" }]) }, task([{ data: { words: "3" } }])])
    expect((await replied(wrong)).body.code).toBe("result_invalid");
  expect((await replied(task([FITS]))).body.delegation.state).toBe("completed");
});

test("each of a batch has its own, and a redriven delegation keeps it", async () => {
  const { alice, scout } = await setup();
  const one = { target: "scout", task: "go" };
  const delegations = [{ ...one, result_schema: SCHEMA }, one, { ...one, result_schema: 7 }];
  const { results } = (await alice.call("POST", "/v1/delegations/batch", { delegations })).body;
  expect(results.map(({ status }: { status: number }) => status)).toEqual([202, 202, 400]);
  const { leases } = (await scout.lease("scout", { max: 2 })).body;
  const shown = leases.map((lease: { delegation: object }) => "result_schema" in lease.delegation);
  expect(shown.sort()).toEqual([false, true]);
  for (const { lease_id } of leases) await scout.reply(lease_id, { state: "failed" });
  const redriven = await alice.redrive(results[0].delegation.id);
  expect(redriven.body.result_schema).toEqual(SCHEMA);
});

test("A2A: a member of the metadata", async () => {
  const { url, alice, scout } = await setup();
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "go" }] };
  const params = { message, metadata: { result_schema: SCHEMA, tone: "dry" } };
  void rawCalls(url, alice.token)
    .rpc("SendMessage", params)
    .catch(() => undefined);
  const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
  expect(lease.delegation).toMatchObject({ result_schema: SCHEMA, metadata: { tone: "dry" } });
  expect((await scout.reply(lease.lease_id)).body.code).toBe("result_invalid");
});

test("AG-UI: a setting of the run", async () => {
  const { url, alice, scout, replyWith } = await setup();
  const ui = agUi(url, alice.token, "t");
  ui.say("go");
  const running = ui.run({ forwardedProps: { errand: { result_schema: SCHEMA } } });
  const [lease] = (await scout.lease("scout", { wait_seconds: 30 })).body.leases;
  expect(lease.delegation.result_schema).toEqual(SCHEMA);
  await replyWith(lease.lease_id, [FITS]);
  expect(await running).toMatchObject({ error: undefined, last: { type: "RUN_FINISHED" } });
});

test("MCP: a delegator's argument, and the work of an agent", async () => {
  const { url, alice, scout } = await setup();
  const caller = await mcpClient(url, alice.token, "modern");
  const worker = await mcpClient(url, scout.token, "modern");
  const args = { agent: "scout", task: "go", result_schema: SCHEMA };
  const { structuredContent } = await caller.callTool({ name: "delegate_task_async", arguments: args });
  const wrong = { ...args, result_schema: { pattern: "x" } };
  expect((await caller.callTool({ name: "delegate_task_async", arguments: wrong })).isError).toBe(true);
  const polled = await worker.callTool({ name: "poll_inbox", arguments: {} });
  expect(polled.structuredContent).toMatchObject({ tasks: [{ result_schema: SCHEMA }] });
  expect(JSON.stringify(polled.content)).toContain("must fit this JSON Schema");
  const [{ lease_id }] = Object(polled.structuredContent).tasks;
  const refused = await worker.callTool({ name: "complete_task", arguments: { lease_id, text: "3" } });
  expect(JSON.stringify(refused)).toContain("result_invalid");
  await worker.callTool({ name: "complete_task", arguments: { lease_id, data: { words: 3 } } });
  const { delegation_id } = Object(structuredContent);
  expect((await alice.get(delegation_id)).body).toMatchObject({
    state: "completed",
    reply: { parts: [FITS] },
  });
});

test("the library's agent fails a delegation whose result does not fit, once", async () => {
  const { url, alice, scout } = await setup();
  const delegator = new Delegator({ url, token: alice.token });
  let runs = 0;
  const agent = new Agent({ url, token: scout.token, agent: "scout" }, ({ text, delegation }) => {
    runs += 1;
    if (text === "wrong") return "three";
    const words = delegation.result_schema === undefined ? 0 : 3;
    return { state: "completed", message: { parts: [{ data: { words } }] } };
  });
  void agent.run();
  onTestFinished(() => agent.stop(0));
  const wrong = await delegator.delegate({ target: "scout", task: "wrong", result_schema: SCHEMA });
  const right = await delegator.delegate({ target: "scout", task: "right", result_schema: SCHEMA });
  const { state, error } = await delegator.wait(wrong.id);
  expect([state, error?.code]).toEqual(["failed", "result_invalid"]);
  expect(error?.message).toContain("message.parts: must have a data part");
  expect((await delegator.wait(right.id)).reply?.parts).toEqual([FITS]);
  expect(runs).toBe(2);
});

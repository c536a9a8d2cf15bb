/**
 * Replies in A2A's form, over HTTP: which lease or delegation they match, and what they change. a2a-reply.test.ts has
 * the meaning of each body.
 */
import { describe, expect, test } from "vitest";
import { A2A_STATES } from "../../../src/schema/a2a-task.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { dump } from "../../support/dump.ts";
import { checkHistory, eventsOf } from "../../support/history.ts";
import { setFields } from "../../support/record.ts";

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  await admin.agent("other");
  const scout = await as(broker.url, "agent:scout");
  const leased = async () => {
    const { id } = (await admin.delegate("scout")).body;
    const { leases } = (await scout.lease("scout")).body;
    expect(leases[0].delegation.id).toBe(id);
    return { id: String(id), lease_id: String(leases[0].lease_id) };
  };
  const send = (body: unknown, api: ReturnType<typeof client> = scout, agent = "scout") =>
    api.call("POST", `/v1/agents/${agent}/replies`, body);
  return { ...broker, admin, scout, leased, send };
}

const message = (text: string, more = {}) => ({
  messageId: "m1",
  role: "ROLE_AGENT",
  parts: [{ text }],
  ...more,
});
const task = (state: unknown, more = {}) => ({
  id: "t1",
  contextId: "c1",
  status: { state, message: message("said") },
  ...more,
});
const response = (id: string, result: unknown) => ({ jsonrpc: "2.0", id, result });

/** The delegation's state after a task in each state. */
const AFTER: Record<string, Record<string, unknown>> = {
  TASK_STATE_SUBMITTED: { state: "working", progress: { message: "said" } },
  TASK_STATE_WORKING: { state: "working", progress: { message: "said" } },
  TASK_STATE_COMPLETED: { state: "completed", reply: { parts: [{ text: "said" }] } },
  TASK_STATE_FAILED: {
    state: "failed",
    error: { code: "agent_error", message: "said", category: "UPSTREAM" },
  },
  TASK_STATE_REJECTED: { state: "rejected", error: { code: "rejected" } },
  TASK_STATE_CANCELED: { state: "canceled", error: { code: "canceled" } },
  TASK_STATE_INPUT_REQUIRED: { state: "input_required", interrupt: { kind: "input" } },
  TASK_STATE_AUTH_REQUIRED: { state: "auth_required", interrupt: { kind: "auth" } },
};

describe.each(Object.entries(A2A_STATES))("a task in %s", (name, row) => {
  test.each([
    ["1.0", name],
    ["0.3", row.v03],
  ])("as %s writes it", async (_version, state) => {
    const { leased, send, admin, redis } = await setup();
    const { id, lease_id } = await leased();
    const before = await dump(redis);
    const answer = await send(response(lease_id, { task: task(state) }));
    if (row.means === null) {
      expect(answer).toMatchObject({ status: 422, body: { code: "unknown_task_state" } });
      expect(await dump(redis)).toEqual(before);
      return;
    }
    expect(answer).toMatchObject({ status: 200, body: { outcome: "matched", delegation: { id } } });
    expect((await admin.get(id)).body).toMatchObject(AFTER[name] ?? {});
  });
});

describe("a reply is matched", () => {
  test("by the JSON-RPC id, by lease_id in the metadata, and by the delegation on its first lease", async () => {
    const { leased, send, admin } = await setup();
    const bodies = [
      ({ lease_id }: { lease_id: string }) => response(lease_id, { message: message("yes") }),
      ({ lease_id }: { lease_id: string }) => message("yes", { metadata: { lease_id } }),
      ({ id }: { id: string }) => message("yes", { metadata: { delegation_id: id } }),
      ({ id }: { id: string }) => ({
        kind: "message",
        role: "agent",
        messageId: "m",
        parts: [{ kind: "text", text: "yes" }],
        metadata: { delegation_id: id },
      }),
      ({ id }: { id: string }) => response(id, message("yes")),
    ];
    for (const body of bodies) {
      const made = await leased();
      expect((await send(body(made))).body).toMatchObject({ outcome: "matched" });
      const { state, reply } = (await admin.get(made.id)).body;
      expect([state, reply.parts]).toEqual(["completed", [{ text: "yes" }]]);
      checkHistory(await eventsOf(admin, made.id), "finished");
    }
  });

  test.each([[undefined], [null], [[]]])("with parts %j", async (parts) => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    const { status } = await send(response(lease_id, { messageId: "m", role: "ROLE_AGENT", parts }));
    expect(status).toBe(200);
    expect((await admin.get(id)).body).toMatchObject({ state: "completed", reply: { parts: [] } });
  });

  test("with its artifacts, and in chunks", async () => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    const update = (text: string, append: boolean) =>
      response(lease_id, {
        artifactUpdate: {
          taskId: "t",
          contextId: "c",
          artifact: { artifactId: "a", parts: [{ text }] },
          append,
        },
      });
    await send(update("one", false));
    await send(update("two", true));
    await send(
      response(lease_id, task("completed", { artifacts: [{ artifactId: "b", parts: [{ text: "three" }] }] })),
    );
    expect((await admin.get(id)).body).toMatchObject({
      state: "completed",
      artifacts: [
        { artifactId: "a", parts: [{ text: "one" }, { text: "two" }] },
        { artifactId: "b", parts: [{ text: "three" }] },
      ],
    });
  });

  test("as a JSON-RPC error: failed with the agent's own message and nothing of its internals", async () => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    await send({
      jsonrpc: "2.0",
      id: lease_id,
      error: { code: -32603, message: "out of tea", data: { stack: "secret" } },
    });
    const { body } = await admin.get(id);
    expect(body).toMatchObject({ state: "failed", error: { code: "agent_error", message: "out of tea" } });
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  test("as a question without text: it interrupts, and a repeat is the same question", async () => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    const body = response(lease_id, {
      task: { id: "t", contextId: "c", status: { state: "input-required" } },
    });
    expect((await send(body)).body.outcome).toBe("matched");
    const asked = (await admin.get(id)).body;
    expect(asked.interrupt.requests[0].message.parts[0].text).toContain("did not say");
    expect((await send(body)).body.outcome).toBe("duplicate");
    expect((await admin.get(id)).body.interrupt.id).toBe(asked.interrupt.id);
    expect((await admin.get(id)).body.version).toBe(asked.version);
  });
});

describe("a reply changes nothing", () => {
  test("when it is repeated: duplicate; with another body, or after the lease: late", async () => {
    const { leased, send, redis, clock, gateway, scout } = await setup();
    const first = await leased();
    const reply = response(first.lease_id, { message: message("yes") });
    await send(reply);
    const before = await dump(redis);
    expect((await send(reply)).body.outcome).toBe("duplicate");
    const other = await send(response(first.lease_id, { message: message("no") }));
    expect(other).toMatchObject({
      status: 409,
      body: { code: "lease_lost", details: { reason: "finished" } },
    });
    expect(await dump(redis)).toEqual(before);

    const second = await leased();
    clock.offset_ms = 61_000;
    await gateway.sweep.tick();
    clock.offset_ms = 70_000;
    await gateway.sweep.tick();
    const { leases } = (await scout.lease("scout")).body;
    expect(leases).toMatchObject([{ attempt: 2, delegation: { id: second.id } }]);
    const lapsed = await dump(redis);
    for (const body of [
      response(second.lease_id, { message: message("late") }),
      message("late", { metadata: { delegation_id: second.id } }),
      response(second.lease_id, { task: task("working") }),
    ]) {
      expect(await send(body)).toMatchObject({
        status: 409,
        body: { code: "lease_lost", details: { reason: "expired" } },
      });
      expect(await scout.reply(second.lease_id)).toMatchObject({ status: 409, body: { code: "lease_lost" } });
    }
    expect(await dump(redis)).toEqual(lapsed);
  });

  test("when its ids are unknown or belong to another agent", async () => {
    const { leased, send, redis, url } = await setup();
    const { id, lease_id } = await leased();
    const other = await as(url, "agent:other");
    const alice = await as(url, "caller:alice");
    const before = await dump(redis);
    const unknown = `lse_0_${"0".repeat(26)}_1`;
    for (const answer of [
      await send(message("who")),
      await send(response(unknown, { message: message("who") })),
      await send(response(`${lease_id}9`, { message: message("who") })),
      await send(response(lease_id, { message: message("mine") }), other, "other"),
      await send(message("mine", { metadata: { delegation_id: id } }), other, "other"),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { code: "reply_unknown" } });
    }
    expect((await send(response(lease_id, { message: message("x") }), other)).body.code).toBe("forbidden");
    expect((await send(response(lease_id, { message: message("x") }), alice)).body.code).toBe("forbidden");
    expect(await dump(redis)).toEqual(before);
  });

  test("when the delegation was never leased", async () => {
    const { send, admin, redis } = await setup();
    const { id } = (await admin.delegate("scout")).body;
    const before = await dump(redis);
    expect(await send(message("early", { metadata: { delegation_id: id } }))).toMatchObject({
      status: 409,
      body: { code: "lease_lost", delegation_valid: true, details: { reason: "not_leased" } },
    });
    expect(await dump(redis)).toEqual(before);
  });
});

const artifacts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ artifactId: `a${n}`, parts: [{ text: `${n}` }] }));

describe("a Task with many artifacts", () => {
  test.each(["working", "submitted"])("in %s is one event, whatever the rate", async (state) => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    const many = artifacts(LIMITS.artifacts.value);
    expect(await send(response(lease_id, { task: task(state, { artifacts: many }) }))).toMatchObject({
      status: 200,
      body: { outcome: "matched" },
    });
    const events = await eventsOf(admin, id);
    expect(events.at(-1)).toMatchObject({
      status: "progress",
      progress: { message: "said" },
      artifacts: many,
    });
    expect(events).toHaveLength(3);
    expect((await admin.get(id)).body).toMatchObject({ artifacts: many, progress: { message: "said" } });
  });

  test("and no message is an artifact event", async () => {
    const { leased, send, admin } = await setup();
    const { id, lease_id } = await leased();
    const silent = { id: "t", status: { state: "working" }, artifacts: artifacts(3) };
    expect((await send(response(lease_id, { task: silent }))).status).toBe(200);
    const event = (await eventsOf(admin, id)).at(-1);
    expect(event).toMatchObject({ status: "artifact", artifacts: artifacts(3) });
    expect(event).not.toHaveProperty("artifact");
  });

  test("that asks is one event, and a repeat is a duplicate", async () => {
    const { leased, send, admin, redis } = await setup();
    const { id, lease_id } = await leased();
    const body = response(lease_id, { task: task("input-required", { artifacts: artifacts(150) }) });
    expect((await send(body)).body.outcome).toBe("matched");
    const events = await eventsOf(admin, id);
    expect(events.at(-1)).toMatchObject({ status: "interrupted", artifacts: artifacts(150) });
    expect(events).toHaveLength(3);
    const before = await dump(redis);
    expect((await send(body)).body.outcome).toBe("duplicate");
    expect(await dump(redis)).toEqual(before);
    expect((await admin.get(id)).body.artifacts).toEqual(artifacts(150));
  });

  test("that is finished is accepted up to the limit", async () => {
    const { leased, send, admin, scout } = await setup();
    const first = await leased();
    const many = artifacts(LIMITS.artifacts.value);
    expect((await send(response(first.lease_id, { task: task(3, { artifacts: many }) }))).status).toBe(200);
    expect((await admin.get(first.id)).body.artifacts).toEqual(many);
    const second = await leased();
    expect((await scout.reply(second.lease_id, { artifacts: many })).status).toBe(200);
    const third = await leased();
    const tooMany = { artifacts: artifacts(LIMITS.artifacts.value + 1) };
    expect((await send(response(third.lease_id, { task: task(3, tooMany) }))).body.code).toBe(
      "invalid_request",
    );
    expect((await scout.reply(third.lease_id, tooMany)).body.code).toBe("invalid_request");
  });

  test("that is too large in total leaves no data", async () => {
    const { leased, send, redis } = await setup();
    const { id, lease_id } = await leased();
    await setFields(redis, `{errand:0}:d:${id}`, { bytes: LIMITS.delegation_bytes.value - 100 });
    const before = await dump(redis);
    const large = task("working", { artifacts: artifacts(10) });
    expect((await send(response(lease_id, { task: large }))).body.code).toBe("payload_too_large");
    expect(await dump(redis)).toEqual(before);
  });
});

test("the long ids of other software are accepted", async () => {
  const { leased, send, admin } = await setup();
  const { id, lease_id } = await leased();
  const long = "m".repeat(300);
  const asks = { id: "t", status: { state: "input-required", message: message("?", { messageId: long }) } };
  expect((await send(response(lease_id, { task: asks }))).status).toBe(200);
  const { interrupt } = (await admin.get(id)).body;
  expect(interrupt.requests[0].request_id).toBe(long);
  expect((await admin.answer(id, interrupt.id, { answers: { [long]: { text: "yes" } } })).status).toBe(200);
  const again = (await admin.lease("scout")).body.leases[0].lease_id;
  const output = [{ artifactId: long, parts: [{ text: "x" }] }];
  const done = {
    status: { state: "completed", message: message("ok", { messageId: long }) },
    artifacts: output,
  };
  expect((await send(response(again, { task: done }))).status).toBe(200);
  expect((await admin.get(id)).body).toMatchObject({ reply: { messageId: long }, artifacts: output });
  const tooLong = { message: { messageId: long, parts: [{ text: "x" }] } };
  expect((await admin.delegate("scout", tooLong)).body.code).toBe("invalid_request");
});

test("a lease id that an agent echoes in metadata is neither stored nor shown", async () => {
  const { leased, send, admin, scout, redis } = await setup();
  const secret = "the-lease-that-must-not-be-seen";
  const metadata = { lease_id: secret, page: 1 };
  const parts = [{ text: "x", metadata }];
  const output = { artifactId: "a", parts, metadata };
  const said = { messageId: "m", parts, metadata };
  const ids: string[] = [];
  const work = async () => {
    const made = await leased();
    ids.push(made.id);
    return made.lease_id;
  };

  const first = await work();
  await scout.call("POST", `/v1/leases/${first}/artifacts`, { artifact: output });
  await scout.call("POST", `/v1/leases/${first}/artifacts`, { artifact: output, append: true });
  await scout.reply(first, { text: undefined, message: said, artifacts: [{ ...output, artifactId: "b" }] });
  const second = await work();
  const asked = await scout.interrupt(second, {
    requests: [{ message: said }, { request_id: "r", message: said }],
  });
  expect(asked.status).toBe(200);
  for (const state of ["working", "input-required", "completed"]) {
    const lease_id = await work();
    const own = { ...metadata, lease_id };
    const status = { state, message: message("x", { metadata: own, parts: [{ text: "x", metadata: own }] }) };
    const result = { status, metadata: own, artifacts: [{ ...output, metadata: own }] };
    expect((await send(response(lease_id, { task: result }))).status).toBe(200);
    const chunk = { artifactUpdate: { artifact: { ...output, metadata: own }, append: true } };
    if (state === "working") expect((await send(response(lease_id, chunk))).status).toBe(200);
  }
  const last = await work();
  expect((await send(message("x", { metadata: { lease_id: last, page: 1 } }))).status).toBe(200);

  const everything = JSON.stringify(await dump(redis));
  expect(everything).not.toContain(secret);
  expect(everything).not.toMatch(/lse_|lease_id/);
  for (const id of ids) {
    const { body } = await admin.get(id);
    const shown = JSON.stringify([body, await eventsOf(admin, id)]);
    expect(shown).toContain('"page":1');
    expect(shown).not.toMatch(/lease_id|lse_/);
  }
});

test("a reply whose ids name two leases is refused, and both leases continue", async () => {
  const { leased, send, scout, admin } = await setup();
  const { id, lease_id } = await leased();
  await scout.release(lease_id);
  const second = (await scout.lease("scout")).body.leases[0].lease_id;
  const mixed = response(second, message("yes", { metadata: { lease_id } }));
  expect(await send(mixed)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  expect((await admin.get(id)).body.state).toBe("working");
  expect((await send(response(second, message("yes")))).body.outcome).toBe("matched");
});

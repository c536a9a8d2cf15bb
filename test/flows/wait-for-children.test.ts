import { expect, test, vi } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("lead", { limits: { max_working: 1 } });
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const lead = await as(broker.url, "agent:lead");
  const scout = await as(broker.url, "agent:scout");
  const lease = async (by: typeof api, agent: string, wait_seconds = 5) =>
    (await by.lease(agent, { wait_seconds })).body.leases[0];
  /** A delegation at work, with as many children, none of which is at work. */
  const withChildren = async (count: number) => {
    const { id } = (await alice.delegate("lead")).body;
    const { lease_id } = await lease(lead, "lead");
    const children: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const made = await lead.delegate("scout", { parent_id: id, task: `part ${n}` });
      children.push(made.body.id);
    }
    return { id, lease_id, children };
  };
  /** Finishes the next child of the queue. */
  const finishOne = async (reply: Record<string, unknown> = {}) => {
    const { lease_id, delegation } = await lease(scout, "scout");
    await scout.reply(lease_id, { text: `done ${delegation.task_preview}`, ...reply });
    return delegation.id;
  };
  const state = async (id: string) => (await api.get(id)).body.state;
  return { ...broker, api, alice, lead, scout, lease, withChildren, finishOne, state };
}

test.each([1, 7])("it returns with its children once all have ended, with %i shards", async (shards) => {
  const { api, alice, lead, lease, withChildren, finishOne, state } = await setup({ shards });
  const { id, lease_id, children } = await withChildren(3);
  const waits = await lead.await(lease_id, children, { checkpoint: { step: 2 } });
  expect(waits).toMatchObject({ status: 200, body: { awaits: { children, left: 3 } } });
  expect((await alice.get(id)).body).toMatchObject({
    state: "awaiting_children",
    lease: null,
    awaits: { children, left: 3 },
  });
  // Nobody holds it, and it does not count against max_working.
  expect((await lead.heartbeat(lease_id)).body).toMatchObject({
    code: "lease_lost",
    details: { reason: "awaiting" },
  });
  expect((await api.call("GET", "/v1/agents/lead")).body.counts).toMatchObject({ working: 0, awaiting: 1 });
  const { id: other } = (await alice.delegate("lead")).body;
  const held = await lease(lead, "lead");
  expect(held.delegation.id).toBe(other);

  await finishOne();
  await finishOne({ state: "failed", error: { code: "no_luck", message: "nothing found" } });
  expect((await alice.get(id)).body.awaits.left).toBe(1);
  const { id: newer } = (await alice.delegate("lead")).body;
  await finishOne();
  await until(async () => (await state(id)) === "submitted");
  await lead.reply(held.lease_id);

  // It is before the newer delegation.
  const again = await lease(lead, "lead");
  expect(again).toMatchObject({ delegation: { id }, attempt: 1, checkpoint: { step: 2 } });
  expect(again.awaited.outcome).toBe("ended");
  expect(again.awaited.children).toMatchObject([
    {
      delegation_id: children[0],
      state: "completed",
      delegation: { reply: { parts: [{ text: "done part 0" }] } },
    },
    { delegation_id: children[1], state: "failed", delegation: { error: { code: "no_luck" } } },
    { delegation_id: children[2], state: "completed" },
  ]);
  await lead.reply(again.lease_id);
  expect((await lease(lead, "lead")).delegation.id).toBe(newer);
  const events = await eventsOf(alice, id);
  checkHistory(events, "finished");
  expect(events.flatMap((event) => ("status" in event ? [event.status] : []))).toEqual([
    "queued",
    "leased",
    "awaiting",
    "resumed",
    "leased",
  ]);
});

test("any, or a number of them, are enough; what has ended counts, and what is met costs no lease", async () => {
  const { lead, lease, withChildren, finishOne, state } = await setup();
  const { id, lease_id, children } = await withChildren(3);
  await finishOne();
  const met = await lead.await(lease_id, children, { until: "any" });
  expect(met.body.awaits).toBeUndefined();
  expect(met.body.awaited).toMatchObject({
    outcome: "ended",
    children: [{ state: "completed" }, { state: "submitted" }, { state: "submitted" }],
  });
  expect(met.body.awaited.children[1].delegation).toBeUndefined();
  expect((await lead.await(lease_id, children, { until: 2 })).body.awaits.left).toBe(1);
  await finishOne();
  await until(async () => (await state(id)) === "submitted");
  const again = await lease(lead, "lead");
  expect(again.awaited.children.map((one: { state: string }) => one.state)).toEqual([
    "completed",
    "completed",
    "submitted",
  ]);
  // The lease has them until the next wait.
  await lead.release(again.lease_id);
  const third = await lease(lead, "lead");
  expect(third.awaited).toEqual(again.awaited);
  expect((await lead.await(third.lease_id, children)).body.awaits.left).toBe(1);
});

test("after the time limit it returns with what there is", async () => {
  const { lead, lease, withChildren, clock, gateway, alice } = await setup();
  const { id, lease_id, children } = await withChildren(2);
  await lead.await(lease_id, children, { time_limit_seconds: 600 });
  clock.offset_ms = 599_000;
  await gateway.sweep.tick();
  expect((await alice.get(id)).body.state).toBe("awaiting_children");
  clock.offset_ms = 600_100;
  await gateway.sweep.tick();
  const again = await lease(lead, "lead");
  expect(again.awaited).toMatchObject({ outcome: "time_limit", children: [{ state: "submitted" }, {}] });
  expect((await eventsOf(alice, id)).find((event) => "time_limit" in event)).toMatchObject({
    status: "resumed",
    time_limit: true,
  });
});

test("a canceled and a deleted child have ended; a cancel of the parent reaches its children", async () => {
  const { api, alice, lead, lease, withChildren, state } = await setup();
  const { id, lease_id, children } = await withChildren(2);
  const [first = "", second = ""] = children;
  await lead.cancel(first);
  await lead.erase(first);
  await lead.await(lease_id, children);
  await lead.cancel(second, { reason: "too slow" });
  await until(async () => (await state(id)) === "submitted");
  const again = await lease(lead, "lead");
  expect(again.awaited.children).toMatchObject([{ state: null }, { state: "canceled" }]);

  const other = (await lead.delegate("scout", { parent_id: id })).body.id;
  await lead.await(again.lease_id, [other]);
  await alice.cancel(id);
  expect([await state(id), await state(other)]).toEqual(["canceled", "canceled"]);
  checkHistory(await eventsOf(api, id), "finished");
});

test("only its own children can be waited for, each once, and not more than there are", async () => {
  const { alice, lead, api, withChildren, redis } = await setup();
  const { id, lease_id, children } = await withChildren(2);
  const stranger = (await alice.delegate("scout")).body.id;
  const before = (await alice.get(id)).body.version;
  const unknown = `dlg_0_${"0".repeat(26)}`;
  const tooMany = Array.from(
    { length: LIMITS.awaited.value + 1 },
    (_, n) => `dlg_0_${String(n).padStart(26, "0")}`,
  );
  for (const [named, more, wrong] of [
    [
      [...children, stranger, unknown],
      {},
      { status: 422, body: { code: "not_a_child", details: { children: [stranger, unknown] } } },
    ],
    [[id], {}, { status: 422, body: { code: "not_a_child" } }],
    [tooMany, {}, { status: 400, body: { details: { issues: [{ path: "children" }] } } }],
    [[], {}, { status: 400, body: { details: { issues: [{ path: "children" }] } } }],
    [[children[0], children[0]], {}, { status: 400, body: { details: { issues: [{ path: "children" }] } } }],
    [children, { until: 3 }, { status: 400, body: { details: { issues: [{ path: "until" }] } } }],
    [children, { until: 0 }, { status: 400 }],
    [children, { until: "most" }, { status: 400 }],
  ] as const) {
    expect(await lead.await(lease_id, named.map(String), more)).toMatchObject(wrong);
  }
  expect((await alice.get(id)).body).toMatchObject({ state: "working", version: before });
  expect((await lead.heartbeat(lease_id)).status).toBe(200);
  expect((await alice.await(lease_id, children)).status).toBe(403);
  expect((await api.await(`${lease_id.split(":")[0]}:9`, children)).status).not.toBe(200);
  expect(await redis.keys("*:awaits")).toEqual([]);
});

test("a follow-up to one that waits reaches its next holder", async () => {
  const { alice, lead, lease, withChildren, finishOne } = await setup();
  const { id, lease_id, children } = await withChildren(1);
  await lead.await(lease_id, children);
  expect((await alice.message(id, "and in blue")).status).toBe(202);
  await finishOne();
  const again = await lease(lead, "lead");
  expect(again.delegation.history).toMatchObject([{ parts: [{ text: "and in blue" }] }]);
});

test("what another principal delegated under it is waited for, but its content is not shown", async () => {
  const { alice, lead, lease, finishOne } = await setup();
  const { id } = (await alice.delegate("lead")).body;
  const { lease_id } = await lease(lead, "lead");
  const child = (await alice.delegate("scout", { parent_id: id })).body.id;
  await lead.await(lease_id, [child]);
  await finishOne({ text: "for alice" });
  const again = await lease(lead, "lead");
  expect(again.awaited.children).toEqual([{ delegation_id: child, state: "completed" }]);
});

test("large children are left out of the lease, and can be read", async () => {
  const { lead, lease, withChildren, finishOne } = await setup();
  const { lease_id, children } = await withChildren(3);
  await lead.await(lease_id, children);
  for (const _child of children) await finishOne({ text: "x".repeat(500_000) });
  const again = await lease(lead, "lead");
  expect(again.awaited.children.map((one: { delegation?: object }) => one.delegation !== undefined)).toEqual([
    true,
    true,
    false,
  ]);
  expect((await lead.get(children[2] ?? "")).body.reply.parts[0].text).toHaveLength(500_000);
});

test("the sweep counts the ends that gateways which died did not count", async () => {
  const { lead, gateway, withChildren, finishOne, clock, state } = await setup();
  const { broker } = gateway;
  const { id, lease_id, children } = await withChildren(2);
  // The gateway dies before it marks the children as expected.
  const died = vi.spyOn(broker.redis, "hgetall").mockRejectedValueOnce(new Error("died"));
  await lead.await(lease_id, children);
  expect(died).toHaveBeenCalledOnce();
  await finishOne();
  expect(await state(id)).toBe("awaiting_children");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await Promise.all(broker.background);
  // Another one dies before it counts the end of an expected child.
  const move = broker.writer.move.bind(broker.writer);
  const lost = vi
    .spyOn(broker.writer, "move")
    .mockImplementation((command) =>
      command.move === "child_ended" ? Promise.reject(new Error("died")) : move(command),
    );
  await finishOne();
  await Promise.all(broker.background);
  expect(lost).toHaveBeenCalledWith(expect.objectContaining({ move: "child_ended" }));
  lost.mockRestore();
  expect(await state(id)).toBe("awaiting_children");
  clock.offset_ms = 12_000;
  await gateway.sweep.tick();
  await Promise.all(broker.background);
  expect(await state(id)).toBe("submitted");
});

test("marking and counting cost a few moves for each child, also when all of them ended while no gateway counted", async () => {
  const { lead, gateway, withChildren, finishOne, clock, state } = await setup();
  const { broker } = gateway;
  const { id, lease_id, children } = await withChildren(30);
  vi.spyOn(broker.redis, "hgetall").mockRejectedValueOnce(new Error("died"));
  await lead.await(lease_id, children);
  for (const _child of children) await finishOne();
  const move = vi.spyOn(broker.writer, "move");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await Promise.all(broker.background);
  expect(await state(id)).toBe("submitted");
  expect(move.mock.calls.length).toBeLessThan(3 * children.length);
});

test("a child whose mark was lost in a fail-over is found again", async () => {
  const { lead, gateway, withChildren, finishOne, clock, state, redis } = await setup();
  const { id, lease_id, children } = await withChildren(1);
  const [child = ""] = children;
  const key = gateway.broker.shards.ofId(child)?.delegation(child) ?? "";
  const before = (await redis.dumpBuffer(key)) ?? Buffer.of();
  await lead.await(lease_id, children);
  await redis.restore(key, 0, before, "REPLACE");
  await finishOne();
  expect(await state(id)).toBe("awaiting_children");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await Promise.all(gateway.broker.background);
  expect(await state(id)).toBe("submitted");
});

test("a child whose shard does not answer keeps no other from being counted", async () => {
  const { alice, lead, gateway, withChildren, finishOne, state } = await setup();
  const { broker } = gateway;
  const { id, lease_id, children } = await withChildren(20);
  const move = broker.writer.move.bind(broker.writer);
  vi.spyOn(broker.writer, "move").mockImplementation((command) =>
    command.move === "expect" && command.id === children[0]
      ? Promise.reject(new Error("away"))
      : move(command),
  );
  const read = vi.spyOn(broker.redis, "hgetall");
  await lead.await(lease_id, children, { until: "any" });
  expect(read).toHaveBeenCalled();
  await finishOne();
  await lead.cancel(children[19] ?? "");
  await until(async () => (await state(id)) === "submitted");
  await alice.cancel(id);
  await until(async () => (await state(children[0] ?? "")) !== "submitted");
});

test("a wait that runs out of time is answered at once to a worker that starts over, by rounds", async () => {
  const { lead, lease, withChildren, clock, gateway } = await setup();
  const { lease_id, children } = await withChildren(2);
  const [first = "", second = ""] = children;
  const limited = { time_limit_seconds: 100, round: 1 };
  const runsOut = async (held: string, child: string) => {
    expect((await lead.await(held, [child], limited)).body.awaits.left).toBe(1);
    clock.offset_ms += 101_000;
    await gateway.sweep.tick();
    return (await lease(lead, "lead")).lease_id;
  };
  const third = await runsOut(await runsOut(lease_id, first), second);
  for (const child of [first, second]) {
    const { body } = await lead.await(third, [child], limited);
    expect(body.awaited).toEqual({
      outcome: "time_limit",
      children: [{ delegation_id: child, state: "submitted" }],
    });
  }
  // Otherwise it waits again, and so does a wait for another number of them.
  expect((await lead.await(third, children, limited)).body.awaits.left).toBe(2);
});

test("what it waits for is bounded: in the event, in the lease, and in its delegator's share", async () => {
  const { alice, api, gateway, lead, lease, redis, withChildren, finishOne } = await setup();
  const { id, lease_id } = await withChildren(0);
  const keys = gateway.broker.shards.ofId(id);
  const children: string[] = [];
  for (let n = 0; n < 90; n += 1) {
    const metadata = { text: "x".repeat(16_000) };
    children.push((await lead.delegate("scout", { parent_id: id, metadata })).body.id);
  }
  const kept = async () => Number(await redis.hget(keys?.kept ?? "", "caller:alice"));
  const before = await kept();
  await lead.await(lease_id, children);
  expect((await kept()) - before).toBeGreaterThan(90 * 100);
  const { awaits } = (await eventsOf(alice, id)).find((event) => "awaits" in event) ?? {};
  expect(awaits).toMatchObject({ children: children.slice(0, 20), count: 90, left: 90 });
  for (const _child of children) await finishOne();
  await lead.erase(children[0] ?? "");
  const again = await lease(lead, "lead");
  expect(JSON.stringify(again.awaited).length).toBeLessThan(1.1 * LIMITS.awaited_bytes.value);
  // Its record is gone, and how it ended is known.
  expect(again.awaited.children[0]).toEqual({ delegation_id: children[0], state: "completed" });
  expect(again.awaited.children[1].delegation.metadata.text).toHaveLength(16_000);
  expect(again.awaited.children[89].delegation).toBeUndefined();
  await lead.reply(again.lease_id);
  expect(await redis.exists(keys?.awaits(id) ?? "")).toBe(0);
  expect((await api.erase(id)).status).toBe(204);
});

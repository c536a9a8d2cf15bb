import { describe, expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";
import { fieldOf } from "../support/record.ts";
import { until } from "../support/until.ts";

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  const agents = new Map<string, Awaited<ReturnType<typeof as>>>();
  for (const name of ["lead", "scout", "smith", "clerk"]) {
    await api.agent(name);
    agents.set(name, await as(broker.url, `agent:${name}`));
  }
  const agent = (name: string) => agents.get(name) ?? api;
  const alice = await as(broker.url, "caller:alice");
  /** Delegates as this principal, and leases the delegation. */
  const handed = async (by: typeof api, target: string, parent_id?: string) => {
    const made = await by.delegate(target, parent_id === undefined ? {} : { parent_id });
    const [lease] = (await agent(target).lease(target)).body.leases;
    return { id: String(made.body.id), lease: String(lease.lease_id) };
  };
  const state = async (id: string) => (await api.get(id)).body.state;
  return { ...broker, api, agent, alice, handed, state };
}

test.each([1, 7])("a cancel goes down the tree, across agents, with %i shards", async (shards) => {
  const { api, agent, alice, handed, state } = await setup({ shards });
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const other = (await agent("lead").delegate("smith", { parent_id: root.id })).body.id;
  const grandchild = await handed(agent("scout"), "clerk", child.id);
  const listed = (await api.call("GET", `/v1/delegations?parent_id=${root.id}`)).body.delegations;
  expect(listed.map((one: { id: string }) => one.id).sort()).toEqual([child.id, other].sort());
  expect((await api.get(grandchild.id)).body.parent_id).toBe(child.id);

  const held = agent("clerk").heartbeat(grandchild.lease, { wait_seconds: 20 });
  expect((await alice.cancel(root.id, { reason: "changed my mind" })).body.state).toBe("canceled");
  expect((await held).body).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
  for (const { id } of [root, child, { id: other }, grandchild]) {
    expect(await state(id)).toBe("canceled");
    const { events } = (await api.events(id)).body;
    checkHistory(events, "finished");
    expect(events.at(-1).by).toBe("caller:alice");
  }
  expect((await api.get(grandchild.id)).body.error.message).toContain(child.id);
});

test("without cascade the children continue; a second cancel with cascade reaches them", async () => {
  const { agent, alice, handed, state, api } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const finished = await handed(agent("lead"), "smith", root.id);
  await agent("smith").reply(finished.lease);
  const grandchild = await handed(agent("scout"), "clerk", child.id);
  expect((await alice.cancel(root.id, { cascade: false })).status).toBe(200);
  expect((await alice.cancel(root.id, { cascade: false })).status).toBe(200);
  expect(await state(child.id)).toBe("working");
  const { version } = (await api.get(root.id)).body;
  expect((await alice.cancel(root.id)).body).toMatchObject({ state: "canceled", version });
  expect([await state(child.id), await state(grandchild.id)]).toEqual(["canceled", "canceled"]);
  expect(await state(finished.id)).toBe("completed");
});

test("a cascade reaches the descendants of a child that was canceled alone before", async () => {
  const { agent, alice, handed, state } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const grandchild = await handed(agent("scout"), "clerk", child.id);
  await agent("lead").cancel(child.id, { cascade: false });
  expect(await state(grandchild.id)).toBe("working");
  await alice.cancel(root.id);
  await until(async () => (await state(grandchild.id)) === "canceled");
});

test("the sweep finishes a cascade whose gateway died", async () => {
  const { agent, alice, handed, state, clock, gateway } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const died = vi.spyOn(gateway.broker.bulk, "srandmember").mockRejectedValueOnce(new Error("died"));
  await alice.cancel(root.id);
  died.mockRestore();
  expect(await state(child.id)).toBe("working");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await until(async () => (await state(child.id)) === "canceled");
  await Promise.all(gateway.broker.background);
  // It is finished: no delivery is pending.
  const looked = vi.spyOn(gateway.broker.bulk, "srandmember");
  clock.offset_ms = 12_000;
  await gateway.sweep.tick();
  expect(looked).not.toHaveBeenCalled();
});

test("the sweep does not wait for a long cascade, and does not start it twice", async () => {
  const { agent, alice, handed, api, clock, gateway, redis } = await setup();
  const { broker } = gateway;
  const root = await handed(alice, "lead");
  const other = await handed(alice, "smith");
  // Children that were never created: each costs the cascade a look-up and a mark in place of the record.
  const key = broker.shards.ofId(root.id)?.children(root.id) ?? "";
  const ids = Array.from({ length: 1_000 }, () => broker.shards.newDelegationId("scout"));
  const child = (await agent("lead").delegate("scout", { parent_id: root.id })).body.id;
  await redis.sadd(key, ...ids);
  const { bulk } = broker;
  const random = bulk.srandmember.bind(bulk);
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let looks = 0;
  vi.spyOn(bulk, "srandmember").mockImplementation(async (name, count) => {
    looks += 1;
    await gate;
    return random(name, count);
  });
  await alice.cancel(root.id);
  clock.offset_ms = 70_000;
  // The cascade is suspended and due again, and so is the other delegation's lease.
  await gateway.sweep.tick();
  expect((await api.get(other.id)).body).toMatchObject({ state: "submitted", attempt: 2 });
  expect(looks).toBe(1);
  expect((await api.get(child)).body.state).toBe("submitted");
  goOn();
  await until(async () => (await redis.exists(key)) === 0);
  expect((await api.get(child)).body.state).toBe("canceled");
});

test("a running cascade extends its claim; one whose claim was taken over ends", async () => {
  const { agent, alice, handed, clock, gateway, redis } = await setup();
  const { broker } = gateway;
  const root = await handed(alice, "lead");
  await agent("lead").delegate("scout", { parent_id: root.id });
  const died = vi.spyOn(broker.bulk, "srandmember").mockRejectedValueOnce(new Error("died"));
  await alice.cancel(root.id);
  died.mockRestore();
  const claim = Number(
    await fieldOf(redis, broker.shards.ofId(root.id)?.delegation(root.id) ?? "", "follow_at"),
  );
  clock.offset_ms = 3_000;
  const move = (claimed: number) =>
    broker.writer.move({ move: "follow_up", id: root.id, params: { claim: claimed } });
  const { outcome } = await move(claim);
  expect(outcome).toMatchObject({ kind: "ok", cascade: "caller:alice" });
  // Extended: it is not due at the former time.
  clock.offset_ms = 6_000;
  expect((await broker.writer.move({ move: "due", id: root.id })).outcome.kind).toBe("not_due");
  clock.offset_ms = 9_000;
  expect((await broker.writer.move({ move: "due", id: root.id })).outcome.kind).toBe("pending");
  expect((await move(claim)).outcome.kind).toBe("taken_over");
});

test("a child that is registered but not created when its parent is canceled is never created", async () => {
  const { gateway, agent, alice, handed, api, redis } = await setup();
  const root = await handed(alice, "lead");
  const { writer } = gateway.broker;
  const move = writer.move.bind(writer);
  const between = vi.spyOn(writer, "move").mockImplementation(async (command) => {
    if (command.move === "submit") {
      between.mockRestore();
      expect((await alice.cancel(root.id)).body.state).toBe("canceled");
    }
    return move(command);
  });
  const refused = await agent("lead").delegate("scout", { parent_id: root.id });
  expect([refused.status, refused.body.code]).toEqual([409, "already_finished"]);
  expect((await api.lease("scout", { wait_seconds: 0 })).body.leases).toEqual([]);
  expect(await redis.zcard("{errand:0}:live:scout:submitted")).toBe(0);
  const late = await agent("lead").delegate("scout", { parent_id: root.id });
  expect([late.status, late.body.code]).toEqual([409, "already_finished"]);
});

test("a parent must be visible and live", async () => {
  const { url, agent, alice, handed, api } = await setup();
  const root = await handed(alice, "lead");
  const bob = await as(url, "caller:bob");
  expect((await bob.delegate("scout", { parent_id: root.id })).body.code).toBe("delegation_not_found");
  await agent("lead").reply(root.lease);
  expect((await alice.delegate("scout", { parent_id: root.id })).body).toMatchObject({
    code: "already_finished",
    detail: `The parent ${root.id} is completed, and takes no more children.`,
    recovery: "Delegate without a parent, or under one that is not finished.",
  });
  const all = (await api.call("GET", "/v1/delegations")).body.delegations;
  expect(all).toHaveLength(1);
});

test("an agent may not delegate to itself or to an agent above it; callers may", async () => {
  const { agent, alice, handed } = await setup();
  const self = await agent("lead").delegate("lead");
  expect([self.status, self.body.code]).toEqual([422, "delegation_loop"]);
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const grandchild = await handed(agent("scout"), "smith", child.id);
  for (const target of ["lead", "scout", "smith"]) {
    const up = await agent("smith").delegate(target, { parent_id: grandchild.id });
    expect([target, up.status, up.body.code]).toEqual([target, 422, "delegation_loop"]);
  }
  expect((await agent("smith").delegate("clerk", { parent_id: grandchild.id })).status).toBe(202);
  expect((await alice.delegate("lead", { parent_id: root.id })).status).toBe(202);
});

test("delegations can be nested eight deep and no deeper", async () => {
  const { api } = await setup();
  let parent_id: string | undefined;
  for (let depth = 1; depth <= 8; depth += 1) {
    const made = await api.delegate("scout", parent_id === undefined ? {} : { parent_id });
    expect(made.status).toBe(202);
    parent_id = made.body.id;
  }
  const deeper = await api.delegate("scout", { parent_id });
  expect([deeper.status, deeper.body.code]).toEqual([422, "delegation_loop"]);
});

test("the cancel by an agent of its delegation cancels everything it delegated for it", async () => {
  const { agent, alice, handed, state } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_CANCELED" } };
  const body = { jsonrpc: "2.0", id: root.lease, result: { task } };
  expect((await agent("lead").call("POST", "/v1/agents/lead/replies", body)).status).toBe(200);
  expect([await state(root.id), await state(child.id)]).toEqual(["canceled", "canceled"]);
});

describe("when a parent ends", () => {
  const ends = {
    failed: async ({ agent, lease }: Ending) =>
      agent("lead").reply(lease, { state: "failed", error: { code: "broken", message: "no" } }),
    rejected: async ({ agent, lease }: Ending) => agent("lead").reply(lease, { state: "rejected" }),
    canceled: async ({ alice, id }: Ending) => alice.cancel(id),
    "out of time": async ({ clock, gateway }: Ending) => {
      clock.offset_ms = 101_000;
      await gateway.sweep.tick();
    },
    "out of attempts": async ({ clock, gateway }: Ending) => {
      clock.offset_ms = 61_000;
      await gateway.sweep.tick();
    },
    completed: async ({ agent, lease }: Ending) => agent("lead").reply(lease),
  };
  const NAMES = ["failed", "rejected", "canceled", "out of time", "out of attempts", "completed"] as const;
  type World = Awaited<ReturnType<typeof setup>>;
  type Ending = World & { readonly id: string; readonly lease: string };

  /** A parent with a child and a grandchild. */
  async function family(more: Record<string, unknown>) {
    const world = await setup();
    const made = await world.alice.delegate("lead", { ttl_seconds: 100, max_attempts: 1, ...more });
    const [lease] = (await world.agent("lead").lease("lead")).body.leases;
    const root = { id: String(made.body.id), lease: String(lease.lease_id) };
    const child = await world.handed(world.agent("lead"), "scout", root.id);
    const grandchild = await world.handed(world.agent("scout"), "clerk", child.id);
    const states = async () => [await world.state(child.id), await world.state(grandchild.id)];
    return { world, root, child, states };
  }

  test.each(NAMES)("as %s", async (name) => {
    const { world, root, child, states } = await family({});
    await ends[name]({ ...world, ...root });
    await until(async () => (await world.state(root.id)) !== "working");
    // Their deadline is the same.
    const expected = name === "completed" ? "working" : name === "out of time" ? "failed" : "canceled";
    await until(async () => (await states()).every((state) => state === expected));
    if (expected !== "canceled") return;
    const { error } = (await world.api.get(child.id)).body;
    expect(error.message).toContain(root.id);
  });

  test.each(NAMES)("as %s, its children go on if it keeps them", async (name) => {
    const { world, root, child, states } = await family({ children_on_failure: "keep" });
    expect((await world.api.get(root.id)).body.children_on_failure).toBe("keep");
    await ends[name]({ ...world, ...root });
    await until(async () => (await world.state(root.id)) !== "working");
    await Promise.all(world.gateway.broker.background);
    expect(await states()).not.toContain("canceled");
    // A cancel can still reach them.
    if (name !== "canceled") return;
    await world.alice.cancel(root.id, { cascade: true });
    await until(async () => (await world.state(child.id)) === "canceled");
  });

  test("a failure that is retried cancels nothing", async () => {
    const { world, root, states } = await family({ max_attempts: 2 });
    await world.agent("lead").reply(root.lease, {
      state: "failed",
      error: { code: "broken", message: "no", retryable: true },
    });
    await Promise.all(world.gateway.broker.background);
    expect(await states()).toEqual(["working", "working"]);
  });
});

test("a child ends at its parent's deadline at the latest, and must start before it", async () => {
  const { api, agent, alice } = await setup();
  const { id, deadline_at } = (await alice.delegate("lead", { ttl_seconds: 100 })).body;
  const child = (await agent("lead").delegate("scout", { parent_id: id, ttl_seconds: 1000 })).body;
  const short = (await agent("lead").delegate("scout", { parent_id: id, ttl_seconds: 10 })).body;
  const grandchild = (await agent("scout").delegate("clerk", { parent_id: child.id })).body;
  expect([child.deadline_at, grandchild.deadline_at]).toEqual([deadline_at, deadline_at]);
  expect(Date.parse(short.deadline_at)).toBeLessThan(Date.parse(deadline_at));
  for (const late of [{ delay_seconds: 200 }, { not_before: new Date(Date.now() + 200_000).toISOString() }]) {
    const { status, body } = await agent("lead").delegate("scout", { parent_id: id, ...late });
    expect([status, body.details.issues[0].path]).toEqual([400, Object.keys(late)[0]]);
  }
  expect((await api.call("GET", `/v1/delegations?parent_id=${id}`)).body.delegations).toHaveLength(2);
});

import { expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";

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
  /** Delegates as somebody, and leases it. */
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

test("without cascade the children go on, and take no harm from a second cancel", async () => {
  const { agent, alice, handed, state } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  expect((await alice.cancel(root.id, { cascade: false })).status).toBe(200);
  expect(await state(child.id)).toBe("working");
  expect((await alice.cancel(root.id)).status).toBe(200);
  expect((await agent("scout").reply(child.lease)).body.outcome).toBe("matched");
});

test("a cascade that its gateway did not live to finish is finished by the sweep", async () => {
  const { agent, alice, handed, state, clock, gateway } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const died = vi.spyOn(gateway.broker.redis, "smembers").mockRejectedValueOnce(new Error("died"));
  await alice.cancel(root.id);
  died.mockRestore();
  expect(await state(child.id)).toBe("working");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  expect(await state(child.id)).toBe("canceled");
  // Done is done: nothing is owed any more.
  const looked = vi.spyOn(gateway.broker.redis, "smembers");
  clock.offset_ms = 12_000;
  await gateway.sweep.tick();
  expect(looked).not.toHaveBeenCalled();
});

test("a child that is registered but not made when its parent is canceled never comes to be", async () => {
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
  expect((await alice.delegate("scout", { parent_id: root.id })).body.code).toBe("already_finished");
  const all = (await api.call("GET", "/v1/delegations")).body.delegations;
  expect(all).toHaveLength(1);
});

test("an agent may not delegate to itself, nor to any agent above; callers may", async () => {
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

test("eight deep is deep enough", async () => {
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

test("an agent that cancels its delegation cancels what it delegated for it", async () => {
  const { agent, alice, handed, state } = await setup();
  const root = await handed(alice, "lead");
  const child = await handed(agent("lead"), "scout", root.id);
  const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_CANCELED" } };
  const body = { jsonrpc: "2.0", id: root.lease, result: { task } };
  expect((await agent("lead").call("POST", "/v1/agents/lead/replies", body)).status).toBe(200);
  expect([await state(root.id), await state(child.id)]).toEqual(["canceled", "canceled"]);
});

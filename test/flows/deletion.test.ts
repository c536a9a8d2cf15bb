/** The deletion of an agent, with everything that depends on it. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

test.each([1, 5])(
  "open questions and children of a deleted agent are canceled, with %i shards",
  async (shards) => {
    const { url, gateway, redis } = await startBroker({ shards });
    const api = client(url);
    for (const agent of ["lead", "scout", "smith"]) await api.agent(agent);
    const [lead, scout, alice] = await Promise.all([
      as(url, "agent:lead"),
      as(url, "agent:scout"),
      as(url, "caller:alice"),
    ]);
    const leased = async (by: typeof api, agent: typeof api, target: string, more: object = {}) => {
      const { id } = (await by.delegate(target, { ...more })).body;
      const [{ lease_id }] = (await agent.lease(target)).body.leases;
      return { id: String(id), lease: String(lease_id) };
    };
    const asking = await leased(alice, lead, "lead");
    const { interrupt_id } = (await lead.interrupt(asking.lease, { text: "Which?" })).body;
    const root = await leased(alice, lead, "lead");
    const waiting = (await alice.delegate("lead")).body.id;
    const child = await leased(lead, scout, "scout", { parent_id: root.id });
    const grandchild = (await scout.delegate("smith", { parent_id: child.id })).body.id;
    // Created by the agent without a parent: not part of its work, so it stays.
    const other = (await lead.delegate("smith")).body.id;
    const held = scout.heartbeat(child.lease, { wait_seconds: 20, progress: { done: 1 } });
    await until(async () => (await api.get(child.id)).body.progress !== null);

    const refused = await api.call("DELETE", "/v1/agents/lead");
    expect([refused.status, refused.body.code]).toEqual([409, "agent_busy"]);
    expect(refused.body.details.counts).toMatchObject({ waiting: 1, working: 1, interrupted: 1 });
    expect((await api.call("DELETE", "/v1/agents/lead?force=true")).status).toBe(204);
    await Promise.allSettled(gateway.broker.background);

    expect((await held).body).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
    for (const id of [asking.id, root.id, waiting, child.id, grandchild]) {
      expect((await api.get(id)).body).toMatchObject({ state: "canceled", interrupt: null, lease: null });
      checkHistory(await eventsOf(api, id), "finished");
    }
    expect((await api.get(other)).body.state).toBe("submitted");
    const answer = await alice.answer(asking.id, interrupt_id, { text: "that" });
    expect([answer.status, answer.body.code]).toEqual([409, "interrupt_not_open"]);
    expect((await lead.reply(root.lease)).status).toBe(401);
    expect((await alice.delegate("lead")).body.code).toBe("agent_unknown");
    expect(await keysIn(redis, "*:live:lead:*")).toEqual([]);
  },
);

test("a parent stays alive when the agent of its child is deleted", async () => {
  const { url } = await startBroker();
  const api = client(url);
  for (const agent of ["lead", "scout"]) await api.agent(agent);
  const lead = await as(url, "agent:lead");
  const root = (await api.delegate("lead")).body.id;
  const [{ lease_id }] = (await lead.lease("lead")).body.leases;
  const child = (await lead.delegate("scout", { parent_id: root })).body.id;
  expect((await api.call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);
  expect((await lead.get(child)).body).toMatchObject({ state: "canceled", error: { code: "canceled" } });
  expect((await lead.reply(lease_id)).body).toMatchObject({
    outcome: "matched",
    delegation: { state: "completed" },
  });
});

/** Deleting an agent: what ends with it, and what a new agent of its name does not see. */
import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";

/** A broker with the agents scout and other, and the operator. */
async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  await admin.agent("other");
  const delegated = async () => {
    const alice = await as(broker.url, "caller:alice");
    return String((await alice.delegate("scout")).body.id);
  };
  return { ...broker, admin, delegated };
}

describe("deleting an agent", () => {
  test("is remembered as long as records of its time may exist, and no longer", async () => {
    const { admin, redis, clock } = await setup();
    const remembered = () => redis.zrange("{errand}:deleted", "0", "-1");
    await admin.call("DELETE", "/v1/agents/scout");
    clock.offset_ms = 3_600_000;
    await admin.call("DELETE", "/v1/agents/other");
    expect(await remembered()).toEqual(["scout", "other"]);
    clock.offset_ms = 400 * 86_400_000 + 1_000;
    await admin.agent("third");
    await admin.call("DELETE", "/v1/agents/third");
    expect(await remembered()).toEqual(["other", "third"]);
  });

  test("is refused while it has live delegations, unless forced; then they are canceled", async () => {
    const { url, admin, delegated } = await setup();
    const scout = await as(url, "agent:scout");
    const id = await delegated();
    const lease = (await scout.lease("scout")).body.leases[0].lease_id;
    expect(await admin.call("DELETE", "/v1/agents/scout")).toMatchObject({
      status: 409,
      body: { code: "agent_busy", details: { counts: { working: 1 } } },
    });
    expect((await admin.call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);
    expect((await admin.get(id)).body).toMatchObject({ state: "canceled" });
    expect((await scout.heartbeat(lease)).status).toBe(401);
    expect(await admin.delegate("scout")).toMatchObject({ status: 404, body: { code: "agent_unknown" } });
  });

  test("while its workers reply completes, and can be retried after an interruption", async () => {
    const { url, admin, redis, gateway } = await setup();
    for (let n = 0; n < 60; n += 1) await admin.delegate("scout");
    const { leases } = (await admin.lease("scout", { max: 32 })).body;
    const [answer] = await Promise.all([
      admin.call("DELETE", "/v1/agents/scout?force=true"),
      ...leases.map((lease: { lease_id: string }) => admin.reply(lease.lease_id)),
    ]);
    expect(answer.status).toBe(204);
    expect((await admin.call("DELETE", "/v1/agents/scout")).body.code).toBe("agent_unknown");
    expect((await keysIn(redis, "{errand:0}:live:scout:*")).length).toBe(0);

    // Interrupted right after it began: no work is accepted or leased, and a retry completes it.
    const other = await as(url, "agent:other");
    const { id } = (await admin.delegate("other")).body;
    await gateway.broker.agents.beginDeletion("other", true);
    expect((await admin.delegate("other")).body.code).toBe("agent_unknown");
    expect((await other.lease("other", { wait_seconds: 0 })).body.leases).toEqual([]);
    expect((await admin.agent("other")).body.code).toBe("agent_busy");
    expect((await admin.call("DELETE", "/v1/agents/other")).status).toBe(204);
    expect((await admin.get(id)).body.state).toBe("canceled");
    expect((await other.call("GET", "/v1/agents")).status).toBe(401);
  });

  test("neither a new agent nor a token without an agent sees what the old agent delegated", async () => {
    const { url, admin } = await setup();
    const old = await as(url, "agent:scout");
    const mine = (await old.delegate("other")).body.id;
    await admin.call("DELETE", "/v1/agents/scout?force=true");
    const orphan = await as(url, "agent:scout");
    expect((await orphan.get(mine)).status).toBe(404);
    await admin.agent("scout");
    const { leases } = (await admin.lease("other")).body;
    await admin.reply(leases[0].lease_id, { text: "secret" });
    const reborn = await as(url, "agent:scout");
    const page = await reborn.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
    expect(page.body.events).toEqual([]);
    expect((await reborn.call("GET", "/v1/results")).body.results).toEqual([]);
  });

  test("a new agent of the same name sees nothing of the old one's", async () => {
    const { url, admin, delegated } = await setup();
    const id = await delegated();
    await admin.call("DELETE", "/v1/agents/scout?force=true");
    await admin.agent("scout");
    const reborn = await as(url, "agent:scout");
    expect((await reborn.get(id)).status).toBe(404);
    const page = await reborn.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
    expect(page.body.events).toEqual([]);
    expect((await reborn.lease("scout", { wait_seconds: 0 })).body.leases).toEqual([]);
  });
});

/** Leases whose grant nobody heard of. Limit: what silence does to them is in faults/. */
import { afterEach, expect, test, vi } from "vitest";
import { Unheard } from "../../src/engine/recover.ts";
import { client, startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("a lease that nobody heard of goes back, however many were granted after it", async () => {
  const { url, gateway, redis } = await startBroker();
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { outcome } = await broker.writer.take({ agent: "scout", nonce: "lost", worker_id: "w" });
  expect(outcome).toMatchObject({ outcome: "ok", id });
  const newer = Array.from({ length: 1_500 }, (_, n) => [String(Date.now() + 1_000), `dlg_0_other${n}`]);
  await redis.zadd("{errand:0}:live:scout:working", ...newer.flat());
  broker.unheard.grant("scout", "lost");
  await until(async () => (await api.get(id)).body.state === "submitted");
  expect((await api.lease("scout")).body.leases[0]).toMatchObject({ attempt: 1, delegation: { id } });
});

test("grants are looked for as long as Redis is silent, for a while after, and none that came meanwhile is forgotten", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const unheard = new Unheard();
  const nonces = () => (unheard.grants.get("scout") ?? []).map(({ nonce }) => nonce);
  const look = (answered: boolean, meanwhile = () => {}) => {
    const grants = unheard.grants.get("scout") ?? [];
    meanwhile();
    unheard.lookedFor("scout", grants, answered);
  };
  unheard.grant("scout", "first");
  vi.setSystemTime(Date.now() + 60_000);
  look(false);
  expect(nonces()).toEqual(["first"]);
  // Redis may still carry out what it had before.
  look(true, () => unheard.grant("scout", "second"));
  expect(nonces()).toEqual(["first", "second"]);
  vi.setSystemTime(Date.now() + 5_000);
  look(true);
  expect(nonces()).toEqual(["second"]);
  vi.setSystemTime(Date.now() + 5_000);
  look(true);
  expect(unheard.grants.size).toBe(0);
});

test("polls of an agent whose deletion was broken off wait without asking on and on", async () => {
  const { url, gateway } = await startBroker();
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const take = vi.spyOn(broker.writer, "take");
  await broker.agents.close("scout", true);
  expect((await api.lease("scout", { wait_seconds: 1 })).body.leases).toEqual([]);
  expect(take.mock.calls.length).toBeLessThan(4);
});

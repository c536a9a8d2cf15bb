/** Leases in doubt after a lost answer. How they come to be in doubt when Redis is silent is tested in faults/. */
import { afterEach, expect, test, vi } from "vitest";
import { InDoubt } from "../../../src/engine/leases/in-doubt.ts";
import { returnLeases } from "../../../src/engine/leases/lease.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { client, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

const idle = () =>
  new InDoubt({
    shards: new Shards(1),
    offer: async () => {},
    findGrants: async () => [],
    returnLease: async () => {
      throw new Error("Command timed out");
    },
    onReturn: () => {},
    warn: () => {},
  });

afterEach(() => {
  vi.useRealTimers();
});

test("a lease whose grant was lost is returned, however many were granted after it", async () => {
  const { url, gateway, redis } = await startBroker();
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { outcome } = await broker.writer.take({ agent: "scout", nonce: "lost", worker_id: "w" });
  expect(outcome).toMatchObject({ kind: "ok", id });
  const newer = Array.from({ length: 1_500 }, (_, n) => [String(Date.now() + 1_000), `dlg_0_other${n}`]);
  await redis.zadd("{errand:0}:live:scout:working", ...newer.flat());
  broker.handoff.inDoubt.grant("scout", "lost");
  await until(async () => (await api.get(id)).body.state === "submitted");
  expect((await api.lease("scout")).body.leases[0]).toMatchObject({ attempt: 1, delegation: { id } });
});

test("a failed return is tried again until the lease is known to be gone", async () => {
  const { url, gateway } = await startBroker();
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const ids = [(await api.delegate("scout")).body.id, (await api.delegate("scout")).body.id];
  const { leases } = (await api.lease("scout", { max: 2 })).body;
  // The second lease received a reply after all.
  await api.reply(leases[1].lease_id);
  const failures = ["Command timed out", "Connection is closed.", "Command timed out"];
  const original = broker.writer.move.bind(broker.writer);
  vi.spyOn(broker.writer, "move").mockImplementation((...args) => {
    const failure = args[0].move === "unconfirm" ? failures.shift() : undefined;
    return failure === undefined ? original(...args) : Promise.reject(new Error(failure));
  });
  await returnLeases(
    broker,
    ids.map((delegation_id) => ({ delegation_id, fence: 1, json: "" })),
  );
  expect(broker.handoff.inDoubt.returns).toHaveLength(2);
  await until(() => broker.handoff.inDoubt.returns.length === 0);
  expect((await api.get(ids[0])).body).toMatchObject({ state: "submitted", attempt: 1 });
  expect((await api.get(ids[1])).body.state).toBe("completed");
});

test("a round with an unexpected error does not prevent the next one", async () => {
  const { gateway, log } = await startBroker();
  const { broker } = gateway;
  const order = { priority: 5, returned: false, delay_ms: 0 };
  const { inDoubt } = broker.handoff;
  inDoubt.offer({ agent: "scout", data: { delegation_id: "dlg_0_a", ticket: 1 }, order });
  vi.spyOn(broker.tickets, "add").mockRejectedValueOnce(new Error("Command timed out"));
  vi.spyOn(inDoubt, "offer").mockImplementationOnce(() => {
    throw new Error("unforeseen");
  });
  await until(() => log.some((line) => line.includes("cases in doubt not resolved yet")), {
    what: "the failure",
  });
  const data = { delegation_id: "dlg_0_b", ticket: 1 };
  inDoubt.offer({ agent: "scout", data, order });
  await until(async () => (await broker.tickets.find("scout", data)) === "queued", {
    what: "the next round",
  });
});

test("a shard that does not answer does not delay the cases of the others", async () => {
  vi.useFakeTimers();
  const shards = new Shards(2);
  const silent = (agent: string) => shards.indexOfAgent(agent) === 0;
  const names = Array.from({ length: 20 }, (_, n) => `agent-${n}`);
  const [lost, found] = [names.find(silent) ?? "", names.find((name) => !silent(name)) ?? ""];
  const ids = [lost, found].map((name) => shards.newDelegationId(name));
  const done: string[] = [];
  const unanswered: string[] = [];
  const only = async (shard: number | undefined, what: string) => {
    if (shard !== 0) return void done.push(what);
    unanswered.push(what);
    throw new Error("Command timed out");
  };
  const inDoubt = new InDoubt({
    shards,
    offer: ({ agent }) => only(shards.indexOfAgent(agent), "offer"),
    findGrants: async (agent) => {
      await only(shards.indexOfAgent(agent), "search");
      return [];
    },
    returnLease: ({ delegation_id }) => only(shards.indexOfId(delegation_id), "return"),
    onReturn: () => {},
    warn: () => {},
  });
  for (const [n, agent] of [lost, found].entries()) {
    const delegation_id = ids[n] ?? "";
    inDoubt.returns.push({ delegation_id, fence: 1 });
    inDoubt.offer({
      agent,
      data: { delegation_id, ticket: 1 },
      order: { priority: 5, returned: false, delay_ms: 0 },
    });
    inDoubt.grant(agent, "nonce");
  }
  inDoubt.start();
  await vi.advanceTimersByTimeAsync(500);
  inDoubt.stop();
  expect(done.sort()).toEqual(["offer", "return", "search"]);
  // Each attempt takes as long as a command may wait, so the shard gets one in a round.
  expect(unanswered).toEqual(["offer"]);
  expect(inDoubt.returns.map(({ delegation_id }) => delegation_id)).toEqual([ids[0]]);
  expect(inDoubt.offers.map(({ agent }) => agent)).toEqual([lost]);
  expect([...inDoubt.grants.keys()].sort()).toEqual([lost, found].sort());
});

test("returns that wait for Redis are bounded", async () => {
  const inDoubt = idle();
  for (let n = 0; n < 10_100; n += 1) await inDoubt.returnLease({ delegation_id: `dlg_0_${n}`, fence: 1 });
  expect(inDoubt.returns).toHaveLength(10_000);
});

test("grants are searched for while Redis is silent and for some time after; one added meanwhile is not forgotten", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const inDoubt = idle();
  const nonces = () => (inDoubt.grants.get("scout") ?? []).map(({ nonce }) => nonce);
  const look = (answered: boolean, meanwhile = () => {}) => {
    const grants = inDoubt.grants.get("scout") ?? [];
    meanwhile();
    if (answered) inDoubt.searched("scout", grants);
  };
  inDoubt.grant("scout", "first");
  vi.setSystemTime(Date.now() + 60_000);
  look(false);
  expect(nonces()).toEqual(["first"]);
  // Redis may still execute earlier commands.
  look(true, () => inDoubt.grant("scout", "second"));
  expect(nonces()).toEqual(["first", "second"]);
  vi.setSystemTime(Date.now() + 5_000);
  look(true);
  expect(nonces()).toEqual(["second"]);
  vi.setSystemTime(Date.now() + 5_000);
  look(true);
  expect(inDoubt.grants.size).toBe(0);
});

test("polls of an agent whose deletion was cut short wait without fetching again and again", async () => {
  const { url, gateway } = await startBroker();
  const { broker } = gateway;
  const api = client(url);
  await api.agent("scout");
  const take = vi.spyOn(broker.writer, "take");
  await broker.agents.beginDeletion("scout", true);
  expect((await api.lease("scout", { wait_seconds: 1 })).body.leases).toEqual([]);
  // A loop would make hundreds. A few wakes of other causes are possible on a busy machine.
  expect(take.mock.calls.length).toBeLessThan(20);
});

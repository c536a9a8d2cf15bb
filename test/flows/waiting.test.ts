/** What reaches a parked poll and a held heartbeat, and how soon. Limit: measured on the machine that runs the test. */
import type { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { keepAliveClient } from "../support/keep-alive-client.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

/** The promised delay for delayed work, which most polls must meet: the machine may be busy. */
const ON_TIME_MS = 250;
const mostly = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.9) - 1] ?? Number.NaN;

/** All commands that a Redis received so far, except the INFO that asks. */
async function commands(redis: Redis): Promise<number> {
  const stats = await redis.info("commandstats");
  const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)];
  return calls.reduce((sum, [, name, n]) => sum + (name === "info" ? 0 : Number(n)), 0);
}

test("200 parked polls send Redis no commands, and delayed work wakes them on time", {
  timeout: 60_000,
}, async () => {
  const withStalls = allowStalls();
  // A Redis of its own, because commands are counted per server.
  const own = await startOwnRedis("everysec");
  const first = await startBroker({ redis: own.target });
  const second = await first.another();
  const brokers = [first, second].map(({ gateway }) => gateway.broker);
  const takes = brokers.map(({ writer }) => vi.spyOn(writer, "take"));
  const looks = () => takes.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  const api = client(first.url);
  const agents = Array.from({ length: 20 }, (_, n) => `scout-${n}`);
  for (const agent of agents) await api.agent(agent);
  const gateways = [keepAliveClient(first.url, 200), keepAliveClient(second.url, 200)];
  const arrivals: number[] = [];
  const early: number[] = [];
  const polls = Array.from({ length: 200 }, async (_, n) => {
    const body = { wait_seconds: 50 };
    const answer = await gateways[n % 2]?.(OPERATOR, "POST", `/v1/agents/${agents[n % 20]}/leases`, body);
    const now = Date.now();
    for (const { delegation } of answer?.body.leases ?? []) {
      const late = now - Date.parse(delegation.not_before_at);
      (late < 0 ? early : arrivals).push(late);
    }
  });
  await until(() => brokers.reduce((sum, { handoff }) => sum + handoff.polls.countAll(), 0) === 200);
  const due = Date.now() + 5_000;
  for (const [n, target] of agents.entries()) {
    const not_before = new Date(due + n * 50).toISOString();
    expect((await api.delegate(target, { not_before })).body.not_before_at).toBe(not_before);
  }
  // The first fetch of every poll is over.
  await until(async () => {
    const count = looks();
    await Promise.allSettled(takes.flatMap(({ mock }) => mock.results.map(({ value }) => value)));
    return looks() === count;
  });
  // The figures of the 20 delegations are written within a second.
  for (const { counters } of brokers) await counters.flush();
  const [looked, before] = [looks(), await commands(own.redis)];
  await until(() => Date.now() > due - 100);
  expect(looks()).toBe(looked);
  // Two idle gateways send some 100 commands in 5 s; one for each poll would be 200 more.
  expect((await commands(own.redis)) - before).toBeLessThan(200);

  await until(() => arrivals.length + early.length === 20);
  expect(early).toEqual([]);
  expect(mostly(arrivals)).toBeLessThanOrEqual(withStalls(ON_TIME_MS));
  await Promise.all([first.gateway.close(), second.gateway.close(), ...polls]);
});

test("a held heartbeat returns a cancel and a follow-up from the other gateway in milliseconds", async () => {
  const withStalls = allowStalls();
  const first = await startBroker();
  const second = await first.another();
  const api = client(first.url);
  await api.agent("scout");
  const scout = await as(first.url, "agent:scout");
  const alice = client(second.url, (await as(first.url, "caller:alice")).token);
  const delays: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    const { id } = (await alice.delegate("scout")).body;
    const [{ lease_id }] = (await scout.lease("scout")).body.leases;
    const isCancel = n % 2 === 0;
    // With progress, so that the test sees that it is held.
    const held = scout.heartbeat(lease_id, { wait_seconds: 30, progress: { done: n } });
    await until(async () => (await api.get(id)).body.progress !== null);
    await (isCancel ? alice.cancel(id) : alice.message(id, "hurry"));
    const saidAt = performance.now();
    const { body } = await held;
    delays.push(performance.now() - saidAt);
    if (isCancel) expect(body).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
    else expect(body.messages).toMatchObject([{ parts: [{ text: "hurry" }] }]);
  }
  expect(mostly(delays)).toBeLessThan(withStalls(ON_TIME_MS));
});

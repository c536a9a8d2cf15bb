/**
 * Trees whose parents wait for their children, while gateways and workers are killed: every wait ends exactly once. And
 * what a thousand waiting parents cost.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { randomOf } from "../support/random.ts";
import { until } from "../support/until.ts";

const TREES = 14;
const GATEWAYS = 2;
const WORKERS = 4;
const KILLS = 10;
/** Of each parent; the worker has the same number. */
const PARTS = 2;
const SEED = 7;

test("trees three deep, parked at each level, while gateways and workers are killed: each wait ends once", async () => {
  const random = randomOf(SEED);
  // The test's own gateway sweeps and reads; the workers use the ones that are killed.
  const broker = await startBroker({ sweepEveryMs: 100, shards: 1 });
  const api = client(broker.url);
  const tokens: Record<string, string> = {};
  for (const name of ["root", "mid", "leaf"]) {
    await api.agent(name, { limits: { max_attempts: 50 }, backoff: { initial_ms: 20, max_ms: 100 } });
    tokens[name] = (await as(broker.url, `agent:${name}`)).token;
  }
  const gateways: GatewayProcess[] = [];
  for (let n = 0; n < GATEWAYS; n += 1)
    gateways.push(await startGatewayProcess(broker.db, { sweepEveryMs: 100 }));
  const script = fileURLToPath(new URL("../support/child-tree-worker.mjs", import.meta.url));
  const urls = gateways.map(({ url }) => url).join(",");
  const worker = (): ChildProcess =>
    fork(script, [urls, JSON.stringify(tokens)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const workers = Array.from({ length: WORKERS }, worker);
  onTestFinished(() => {
    for (const child of workers) child.kill("SIGKILL");
  });

  const roots: string[] = [];
  for (let n = 0; n < TREES; n += 1) roots.push((await api.delegate("root", { task: `tree ${n}` })).body.id);
  const live = async () => {
    const { agents } = (await api.call("GET", "/v1/agents")).body;
    return agents
      .flatMap(({ counts }: { counts: Record<string, number> }) => Object.values(counts))
      .reduce((sum: number, count: number) => sum + count, 0);
  };
  const done = async () =>
    (await api.call("GET", "/v1/delegations?state=completed&limit=100")).body.delegations.length;
  for (let killed = 0; killed < KILLS && (await live()) > 0; killed += 1) {
    if (killed % 2 === 0) {
      const at = random(GATEWAYS);
      const dying = gateways[at];
      // It dies before one of its next commands to Redis, between two steps of a wait or of an end.
      await dying?.arm(1 + random(60));
      await until(() => dying?.isAlive() === false, { what: "the death of a gateway", timeoutMs: 30_000 });
      gateways[at] = await startGatewayProcess(broker.db, { sweepEveryMs: 100, port: dying?.port ?? 0 });
    } else {
      const at = random(WORKERS);
      workers[at]?.kill("SIGKILL");
      workers[at] = worker();
    }
    const before = await done();
    await until(async () => (await done()) > before + 4 || (await live()) === 0, { what: "more ends" });
  }
  await until(async () => (await live()) === 0, { what: "the end of all trees", timeoutMs: 60_000 });

  let parents = 0;
  let parked = 0;
  const check = async (id: string): Promise<string> => {
    const events = await eventsOf(api, id);
    checkHistory(events, "finished");
    const { delegations } = (await api.call("GET", `/v1/delegations?parent_id=${id}`)).body;
    const ends: string[] = [];
    for (const child of delegations) ends.push(await check(child.id));
    if (delegations.length > 0) {
      parents += 1;
      parked += events.filter(({ status }) => status === "awaiting").length;
      expect(delegations).toHaveLength(PARTS);
      expectOneWait(events, ends);
    }
    const end = events.at(-1);
    expect(end?.type).toBe("DELEGATION_COMPLETE");
    return end?.id ?? "";
  };
  for (const id of roots) {
    await check(id);
    expect((await api.get(id)).body.reply.parts[0].text).toBe("x".repeat(PARTS * PARTS));
  }
  expect(parents).toBe(TREES * (1 + PARTS));
  expect(parked).toBeGreaterThan(TREES);
}, 120_000);

/** It was parked once and queued again once, after all its children ended; then one lease for each lease that ended. */
function expectOneWait(events: readonly DelegationEvent[], ends: readonly string[]): void {
  const statuses = events.map(({ status }) => status);
  const of = (status: string) => statuses.filter((one) => one === status).length;
  // None, if the children had ended before the wait.
  expect(of("awaiting")).toBeLessThanOrEqual(1);
  expect(of("resumed")).toBe(of("awaiting"));
  const at = statuses.indexOf("resumed");
  if (at < 0) return;
  const resumed = events[at]?.id ?? "";
  for (const end of ends) expect(order(end) < order(resumed), `${end} before ${resumed}`).toBe(true);
  const after = statuses.slice(at + 1);
  const again = after.filter((one) => one === "lease_expired" || one === "released").length;
  expect(after.filter((one) => one === "leased")).toHaveLength(1 + again);
}

/** The ids of the events of one shard, as numbers. */
function order(id: string): bigint {
  const [ms = "0", n = "0"] = id.split("-");
  return (BigInt(ms) << 64n) + BigInt(n);
}

test("a thousand parents wait without a lease, a poll or a timer, and with as many keys each", async () => {
  const { url, gateway, redis } = await startBroker({ shards: 1 });
  const { broker } = gateway;
  const alice = await as(url, "caller:alice");
  const lead = await as(url, "agent:lead");
  const scout = await as(url, "agent:scout");
  await lead.agent("lead");
  await scout.agent("scout");
  const park = async (count: number) => {
    const one = async () => {
      await alice.delegate("lead");
      const [{ lease_id, delegation }] = (await lead.lease("lead", { wait_seconds: 5 })).body.leases;
      const child = (await lead.delegate("scout", { parent_id: delegation.id })).body.id;
      expect((await lead.await(lease_id, [child])).body.awaits.left).toBe(1);
    };
    for (let n = 0; n < count; n += 50) await Promise.all(Array.from({ length: 50 }, one));
    await Promise.all(broker.background);
  };
  const held = async () => ({
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
    background: broker.background.size,
    leases: await redis.zcard("{errand:0}:live:lead:working"),
    waiting: await redis.zcard("{errand:0}:live:lead:awaiting_children"),
    keys: await redis.dbsize(),
  });
  await park(100);
  const few = await held();
  await park(400);
  const some = await held();
  await park(500);
  const many = await held();
  expect(many).toMatchObject({ background: 0, leases: 0, waiting: 1_000 });
  // Some timers of the process come and go; none of them belongs to a parent.
  expect(many.timers - few.timers).toBeLessThan(20);
  const keysEach = (many.keys - some.keys) / 500;
  expect(Math.abs(keysEach - (some.keys - few.keys) / 400)).toBeLessThan(0.1);
  // A parent has its record, children and waits, a child its record; both have events.
  expect(keysEach).toBeLessThanOrEqual(12);

  const { leases } = (await scout.lease("scout", { max: 1 })).body;
  await scout.reply(leases[0].lease_id);
  await until(async () => (await redis.zcard("{errand:0}:live:lead:submitted")) === 1);
  expect(await held()).toMatchObject({ waiting: 999 });
  // Four thousand requests and more, which a busy machine takes minutes for.
}, 240_000);

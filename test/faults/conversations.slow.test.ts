/**
 * Conversations of an agent that works on one delegation of each at a time, while gateways and workers are killed: in
 * order in each, and at the same time in different ones.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { randomOf } from "../support/random.ts";
import { until } from "../support/until.ts";

const CONVERSATIONS = 100;
const MESSAGES = 20;
const GATEWAYS = 2;
const WORKERS = 10;
const KILLS = 6;
const WORKERS_AT_ONCE = 3;
/** So many messages end between two kills. */
const BETWEEN = 100;
const SEED = 11;
const ENDS: readonly string[] = ["DELEGATION_COMPLETE", "DELEGATION_FAILED"];

/** The ids of the events of one shard, as numbers. */
function order(id: string): bigint {
  const [ms = "0", n = "0"] = id.split("-");
  return (BigInt(ms) << 64n) + BigInt(n);
}

test("100 conversations of 20 messages over 10 workers that are killed: in order in each, parallel otherwise", async () => {
  const random = randomOf(SEED);
  // The test's own gateway sweeps and reads; the others are killed.
  const broker = await startBroker({ sweepEveryMs: 100, shards: 1 });
  const api = client(broker.url);
  await api.agent("chat", {
    ...{ serial_by: "context", sticky_seconds: 0.5 },
    ...{ limits: { max_attempts: 50 }, backoff: { initial_ms: 20, max_ms: 100 } },
  });
  const { token } = await as(broker.url, "agent:chat");
  const gateways: GatewayProcess[] = [];
  for (let n = 0; n < GATEWAYS; n += 1)
    gateways.push(await startGatewayProcess(broker.db, { sweepEveryMs: 100 }));
  const script = fileURLToPath(new URL("../support/child-talk-worker.mjs", import.meta.url));
  const urls = gateways.map(({ url }) => url);
  const all = [broker.url, ...urls];
  const worker = (): ChildProcess =>
    fork(script, [urls.join(","), "chat", token], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const workers = Array.from({ length: WORKERS }, worker);
  onTestFinished(() => {
    for (const child of workers) child.kill("SIGKILL");
  });

  /** Each message is accepted, by a gateway that may die, before the next one is sent. */
  const talk = async (talker: number): Promise<string[]> => {
    const accepted: string[] = [];
    for (let n = 0; n < MESSAGES; n += 1) {
      const key = { "idempotency-key": `${talker}-${n}` };
      const send = (url: string) => client(url).delegate("chat", { context_id: `c${talker}` }, key);
      const accept = async () => {
        const answer = await send(all[random(all.length)] ?? "").catch(() => null);
        if (!answer || answer.status >= 300) return false;
        accepted.push(answer.body.id);
        return true;
      };
      await until(accept, { what: "an accepted message", timeoutMs: 60_000 });
    }
    return accepted;
  };
  const counts = async () => (await api.call("GET", "/v1/agents/chat")).body.counts;
  const live = async () => {
    const { waiting, delayed, working } = await counts();
    return waiting + delayed + working;
  };
  const talks = Promise.all(Array.from({ length: CONVERSATIONS }, (_, talker) => talk(talker)));
  let isSaid = false;
  void talks.then(() => {
    isSaid = true;
  });
  const done = async () => (await broker.redis.zcard("{errand:0}:list:all")) - (await live());
  for (let killed = 0; killed < KILLS; killed += 1) {
    const before = await done();
    if (killed % 2 === 0) {
      const at = random(GATEWAYS);
      const dying = gateways[at];
      // It dies before one of its next commands to Redis.
      await dying?.arm(1 + random(60));
      await until(() => dying?.isAlive() === false, { what: "the death of a gateway", timeoutMs: 30_000 });
      gateways[at] = await startGatewayProcess(broker.db, { sweepEveryMs: 100, port: dying?.port ?? 0 });
    } else {
      for (let n = 0; n < WORKERS_AT_ONCE; n += 1) {
        const at = random(WORKERS);
        workers[at]?.kill("SIGKILL");
        workers[at] = worker();
      }
    }
    const more = async () => (await done()) > before + BETWEEN || (isSaid && (await live()) === 0);
    await until(more, { what: "more ends", timeoutMs: 60_000 });
  }
  const conversations = await talks;
  for (const ids of conversations) {
    const isOver = async () => (await api.get(ids.at(-1) ?? "")).body.state === "completed";
    await until(isOver, { what: "the end of a conversation", timeoutMs: 60_000 });
  }

  const events = await eventsOfAll(client(broker.url, token));
  const ends = new Map<string, bigint>();
  const firstLeases = new Map<string, bigint>();
  let atOnce = 0;
  let most = 0;
  const held = new Set<string>();
  for (const { id, type, status, delegation_id } of events) {
    if (status === "leased" || status === "reclaimed") held.add(delegation_id);
    if (status === "leased" && !firstLeases.has(delegation_id)) firstLeases.set(delegation_id, order(id));
    if (status === "released" || status === "lease_expired" || ENDS.includes(type))
      held.delete(delegation_id);
    if (ENDS.includes(type)) ends.set(delegation_id, order(id));
    atOnce = held.size;
    most = Math.max(most, atOnce);
  }
  expect(ends.size).toBe(CONVERSATIONS * MESSAGES);
  expect(events.filter(({ type }) => type === "DELEGATION_FAILED")).toEqual([]);
  for (const ids of conversations) {
    for (const [at, id] of ids.entries()) {
      const before = ends.get(ids[at - 1] ?? "") ?? 0n;
      expect((firstLeases.get(id) ?? 0n) > before, `message ${at} after the one before it`).toBe(true);
    }
  }
  expect(most, "conversations at work at the same time").toBeGreaterThanOrEqual(WORKERS / 2);
  expect(most).toBeLessThanOrEqual(CONVERSATIONS);
  expect(events.filter(({ status }) => status === "lease_expired").length).toBeGreaterThan(0);
  expect(await broker.redis.keys("*:line:*")).toEqual([]);
}, 300_000);

/** The events of all delegations of an agent, in order. A shard's own stream does not keep as many. */
async function eventsOfAll(api: ReturnType<typeof client>): Promise<DelegationEvent[]> {
  const all: DelegationEvent[] = [];
  for (let after = "0"; ; ) {
    const path = `/v1/events?after=${after}&limit=1000`;
    const { events, cursor } = (await api.call("GET", path, undefined, { accept: "application/json" })).body;
    all.push(...events.filter(({ type }: DelegationEvent) => type.startsWith("DELEGATION_")));
    if (events.length === 0) return all;
    after = cursor;
  }
}

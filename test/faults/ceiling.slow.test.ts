/** Redis whose memory is really full: which calls are refused at each threshold, and which never are. */
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { until } from "../support/until.ts";

const MIB = 1024 * 1024;
const MAX = 48 * MIB;

const used = async (redis: Redis) => Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);

/** Fills Redis to this percentage of its memory; from 100 on, until it refuses every write. */
async function fill(redis: Redis, percent: number): Promise<void> {
  for (const bytes of [256 * 1024, 16 * 1024, 256]) {
    for (let n = 0, set: string | null = "OK"; set !== null; n += 1) {
      if (percent <= 100 && (await used(redis)) >= (MAX * percent) / 100) return;
      set = await redis.set(`filler:${bytes}:${n}`, "x".repeat(bytes)).catch(() => null);
    }
  }
}

async function setup() {
  const { redis, target } = await startOwnRedis("everysec");
  await redis.config("SET", "maxmemory", String(MAX));
  const { url, gateway } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout", { limits: { interrupt_ttl_seconds: 600 } });
  const alice = await as(url, "caller:alice");
  const leased = async () => {
    const { id } = (await alice.delegate("scout")).body;
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    return { id: String(id), lease: String(lease_id) };
  };
  const asked = async () => {
    const { id, lease } = await leased();
    const { interrupt_id } = (await api.interrupt(lease, { text: "?" })).body;
    return { id, interrupt_id: String(interrupt_id) };
  };
  return { redis, url, gateway, api, alice, leased, asked };
}

test.each([
  ["the gateway", 90],
  ["Redis", 100],
])(
  "%s refuses calls that grow a delegation at %i percent of memory; leasing, releasing, ending and freeing still work",
  async (_by, percent) => {
    const { redis, gateway, api, alice, leased, asked } = await setup();
    const work = [];
    for (let n = 0; n < 6; n += 1) work.push(await leased());
    const [one, replied, released, canceled, failed, large] = work;
    if (!one || !replied || !released || !canceled || !failed || !large) throw new Error("no work");
    const question = await asked();
    const { id: waiting } = (await alice.delegate("scout")).body;
    // At 100 percent Redis itself refuses.
    if (percent === 100) gateway.broker.memory.stop();
    await fill(redis, percent + 3);
    // Redis' own buffers shrink at times; the memory that they free must not make room again.
    if (percent === 100) await redis.config("SET", "maxmemory", String(MAX - 2 * MIB));
    const isReached = async () => {
      await fill(redis, percent + 3);
      return gateway.broker.memory.isReached();
    };
    if (percent < 100) await until(isReached, { what: "the ceiling" });
    expect(gateway.broker.memory.isReached()).toBe(percent < 100);

    const refused = [
      await api.call("POST", `/v1/leases/${one.lease}/artifacts`, {
        artifact: { artifactId: "a", parts: [] },
      }),
      await alice.message(one.id, "more"),
      await api.interrupt(one.lease, { text: "?" }),
    ];
    for (const { status, body, headers } of refused) {
      expect([status, body.code, body.retryable]).toEqual([503, "overloaded", true]);
      expect(headers.get("retry-after")).toBe("5");
    }
    expect(await api.heartbeat(one.lease, { progress: { done: 1 }, checkpoint: { at: 1 } })).toMatchObject({
      status: 200,
      body: { progress_dropped: true },
    });
    expect((await api.get(one.id)).body.progress).toBeNull();
    if (percent < 100) {
      const text = "x".repeat(LIMITS.ceiling_bytes.value);
      expect((await api.reply(large.lease, { text })).body.code).toBe("overloaded");
    }

    expect((await api.reply(replied.lease)).body.outcome).toBe("matched");
    expect((await api.release(released.lease)).status).toBe(200);
    expect((await alice.cancel(canceled.id)).body.state).toBe("canceled");
    const error = { code: "broken", message: "it broke", retryable: true };
    expect(
      (await api.reply(failed.lease, { state: "failed", text: undefined, error })).body.delegation.state,
    ).toBe("submitted");
    expect((await alice.answer(question.id, question.interrupt_id, { text: "yes" })).status).toBe(200);
    const taken = (await api.lease("scout", { max: 3 })).body.leases;
    expect(taken.map(({ delegation }: { delegation: { id: string } }) => delegation.id).sort()).toEqual(
      [released.id, question.id, waiting].sort(),
    );

    await redis.del(...(await redis.keys("filler:*")));
    await gateway.broker.memory.check();
    expect((await alice.message(one.id, "more")).status).toBe(202);
  },
);

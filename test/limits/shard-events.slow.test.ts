/** The bounds of a shard's short stream for live subscribers, and of the metadata of one delegation. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { client, startBroker } from "../support/broker.ts";
import { entryFields } from "../support/entry.ts";

const MIB = 1024 * 1024;

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const { events } = broker.gateway.broker.shards.at(0);
  const add = async (count: number, more: string) => {
    const batch = broker.redis.pipeline();
    for (let seq = 0; seq < count; seq += 1) batch.xadd(events, "*", ...entryFields({ seq, more }));
    await batch.exec();
  };
  return { ...broker, api, events, add };
}

test("live_events: the writer keeps about this many", async () => {
  const { api, redis, events, add } = await setup();
  await add(LIMITS.live_events.value + 2_000, "");
  await api.delegate("scout");
  // Redis trims by whole nodes of a hundred entries.
  expect(await redis.xlen(events)).toBeLessThan(LIMITS.live_events.value + 200);
});

test("live_bytes: the sweep trims a larger stream, the oldest events first", async () => {
  const { gateway, redis, events, add } = await setup();
  await add(100, `"note":"${"x".repeat(MIB)}"`);
  const size = async () => Number(await redis.memory("USAGE", events, "SAMPLES", 0));
  expect(await size()).toBeGreaterThan(LIMITS.live_bytes.value);
  const [newest] = await redis.xrevrange(events, "+", "-", "COUNT", 1);
  await gateway.sweep.tick();
  await gateway.sweep.tick();
  expect(await size()).toBeLessThan(1.1 * LIMITS.live_bytes.value);
  expect((await redis.xrevrange(events, "+", "-", "COUNT", 1))[0]?.[0]).toBe(newest?.[0]);
});

test("metadata_bytes: larger metadata is refused", async () => {
  const { api } = await setup();
  const metadata = (bytes: number) => ({ note: "x".repeat(bytes - '{"note":""}'.length) });
  const most = LIMITS.metadata_bytes.value;
  expect((await api.delegate("scout", { metadata: metadata(most) })).status).toBe(202);
  const refused = await api.delegate("scout", { metadata: metadata(most + 1) });
  expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
});

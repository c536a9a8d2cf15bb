/** Drives one delegation to each of its bounds, and measures what Redis stores for it. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { client, startBroker } from "../support/broker.ts";
import { ownEvents } from "../support/own-events.ts";
import { startOwnRedis } from "../support/own-redis.ts";

const MIB = 1024 * 1024;

async function setup() {
  const { redis, target } = await startOwnRedis("everysec");
  const { url, gateway, clock } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout");
  const { writer, shards } = gateway.broker;
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  const working = async () => {
    const { id } = (await api.delegate("scout")).body;
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    return { id: String(id), lease: String(lease_id) };
  };
  /** The bytes that the work adds to Redis' memory. */
  const grown = async (work: () => Promise<unknown>) => {
    const before = await used();
    await work();
    return (await used()) - before;
  };
  return { redis, api, clock, writer, shards, working, grown };
}

test("bodies: artifacts are stored once, follow-ups in the history and in the events", async () => {
  const { api, working, grown } = await setup();
  const large = "x".repeat(1_000_000);
  const first = await working();
  const artifacts = await grown(async () => {
    for (let n = 0; ; n += 1) {
      const artifact = { artifactId: `a${n}`, parts: [{ text: large }] };
      const answer = await api.call("POST", `/v1/leases/${first.lease}/artifacts`, { artifact });
      if (answer.status === 413) return;
    }
  });
  expect(artifacts).toBeLessThan(1.5 * LIMITS.delegation_bytes.value);
  const second = await working();
  const messages = await grown(async () => {
    while ((await api.message(second.id, large)).status === 202);
  });
  expect(messages).toBeLessThan(5 * LIMITS.delegation_bytes.value);

  // A reader of all of it gets it page by page.
  const before = process.memoryUsage().rss;
  for (const { id } of [first, second]) {
    let after = "0";
    for (let events = 1; events > 0; ) {
      const { body } = await api.events(id, `?after=${after}`);
      events = body.events.length;
      after = body.cursor;
    }
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * MIB);
});

test("events: their number and their bytes", async () => {
  const { redis, clock, writer, working, grown } = await setup();
  /** Sends progress until it is dropped; returns how often it was stored. */
  const report = async (id: string, text: string): Promise<number> => {
    const json = JSON.stringify({ message: text });
    for (let kept = 0; ; ) {
      clock.offset_ms += 1_000;
      const batch = Array.from({ length: LIMITS.progress_per_second.value }, () =>
        writer.move({
          ...{ move: "progress", id, params: { fence: 1 } },
          ...{ event: { progress: json }, fields: { progress: json } },
        }),
      );
      const outcomes = (await Promise.all(batch)).map(({ outcome }) => outcome);
      kept += outcomes.filter((outcome) => outcome.kind === "ok" && !outcome.progress_dropped).length;
      if (kept === 0 || outcomes.some((outcome) => "progress_dropped" in outcome)) return kept;
    }
  };
  const many = await working();
  const small = await grown(() => report(many.id, "x"));
  expect(await ownEvents(redis, many.id)).toHaveLength(LIMITS.delegation_events.value);
  expect(small).toBeLessThan(8 * MIB);
  const few = await working();
  const large = await grown(() => report(few.id, "x".repeat(4_000)));
  expect(large).toBeLessThan(4 * LIMITS.event_bytes.value);
});

test("children", async () => {
  const { redis, api, shards, working, grown } = await setup();
  const { id } = await working();
  const ids = Array.from({ length: LIMITS.children.value }, (_, n) => `dlg_0_${String(n).padStart(26, "0")}`);
  const children = await grown(() => redis.sadd(shards.at(0).children(id), ...ids));
  expect(children).toBeLessThan(4 * MIB);
  const refused = await api.delegate("scout", { parent_id: id });
  expect(refused).toMatchObject({
    status: 409,
    body: { code: "limit_reached", details: { limit: "children", maximum: LIMITS.children.value } },
  });
  expect((await api.cancel(id, { cascade: false })).body.state).toBe("canceled");
});

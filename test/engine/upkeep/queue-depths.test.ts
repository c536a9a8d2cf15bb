/** Which agents the figures of the queues are read of, among many that have no work. */
import { expect, test } from "vitest";
import { queueDepths } from "../../../src/engine/upkeep/queue-depths.ts";
import { client, startBroker } from "../../support/broker.ts";

test("agents with work that waits or runs, by name; work that is delayed or ended does not count", async () => {
  const { url, redis, gateway, clock } = await startBroker();
  const api = client(url);
  for (const name of ["writer", "scout", "coder", "idle"]) await api.agent(name);
  // Several steps of a scan.
  const names = Array.from({ length: 1_000 }, (_, n) => `none-${n}`);
  for (const { agents } of gateway.broker.shards.all) await redis.sadd(agents, ...names);
  await api.delegate("coder", { delay_seconds: 3_600 });
  await api.delegate("writer");
  await api.lease("writer");
  await api.delegate("scout");
  await api.delegate("scout");
  await api.delegate("idle");
  await api.reply(String((await api.lease("idle")).body.leases[0].lease_id));
  clock.offset_ms = 61_000;

  const depths = await queueDepths(gateway.broker);
  expect(depths).toMatchObject([
    { agent: "scout", waiting: 2, working: 0 },
    { agent: "writer", waiting: 0, working: 1, oldest_seconds: 0 },
  ]);
  expect(depths[0]?.oldest_seconds).toBeGreaterThan(60);
});

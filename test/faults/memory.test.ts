import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { until } from "../support/until.ts";

test("when memory is short new work is refused, work in progress continues, and new work is accepted once there is room", async () => {
  const { redis, target } = await startOwnRedis();
  const { url } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const { lease_id } = (await api.lease("scout")).body.leases[0];

  await redis.config("SET", "maxmemory", String(64 * 1024 * 1024));
  const filler = "x".repeat(1024 * 1024);
  for (let n = 0; n < 41; n += 1) await redis.set(`filler:${n}`, filler);
  const refused = await until(async () => {
    const answer = await api.delegate("scout");
    return answer.status === 202 ? null : answer;
  });
  expect(refused).toMatchObject({ status: 503, body: { code: "overloaded", retryable: true } });
  expect(refused.headers.get("retry-after")).toBe("5");

  // Beyond the threshold, until Redis is full: the holder can still send heartbeats and progress, and reply.
  for (let n = 41; (await redis.set(`filler:${n}`, filler).catch(() => null)) !== null; n += 1);
  expect((await api.heartbeat(lease_id, { progress: { message: "still here" } })).status).toBe(200);
  expect((await api.reply(lease_id)).body.outcome).toBe("matched");
  expect((await api.get(id)).body.state).toBe("completed");

  await redis.del(...(await redis.keys("filler:*")));
  await until(async () => (await api.delegate("scout")).status === 202);
});

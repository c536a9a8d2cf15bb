import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";

const MIB = 1024 * 1024;

test("an artifact that is replaced again and again uses the memory of one, and the operator's calls still work", async () => {
  const { redis, target } = await startOwnRedis("everysec");
  await redis.config("SET", "maxmemory", String(100 * MIB));
  const { url } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout");
  await api.delegate("scout");
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  const before = await used();
  const body = JSON.stringify({
    artifact: { artifactId: "a", parts: [{ text: "x".repeat(0.9 * 1_000_000) }] },
  });
  for (let n = 0; n < 60; n += 1) {
    expect((await api.call("POST", `/v1/leases/${lease_id}/artifacts`, body)).status).toBe(200);
  }
  expect((await used()) - before).toBeLessThan(4 * 3 * MIB);

  expect((await api.delegate("scout")).status).toBe(202);
  expect((await api.call("POST", "/v1/agents/scout/pause")).status).toBe(200);
  expect((await api.call("POST", "/v1/tokens", { principal: "viewer:eve" })).status).toBe(201);
  expect((await api.call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);
});

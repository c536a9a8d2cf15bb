import { expect, test, vi } from "vitest";
import { API_INFO } from "../../../src/doors/openapi/document.ts";
import { statusSchema } from "../../../src/schema/status.ts";
import { as, client, request, startBroker } from "../../support/broker.ts";
import { isOnCluster } from "../../support/on-cluster.ts";

test("shows version, time and principal; Redis' settings only to the operator and viewers", async () => {
  const { url, redis, clock } = await startBroker();
  const api = client(url);
  const { status, body } = await api.call("GET", "/v1/status");
  expect(status).toBe(200);
  const shown = statusSchema.parse(body);
  expect(shown).toMatchObject({ version: API_INFO.version, principal: "operator" });
  const [, policy] = await redis.config("GET", "maxmemory-policy").then(Array.from);
  const [, fsync] = await redis.config("GET", "appendfsync").then(Array.from);
  expect(shown.redis).toMatchObject({
    source: isOnCluster() ? "external" : "embedded",
    maxmemory_policy: policy,
    appendfsync: fsync,
    version: /^(?:redis|valkey)_version:(\S+)/m.exec(await redis.info("server"))?.[1],
  });
  expect(shown.redis?.used_memory_bytes).toBeGreaterThan(0);
  expect(shown.redis?.latency_ms).toBeGreaterThan(0);
  expect(Math.abs(Date.parse(shown.now) - Date.parse(String(shown.started_at)))).toBeLessThan(60_000);

  // By the clock of Redis.
  clock.offset_ms = 3_600_000;
  const later = Date.parse((await api.call("GET", "/v1/status")).body.now) - Date.parse(shown.now);
  expect(later).toBeGreaterThanOrEqual(3_600_000);
  expect(later).toBeLessThan(3_660_000);

  const principals = ["viewer:wall", "approver:ann", "caller:bob", "agent:scout"];
  const seen: unknown[] = [];
  for (const principal of principals) {
    const { call } = await as(url, principal);
    const { body: theirs } = await call("GET", "/v1/status");
    expect(theirs.principal).toBe(principal);
    if (theirs.redis !== null) seen.push(principal);
  }
  expect(seen).toEqual(["viewer:wall"]);
  expect((await client(url, null).call("GET", "/v1/status")).status).toBe(401);
});

test("frequent readiness checks without a token do not each write to Redis", async () => {
  const { url, gateway } = await startBroker();
  const { redis } = gateway.broker;
  const ran = vi.spyOn(redis, "evalsha");
  const asked = 40;
  for (let n = 0; n < asked; n += 1) {
    expect((await request(url, "GET", "/readyz", { token: null })).status).toBe(200);
  }
  const writes = ran.mock.calls.filter((args) => args.some((arg) => String(arg).includes(":writable:")));
  expect(writes.length).toBeLessThan(asked);
});

import { expect, test } from "vitest";
import { as, client, request, startBroker } from "../support/broker.ts";
import { startServer } from "../support/redis-pair.ts";
import { until } from "../support/until.ts";

/** Fills Redis with real data until it refuses writes, leaving no gap for a small one. */
async function fill(redis: Awaited<ReturnType<typeof startServer>>["redis"]): Promise<() => Promise<void>> {
  await redis.config("SET", "maxmemory", String(48 * 1024 * 1024));
  const names: string[] = [];
  for (const size of [1024 * 1024, 64 * 1024, 4 * 1024, 64]) {
    for (;;) {
      const name = `filler:${names.length}`;
      if ((await redis.set(name, "x".repeat(size)).catch(() => null)) === null) break;
      names.push(name);
    }
  }
  // Redis' own buffers shrink at times; the memory that they free must not make room again.
  await redis.config("SET", "maxmemory", String(46 * 1024 * 1024));
  await expect(redis.set("one more", 1)).rejects.toThrow(/^OOM/);
  return async () => {
    await redis.config("SET", "maxmemory", "0");
    await redis.del(...names);
  };
}

test("at full memory accepted work is found by its key, and the operator can free memory", async () => {
  const { socket, redis } = await startServer();
  const { url, another } = await startBroker({ redis: { socket } });
  const api = client(url);
  for (const name of ["scout", "doomed", "plain"]) await api.agent(name);
  const once = { "idempotency-key": "once" };
  const { id } = (await api.delegate("scout", { task: "once" }, once)).body;
  const busy = [(await api.delegate("doomed")).body.id, (await api.delegate("doomed")).body.id];
  await api.lease("doomed");
  const { tokenId } = await as(url, "caller:old");
  const free = await fill(redis);

  // First Redis refuses, and after the next measurement the gateway does.
  for (const key of ["new", "newer"]) {
    const refused = await api.delegate("scout", {}, { "idempotency-key": key });
    expect(refused).toMatchObject({
      status: 503,
      body: { code: "overloaded", details: { outcome: "not_executed" } },
    });
    expect(await api.delegate("scout", { task: "once" }, once)).toMatchObject({ status: 200, body: { id } });
    expect((await api.delegate("scout", { task: "other" }, once)).body.code).toBe("idempotency_conflict");
    await until(async () => (await api.delegate("scout")).body.detail.includes("nearly full"));
  }

  const made = await api.call("POST", "/v1/tokens", { principal: "caller:new" });
  expect(made.status).toBe(201);
  expect((await client(url, made.body.token).call("GET", "/v1/delegations")).status).toBe(200);
  const { code } = (await client(url, made.body.token).call("POST", "/v1/sessions/codes")).body;
  const opened = await request(url, "POST", "/v1/sessions", { token: null, body: { code } });
  expect(opened.status).toBe(201);
  expect((await api.call("DELETE", `/v1/sessions/${opened.body.id}`)).status).toBe(204);
  expect((await api.call("DELETE", `/v1/tokens/${tokenId}`)).status).toBe(204);
  expect((await api.call("POST", "/v1/agents/scout/pause")).status).toBeLessThan(300);
  expect((await api.call("GET", "/v1/agents/scout")).body.paused).toBe(true);
  expect((await api.call("POST", "/v1/agents/scout/resume")).status).toBeLessThan(300);
  expect((await api.agent("scout", { limits: { max_waiting: 5 } })).status).toBe(200);
  expect((await api.agent("fresh")).status).toBe(201);
  expect((await api.call("DELETE", "/v1/agents/doomed?force=true")).status).toBe(204);
  for (const gone of busy) expect((await api.get(gone)).body.state).toBe("canceled");
  expect((await api.call("DELETE", "/v1/agents/plain")).status).toBe(204);
  expect((await api.cancel(id)).body.state).toBe("canceled");
  // A gateway that is started now also serves.
  const fresh = await another({ redis: { socket } });
  expect((await client(fresh.url).get(id)).body.state).toBe("canceled");

  await free();
  await until(async () => (await api.delegate("scout")).status === 202);
});

import { expect, inject, test, vi } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { openRedisLink } from "../support/redis-link.ts";
import { allowStalls } from "../support/stalls.ts";

interface Result {
  readonly status: number;
  readonly error?: { code: string; details: { outcome?: string; retry_after_seconds?: number } };
}

const delegations = Array.from({ length: 100 }, (_, n) => ({ target: "scout", task: `task ${n}` }));

test("a batch stops at the first item that Redis does not answer, and reports the rest as not executed", async () => {
  const withStalls = allowStalls();
  const proxy = await openRedisLink(inject("redisSocket"));
  const { another, db } = await startBroker();
  const { url } = await another({ redis: { url: `redis://127.0.0.1:${proxy.port}/${db}` } });
  const api = client(url);
  await api.agent("scout");
  await api.delegate("scout");
  await proxy.fault("hold");
  const askedAt = performance.now();
  const { body } = await api.call("POST", "/v1/delegations/batch", { delegations });
  expect(performance.now() - askedAt).toBeLessThan(withStalls(10_000));
  const results: Result[] = body.results;
  expect(results).toHaveLength(100);
  for (const { status, error } of results) {
    expect([status, error?.code, error?.details.retry_after_seconds]).toEqual([503, "redis_unavailable", 1]);
  }
  expect(results[0]?.error?.details.outcome).toBe("unknown");
  for (const { error } of results.slice(1)) expect(error?.details.outcome).toBe("not_executed");
  await proxy.heal();
});

test("a batch ends after 10 s, even if each item is slow", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const now = performance.now.bind(performance);
  let late = 0;
  // Each item appears to take two seconds.
  vi.spyOn(performance, "now").mockImplementation(() => {
    late += 100;
    return now() + late;
  });
  const { body } = await api.call("POST", "/v1/delegations/batch", { delegations });
  vi.restoreAllMocks();
  const results: Result[] = body.results;
  const last = results.at(-1);
  expect(results[0]?.status).toBe(202);
  expect([last?.status, last?.error?.code, last?.error?.details.outcome]).toEqual([
    503,
    "overloaded",
    "not_executed",
  ]);
});

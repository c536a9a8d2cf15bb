/**
 * Two gateways whose clocks are ten minutes apart, on one Redis: leases, delays and deadlines go by Redis' clock.
 * Limit: a token's expiry and instants that callers name are compared with the clock of a gateway (docs/operations.md).
 */
import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const FIVE_MINUTES = 300_000;
/** Allowance for requests on a busy machine; far below five minutes. */
const NEAR_MS = 60_000;

test("gateways five minutes fast and slow keep leases, delays and deadlines by Redis' clock", async () => {
  const { db, redis } = await startBroker();
  const [fast, slow] = await Promise.all(
    [FIVE_MINUTES, -FIVE_MINUTES].map((clockMs) => startGatewayProcess(db, { clockMs, sweepEveryMs: 100 })),
  );
  const apis = [fast, slow].map((gateway) => client(gateway?.url ?? ""));
  const redisMs = async () => Number((await redis.time())[0]) * 1000;
  await apis[0]?.agent("scout", { limits: { lease_seconds: 3_600 } });
  await apis[0]?.agent("idle");

  for (const [at, api] of apis.entries()) {
    const other = apis[1 - at];
    const waits = (await api.delegate("idle", { ttl_seconds: 200 })).body;
    const soon = (await api.delegate("idle", { ttl_seconds: 1 })).body;
    const delayed = (await api.delegate("scout", { delay_seconds: 1, ttl_seconds: 200 })).body;
    expect(Math.abs(Date.parse(waits.created_at) - (await redisMs()))).toBeLessThan(NEAR_MS);
    expect(Date.parse(waits.deadline_at) - Date.parse(waits.created_at)).toBe(200_000);

    // The other gateway grants it, neither before its time nor minutes late.
    const [lease] =
      (await other?.lease("scout", { wait_seconds: 60, lease_seconds: 100 }))?.body.leases ?? [];
    expect(lease).toMatchObject({ attempt: 1, delegation: { id: delayed.id } });
    const { granted_at, expires_at } = lease.delegation.lease;
    expect(Date.parse(granted_at)).toBeGreaterThanOrEqual(Date.parse(delayed.not_before_at));
    expect(Date.parse(expires_at) - Date.parse(granted_at)).toBe(100_000);

    // The due one expires. By then both gateways have swept, and no other delegation was considered due.
    await until(async () => (await api.get(soon.id)).body.error?.code === "deadline_exceeded");
    for (const reader of apis) {
      expect((await reader.get(waits.id)).body.state).toBe("submitted");
      expect((await reader.get(delayed.id)).body).toMatchObject({ state: "working", attempt: 1 });
    }
    const beat = (await api.heartbeat(lease.lease_id)).body;
    expect(Math.abs(Date.parse(beat.expires_at) - (await redisMs()) - 100_000)).toBeLessThan(NEAR_MS);
    expect((await other?.reply(lease.lease_id))?.body.outcome).toBe("matched");
  }
}, 120_000);

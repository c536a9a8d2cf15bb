import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

const LEASE_SECONDS = 3;
const LEASE_MS = LEASE_SECONDS * 1_000;

async function leased() {
  const { url, clock } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [lease] = (await api.lease("scout", { lease_seconds: LEASE_SECONDS })).body.leases;
  const expiresAt = async () => Date.parse((await api.get(id)).body.lease.expires_at);
  return { api, clock, id, lease_id: String(lease.lease_id), expiresAt, grantedTo: await expiresAt() };
}

test("a held heartbeat returns after half the lease at the latest, and extends the lease at its start and at its end", async () => {
  const withStalls = allowStalls();
  const { api, clock, lease_id, expiresAt, grantedTo } = await leased();
  clock.offset_ms = 1_000;
  const sentAt = performance.now();
  const answer = api.heartbeat(lease_id, { wait_seconds: 60 });
  const extendedTo = await until(async () => {
    const now = await expiresAt();
    return now > grantedTo ? now : null;
  });
  expect(extendedTo - grantedTo).toBeGreaterThanOrEqual(1_000);

  clock.offset_ms = 2_000;
  const { status, body } = await answer;
  const tookMs = performance.now() - sentAt;
  expect(status).toBe(200);
  expect(tookMs).toBeGreaterThan(LEASE_MS / 2 - 100);
  expect(tookMs).toBeLessThan(withStalls(LEASE_MS));
  expect(Date.parse(body.expires_at)).toBe(await expiresAt());
  // By the second that the clock advanced, and by the wait.
  expect(Date.parse(body.expires_at) - extendedTo).toBeGreaterThanOrEqual(1_000 + LEASE_MS / 2 - 100);
});

test("a held heartbeat returns after its wait if that is shorter", async () => {
  const withStalls = allowStalls();
  const { api, lease_id } = await leased();
  const sentAt = performance.now();
  expect((await api.heartbeat(lease_id, { wait_seconds: 0.3 })).status).toBe(200);
  const tookMs = performance.now() - sentAt;
  expect(tookMs).toBeGreaterThan(250);
  expect(tookMs).toBeLessThan(withStalls(LEASE_MS / 2));
});

test("a held heartbeat reports progress when it arrives, and returns as soon as the lease ends", async () => {
  const { api, id, lease_id } = await leased();
  const answer = api.heartbeat(lease_id, { wait_seconds: 60, progress: { done: 1 } });
  await until(async () => (await api.get(id)).body.progress?.done === 1);
  await api.cancel(id);
  expect((await answer).body).toMatchObject({ code: "lease_lost", details: { reason: "canceled" } });
});

test("a lease has one held heartbeat: a newer one ends the earlier one, and they count as requests that wait", async () => {
  const { url, gateway } = await startBroker({ quotas: { polls: 2 } });
  const operator = client(url);
  await operator.agent("scout");
  const scout = await as(url, "agent:scout");
  const take = async () => {
    await operator.delegate("scout");
    return String((await scout.lease("scout", { lease_seconds: 600 })).body.leases[0].lease_id);
  };
  const [one, two, three] = [await take(), await take(), await take()];
  const { quotas, heldHeartbeats } = gateway.broker;
  const waits = () => quotas.inUse({ text: "agent:scout" }, "polls");
  const hold = (lease: string) => scout.heartbeat(lease, { wait_seconds: 60 });
  let first = hold(one);
  await until(() => heldHeartbeats.size === 1);
  for (let n = 0; n < 5; n += 1) {
    const next = hold(one);
    expect(await first).toMatchObject({ status: 200, body: { messages: [] } });
    first = next;
  }
  await until(() => heldHeartbeats.size === 1 && waits() === 1);
  const other = hold(two);
  await until(() => heldHeartbeats.size === 2);
  const refused = await hold(three);
  expect([refused.status, refused.body.code]).toEqual([429, "quota_exceeded"]);
  expect((await scout.heartbeat(three)).status).toBe(200);
  for (const lease of [one, two]) await scout.reply(lease);
  for (const answer of [first, other]) expect((await answer).status).toBe(409);
  expect([heldHeartbeats.size, waits()]).toEqual([0, 0]);
});

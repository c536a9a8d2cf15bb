/** Checkpoints reach the next holder, however the lease ends. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";

async function setup() {
  const { url, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout", { backoff: { initial_ms: 0 } });
  const { body } = await api.delegate("scout");
  const id: string = body.id;
  const lease = async () => (await api.lease("scout")).body.leases[0];
  return { url, clock, gateway, api, id, lease };
}

test("every later lease has the checkpoint: after a release, a failure, a question, a lapse", async () => {
  const { api, id, lease, clock, gateway } = await setup();
  const first = await lease();
  expect(first.checkpoint).toBeUndefined();
  const { status, body } = await api.heartbeat(first.lease_id, { checkpoint: { job: "j1" } });
  expect([status, body.messages]).toEqual([200, []]);
  const { version } = (await api.get(id)).body;
  await api.release(first.lease_id);

  const second = await lease();
  expect(second.checkpoint).toEqual({ job: "j1" });
  await api.heartbeat(second.lease_id, { checkpoint: { job: "j2", at: [1] }, progress: { done: 1 } });
  await api.reply(second.lease_id, {
    state: "failed",
    text: undefined,
    error: { code: "busy", message: "m", retryable: true },
  });

  const third = await lease();
  expect([third.attempt, third.checkpoint]).toEqual([2, { job: "j2", at: [1] }]);
  const asked = await api.interrupt(third.lease_id, { text: "which?", checkpoint: { job: "j3" } });
  await api.answer(id, asked.body.interrupt_id, { text: "that" });

  const fourth = await lease();
  expect(fourth.checkpoint).toEqual({ job: "j3" });
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  const fifth = await lease();
  expect([fifth.attempt, fifth.checkpoint]).toEqual([3, { job: "j3" }]);

  await api.heartbeat(fifth.lease_id, { checkpoint: null });
  await api.release(fifth.lease_id);
  expect((await lease()).checkpoint).toBeUndefined();
  expect(version).toBe(2);
});

test("only the current holder writes it, and only the agent and the operator see it", async () => {
  const { url, api, id, lease } = await setup();
  const first = await lease();
  await api.heartbeat(first.lease_id, { checkpoint: { secret: "checkpoint-canary" } });
  await api.release(first.lease_id);
  const late = await api.heartbeat(first.lease_id, { checkpoint: { job: "late" } });
  expect([late.status, late.body.code]).toEqual([409, "lease_lost"]);
  const next = await lease();
  expect(next.checkpoint).toEqual({ secret: "checkpoint-canary" });
  await api.reply(next.lease_id);
  const caller = await as(url, "viewer:wall");
  const seen = [
    await caller.get(id),
    await caller.events(id),
    await caller.call("GET", "/v1/delegations?target=scout"),
  ];
  expect(JSON.stringify(seen.map(({ body }) => body))).not.toContain("canary");
});

test("what is too large is refused, and the previous checkpoint stays", async () => {
  const { api, lease } = await setup();
  const first = await lease();
  const fits = { text: "x".repeat(4096 - '{"text":""}'.length) };
  expect((await api.heartbeat(first.lease_id, { checkpoint: fits })).status).toBe(200);
  const refused = await api.heartbeat(first.lease_id, { checkpoint: { text: `${fits.text}x` } });
  expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
  expect((await api.heartbeat(first.lease_id, { checkpoint: "text" })).status).toBe(400);
  await api.release(first.lease_id);
  expect((await lease()).checkpoint).toEqual(fits);
});

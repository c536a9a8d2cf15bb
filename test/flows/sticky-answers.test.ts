/** An answer that is kept for the worker that asked, as workers see it over HTTP. */
import { expect, test, vi } from "vitest";
import { as, startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

/** `asker` asked and is parked; `other` polls for the same agent. */
async function setup(sticky_seconds?: number) {
  const broker = await startBroker();
  const { url, redis } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const poll = async (worker_id: string, wait_seconds = 0, at = scout): Promise<string[]> => {
    const { leases } = (await at.lease("scout", { worker_id, wait_seconds })).body;
    return leases.map((lease: { delegation: { id: string } }) => lease.delegation.id);
  };
  const delegate = async () => (await alice.delegate("scout")).body.id;
  const id = await delegate();
  const [{ lease_id }] = (await scout.lease("scout", { worker_id: "asker" })).body.leases;
  const ask = (lease: string) =>
    scout.interrupt(lease, { text: "Which?", ...(sticky_seconds !== undefined && { sticky_seconds }) });
  await ask(lease_id);
  const answer = async (of = id) => {
    const { interrupt } = (await alice.get(of)).body;
    const { status } = await alice.answer(of, interrupt.id, { text: "this" });
    expect(status).toBe(200);
  };
  const parked = (gateway = broker.gateway) =>
    until(async () => gateway.broker.handoff.polls.count("scout") > 0);
  return { ...broker, redis, scout, alice, id, poll, delegate, ask, answer, parked };
}

test("without sticky_seconds, the worker that polls first gets the delegation", async () => {
  const { id, poll, answer } = await setup();
  await answer();
  expect(await poll("other")).toEqual([id]);
});

test("with it, only the worker that asked gets it, before all else; its event says for whom and until when", async () => {
  const { id, alice, poll, delegate, answer } = await setup(60);
  const urgent = (await alice.delegate("scout", { priority: 9 })).body.id;
  await answer();
  const { events } = (
    await alice.call("GET", `/v1/delegations/${id}/events?after=0`, undefined, { accept: "application/json" })
  ).body;
  const answered = events.find(({ status }: { status?: string }) => status === "answered");
  expect(answered).toMatchObject({ kept_for: "asker" });
  expect(Date.parse(answered.kept_until) - Date.parse(answered.at)).toBe(60_000);
  expect([await poll("other"), await poll("other")]).toEqual([[urgent], []]);
  const later = await delegate();
  expect([await poll("asker"), await poll("asker")]).toEqual([[id], [later]]);
});

test("a poll of the worker that waits already, at any gateway, gets it at once", async () => {
  const { url, id, another, poll, answer, parked } = await setup(60);
  const { gateway, url: elsewhere } = await another();
  const there = await as(elsewhere, "agent:scout");
  const other = poll("other", 20);
  await parked();
  const asker = poll("asker", 20, there);
  await parked(gateway);
  await answer();
  expect(await asker).toEqual([id]);
  const next = (await (await as(url, "caller:alice")).delegate("scout")).body.id;
  expect(await other).toEqual([next]);
});

test("it gets it also if the gateway that took the answer dies before it can send anything", async () => {
  const { url, id, gateway, another, poll, answer } = await setup(60);
  const { gateway: elsewhere, url: there } = await another();
  const at = await as(there, "agent:scout");
  const others = [poll("other", 20, at), poll("another", 20, at)];
  await until(async () => elsewhere.broker.handoff.polls.count("scout") === 2);
  const asker = poll("asker", 20, at);
  await until(async () => elsewhere.broker.handoff.polls.count("scout") === 3);
  vi.spyOn(gateway.broker.bus, "publish").mockImplementation(() => new Promise(() => {}));
  await answer();
  expect(await asker).toEqual([id]);
  const alice = await as(url, "caller:alice");
  const next = [(await alice.delegate("scout")).body.id, (await alice.delegate("scout")).body.id];
  expect((await Promise.all(others)).flat().sort()).toEqual(next.sort());
});

test("a poll that the worker begins after the answer gets it, although the queue is known to be empty", async () => {
  const { id, poll, answer, parked } = await setup(60);
  const other = poll("other", 1);
  await parked();
  await answer();
  expect(await poll("asker", 20)).toEqual([id]);
  expect(await other).toEqual([]);
});

test("when the time is over, any worker gets it", async () => {
  // Longer than a busy machine takes from the answer to the first poll.
  const { id, poll, answer } = await setup(3);
  await answer();
  expect(await poll("other")).toEqual([]);
  expect(await poll("other", 20)).toEqual([id]);
});

test("a ticket that is gone is left out, and the next one that is kept is found", async () => {
  const { id, alice, scout, redis, poll, delegate, ask, answer } = await setup(60);
  const second = await delegate();
  const [{ lease_id }] = (await scout.lease("scout", { worker_id: "asker" })).body.leases;
  await ask(lease_id);
  await answer();
  await answer(second);
  await alice.call("POST", `/v1/delegations/${id}/cancel`);
  expect([await poll("other"), await poll("asker"), await poll("asker")]).toEqual([[], [second], []]);
  expect(await redis.keys("*:sticky:*")).toEqual([]);
});

test("a held question whose holder died is kept for nobody", async () => {
  const { url, clock, gateway } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const { id } = (await alice.delegate("scout")).body;
  const [{ lease_id }] = (await scout.lease("scout", { worker_id: "asker" })).body.leases;
  const asked = await scout.interrupt(lease_id, { text: "Which?", hold: true, sticky_seconds: 60 });
  clock.offset_ms += 3_600_000;
  await gateway.sweep.tick();
  await until(async () => (await alice.get(id)).body.interrupt?.held_until === undefined);
  await alice.answer(id, asked.body.interrupt_id, { text: "this" });
  expect((await scout.lease("scout", { worker_id: "other" })).body.leases).toHaveLength(1);
});

test("sticky_seconds beyond an hour are refused", async () => {
  const { scout, delegate } = await setup();
  await delegate();
  const [{ lease_id }] = (await scout.lease("scout")).body.leases;
  const { status, body } = await scout.interrupt(lease_id, { text: "Which?", sticky_seconds: 3_601 });
  expect([status, body.code]).toEqual([400, "invalid_request"]);
  expect(JSON.stringify(body)).toContain("sticky_seconds");
});

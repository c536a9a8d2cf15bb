/** Held questions over HTTP, as agents and those who watch see them. */
import { expect, test } from "vitest";
import { toUpdates } from "../../src/doors/a2a/tasks/updates.ts";
import { SentArtifacts } from "../../src/doors/sent-artifacts.ts";
import { toEntry } from "../../src/events/entry.ts";
import { as, startBroker } from "../support/broker.ts";
import { ownEvents } from "../support/own-events.ts";

async function setup(more: Record<string, unknown> = {}) {
  const broker = await startBroker();
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(broker.url, "caller:alice");
  const { id } = (await alice.delegate("scout", more)).body;
  const [{ lease_id: lease }] = (await scout.lease("scout", { worker_id: "w" })).body.leases;
  const ask = async (body: Record<string, unknown>) => (await scout.interrupt(lease, body)).body;
  const answer = async (given: Record<string, unknown>) => {
    const { interrupt } = (await alice.get(id)).body;
    return (await alice.answer(id, interrupt.id, given)).body;
  };
  return { ...broker, scout, alice, id, lease, ask, answer };
}

test("a question without a request id gets its answer by the same body", async () => {
  const { ask, answer } = await setup();
  const question = { text: "Which?", hold: true };
  const { interrupt_id, held_until } = await ask(question);
  expect(held_until).toBeDefined();
  expect(await answer({ text: "this" })).toMatchObject({ state: "working" });
  for (const hold of [true, false]) {
    const again = await ask({ ...question, hold });
    expect([again.interrupt_id, Object.values(again.answers), again.held_until]).toEqual([
      interrupt_id,
      [expect.objectContaining({ message: expect.objectContaining({ parts: [{ text: "this" }] }) })],
      undefined,
    ]);
  }
});

test("what is approved in advance is never held, and is approved once", async () => {
  const { ask, alice, id } = await setup({ auto_approve: true });
  const question = { action: { name: "go" }, hold: true };
  const first = await ask(question);
  const { version } = (await alice.get(id)).body;
  const again = await ask(question);
  for (const { answers, held_until } of [first, again])
    expect([Object.values(answers), held_until]).toEqual([
      [expect.objectContaining({ decision: "approve" })],
      undefined,
    ]);
  expect(again.interrupt_id).toBe(first.interrupt_id);
  expect((await alice.get(id)).body).toMatchObject({ state: "working", version });
});

test("the holder is among the workers, and its progress is no further question for anybody", async () => {
  const { ask, answer, alice, scout, id, lease, redis } = await setup();
  await ask({ request_id: "a", text: "Which?", hold: true });
  const { cursor } = (await alice.call("GET", "/v1/results")).body;
  await scout.heartbeat(lease, { progress: { message: "still warm" } });
  const { workers } = (await scout.call("GET", "/v1/agents/scout/workers")).body;
  expect(workers).toEqual([expect.objectContaining({ id: "w", delegations: [id] })]);
  await scout.release(lease);
  expect((await alice.call("GET", `/v1/results?after=${cursor}`)).body.results).toEqual([]);
  const statuses = (await ownEvents(redis, id)).map(([at, text]) => {
    const entry = toEntry(0, at, ["e", text]);
    const shown = toUpdates(entry, new SentArtifacts([])).flatMap((one) =>
      "statusUpdate" in one ? [one.statusUpdate.status.message !== undefined] : [],
    );
    return [entry.status, shown];
  });
  expect(statuses.slice(2)).toEqual([
    ["interrupted", [true]],
    ["progress", []],
    ["parked", []],
  ]);
  await answer({ text: "this" });
});

// Half of the wait is the end of the test.
test("a heartbeat whose holder knows another state does not wait", { timeout: 10_000 }, async () => {
  const { scout, lease } = await setup();
  const { status, body } = await scout.heartbeat(lease, { wait_seconds: 20, in_state: "input_required" });
  expect([status, body.state]).toEqual([200, "working"]);
});

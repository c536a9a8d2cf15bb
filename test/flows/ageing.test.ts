/** A priority ages: work that waits goes as if its priority were one higher, by the time of a test. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { stockQueue } from "../support/stock-queue.ts";

const HOUR = 3_600;

async function setup(spec: unknown = { priority_ageing_seconds: HOUR }) {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", spec);
  const scout = await as(broker.url, "agent:scout");
  const send = async (task: string, priority: number, more: Record<string, unknown> = {}): Promise<string> =>
    String((await api.delegate("scout", { task, priority, ...more })).body.id);
  const take = async (max = 32): Promise<string[]> =>
    (await scout.lease("scout", { wait_seconds: 0, max })).body.leases.map(
      (one: { delegation: { task_preview: string } }) => one.delegation.task_preview,
    );
  const forward = async (seconds: number): Promise<void> => {
    broker.clock.offset_ms += seconds * 1000;
    await broker.gateway.sweep.tick();
  };
  const shown = async (id: string) => {
    const { priority, effective_priority, version } = (await api.get(id)).body;
    return { priority, effective_priority, version };
  };
  return { ...broker, api, scout, send, take, forward, shown };
}

test("for each period of waiting its priority counts as one higher, up to 9, without an event; BullMQ's tools see it", async () => {
  const { send, take, forward, shown, db } = await setup();
  const low = await send("low", 2);
  const high = await send("high", 8);
  await send("middle", 5);
  expect(await shown(low)).toEqual({ priority: 2, effective_priority: undefined, version: 1 });
  await forward(HOUR + 1);
  expect(await shown(low)).toEqual({ priority: 2, effective_priority: 3, version: 1 });
  for (let n = 0; n < 3; n += 1) await forward(HOUR);
  expect(await shown(low)).toEqual({ priority: 2, effective_priority: 6, version: 1 });
  expect(await shown(high)).toEqual({ priority: 8, effective_priority: 9, version: 1 });
  await send("new", 7);
  await send("newer", 6);
  const { queue } = await stockQueue(db, "scout");
  const waiting = await queue.getPrioritized();
  expect(waiting).toHaveLength(5);
  expect(waiting.at(-2)?.data.delegation_id).toBe(low);
  expect(await take()).toEqual(["high", "middle", "new", "low", "newer"]);
  expect((await shown(low)).effective_priority).toBeUndefined();
});

test("after a pause of the broker it makes all steps at once; each wait begins with its own priority", async () => {
  const { send, scout, forward, shown } = await setup();
  const id = await send("low", 0);
  await forward(5 * HOUR + 1);
  expect((await shown(id)).effective_priority).toBe(5);
  await forward(20 * HOUR);
  expect((await shown(id)).effective_priority).toBe(9);
  const [lease] = (await scout.lease("scout", { wait_seconds: 0 })).body.leases;
  await scout.release(lease.lease_id);
  expect((await shown(id)).effective_priority).toBeUndefined();
  await forward(HOUR + 1);
  expect((await shown(id)).effective_priority).toBe(1);
});

test("delayed work ages from when it is ready", async () => {
  const { send, take, forward, shown } = await setup();
  const late = await send("late", 4, { delay_seconds: 3 * HOUR });
  await forward(3 * HOUR + 1);
  await send("now", 5);
  expect((await shown(late)).effective_priority).toBeUndefined();
  await forward(2 * HOUR);
  expect((await shown(late)).effective_priority).toBe(6);
  expect(await take()).toContain("now");
});

test("what waits when the setting comes begins to age; what waits when it goes stays where it is", async () => {
  const { api, send, forward, shown } = await setup({});
  const id = await send("low", 2);
  await forward(10);
  await api.call("PATCH", "/v1/agents/scout", { priority_ageing_seconds: HOUR });
  // The next check of its ticket sees the setting.
  await forward(400);
  await forward(2 * HOUR);
  expect((await shown(id)).effective_priority).toBe(4);
  await api.call("PATCH", "/v1/agents/scout", { priority_ageing_seconds: null });
  await forward(5 * HOUR);
  expect((await shown(id)).effective_priority).toBe(4);
});

test("work behind other work of its conversation does not age: its wait for a worker begins with its turn", async () => {
  const { api, scout, send, forward, shown } = await setup();
  await api.call("PATCH", "/v1/agents/scout", { serial_by: "context" });
  const next = await send("next", 2, { context_id: "d" });
  const behind = await send("behind", 2, { context_id: "d" });
  await forward(3 * HOUR);
  expect((await shown(next)).effective_priority).toBe(5);
  expect((await shown(behind)).effective_priority).toBeUndefined();
  const taken = (await scout.lease("scout", { wait_seconds: 0, max: 32 })).body.leases;
  for (const { lease_id } of taken) await scout.reply(lease_id);
  expect((await shown(behind)).effective_priority).toBeUndefined();
  await forward(HOUR + 1);
  expect((await shown(behind)).effective_priority).toBe(3);
});

test("without the setting, nothing ages", async () => {
  const { send, forward, shown } = await setup({});
  const id = await send("low", 2);
  await forward(100 * HOUR);
  expect((await shown(id)).effective_priority).toBeUndefined();
});

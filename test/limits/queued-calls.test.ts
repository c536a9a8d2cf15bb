/** Outgoing calls of one delegation whose receivers are away: how many are queued, and how much memory they use. */
import { expect, test, vi } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import { client, startBroker } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { OUTBOUND_KEY, stockQueue } from "../support/stock-queue.ts";
import { until } from "../support/until.ts";

const MOST = LIMITS.queued_calls.value;

async function setup() {
  const receiver = await startReceiver(() => 500);
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"], callbackRetryMs: () => 3_600_000 });
  const { url, redis } = broker;
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { callback: { url: receiver.url } })).body;
  const ask = async () => {
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    const { interrupt_id } = (await api.interrupt(lease_id, { text: "?" })).body;
    await api.answer(id, interrupt_id, { text: "yes" });
  };
  /** The `seq` of each event whose callback is queued, and the number of queued pushes. */
  const queued = async () => {
    const names = await redis.zrange(`${OUTBOUND_KEY}:delayed`, "0", "-1");
    const calls = names.map((name) => name.split(".")).filter(([of]) => of === id);
    const seqs = calls.flatMap(([, kind, number]) => (kind === "callback" ? [Number(number)] : []));
    return { seqs: seqs.sort((a, b) => a - b), pushes: calls.length - seqs.length };
  };
  const bytes = async () => {
    const sizes = await Promise.all(
      (await redis.keys(`${OUTBOUND_KEY}:*`)).map((name) => redis.memory("USAGE", name, "SAMPLES", "0")),
    );
    return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
  };
  const events = async (status: string): Promise<number[]> => {
    const { body } = await api.events(id, "?after=0&limit=1000");
    return body.events.flatMap((one: { status?: string; seq: number }) =>
      one.status === status ? [one.seq] : [],
    );
  };
  return { ...broker, api, id: String(id), ask, queued, bytes, events };
}

test("callbacks of the newest questions and one call for each push config stay queued", async () => {
  const { api, id, ask, queued, bytes, events } = await setup();
  for (let n = 0; n < LIMITS.pushes.value; n += 1) {
    const push = { id: `p${n}`, url: (await startReceiver(() => 500)).url };
    const path = `/a2a/scout/rest/tasks/${id}/pushNotificationConfigs?A2A-Version=1.0`;
    expect((await api.call("POST", path, push)).status).toBe(201);
  }
  for (let n = 0; n < MOST + 8; n += 1) await ask();
  const newest = (await events("interrupted")).slice(-MOST);
  await until(async () => {
    const { seqs, pushes } = await queued();
    return seqs.length === MOST && seqs[0] === newest[0] && pushes === LIMITS.pushes.value;
  });
  expect((await queued()).seqs).toEqual(newest);
  expect(await bytes()).toBeLessThan((MOST + LIMITS.pushes.value) * 1_024 + 4_096);

  // The end is the newest event; its call replaces the oldest.
  await api.cancel(id);
  await until(async () => (await queued()).seqs.at(-1) !== newest.at(-1));
  expect((await queued()).seqs).toHaveLength(MOST);
});

test("an old call that a dead gateway left in the queue is dropped when it is due; erasing a delegation drops all its calls", async () => {
  const { gateway, api, id, ask, queued, events, log, db } = await setup();
  const died = vi.spyOn(gateway.broker.outbound, "remove").mockRejectedValue(new Error("died"));
  for (let n = 0; n < MOST + 1; n += 1) await ask();
  await until(async () => died.mock.calls.length > 0 && (await queued()).seqs.length === MOST + 1);
  died.mockRestore();
  const [oldest = 0] = await events("interrupted");
  const { queue } = await stockQueue(db);
  await (await queue.getJob(`${id}.callback.${oldest}`))?.promote();
  await until(() => log.some((line) => line.includes("too many newer calls are queued")));
  expect((await queued()).seqs).not.toContain(oldest);

  const newest = (await queued()).seqs.at(-1) ?? 0;
  await api.cancel(id);
  await until(async () => (await api.erase(id)).status === 204);
  // The receiver is away for an hour. When the calls are due, their delegation is gone.
  await gateway.broker.outbound.add({ kind: "callback", delegation_id: id, seq: newest + 1 });
  await until(() => log.some((line) => line.includes("its delegation no longer exists")));
});

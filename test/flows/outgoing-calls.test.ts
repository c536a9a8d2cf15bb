/**
 * BullMQ's own tools on the queue of outgoing calls: whatever they do to its jobs, each call is made, because the record
 * lists it until then.
 */
import { type Job, UnrecoverableError, Worker } from "bullmq";
import { expect } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { startReceiver } from "../support/receiver.ts";
import { fieldOf } from "../support/record.ts";
import { stockQueue } from "../support/stock-queue.ts";
import { until } from "../support/until.ts";

const ofOneQueue = onOneRedis("it looks at the calls of one shard");

/** A finished delegation whose callback and push notification have failed, and are to be tried again in an hour. */
async function setup() {
  let status = 500;
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"], callbackRetryMs: () => 3_600_000 });
  const { gateway, url, redis, db, clock, another } = broker;
  const [callback, pushed] = await Promise.all([startReceiver(() => status), startReceiver(() => status)]);
  const api = client(url);
  await api.agent("scout");
  const alice = await as(url, "caller:alice");
  const { lease_id, id } = await leased();
  async function leased(): Promise<{ lease_id: string; id: string }> {
    const made = await alice.delegate("scout", { callback: { url: callback.url } });
    const [lease] = (await api.lease("scout")).body.leases;
    return { lease_id: lease.lease_id, id: String(made.body.id) };
  }
  const path = `/a2a/scout/rest/tasks/${id}/pushNotificationConfigs?A2A-Version=1.0`;
  expect((await alice.call("POST", path, { id: "p", url: pushed.url })).status).toBe(201);
  await api.reply(lease_id);
  const { queue, options } = await stockQueue(db);
  const jobs = await until(async () => {
    const delayed = await queue.getDelayed();
    return delayed.length === 2 ? delayed : undefined;
  });
  status = 204;
  const calls = () => [callback.received.length, pushed.received.length];
  const callsAt = () => fieldOf(redis, `{errand:0}:d:${id}`, "calls_at");
  /** A gateway that sweeps ten minutes later. */
  const sweepLater = async () => {
    const heir = (await another()).gateway;
    clock.offset_ms += 600_000;
    await heir.sweep.tick();
    return heir;
  };
  return {
    ...broker,
    id,
    queue,
    options,
    jobs,
    calls,
    callsAt,
    sweepLater,
    stop: () => gateway.broker.outbound.stop(0),
  };
}

type Setup = Awaited<ReturnType<typeof setup>>;

/** A Worker of somebody else takes the jobs. */
async function takenBy({ queue, options, jobs }: Setup, work: () => Promise<void>): Promise<void> {
  for (const job of jobs) await job.promote();
  const worker = new Worker(queue.name, work, options);
  await until(async () => (await queue.getJobCountByTypes("wait", "delayed", "active")) === 0);
  await worker.close();
}

const TOOLS: Record<string, (broker: Setup) => Promise<unknown>> = {
  "remove()": ({ jobs }) => Promise.all(jobs.map((job: Job) => job.remove())),
  "clean()": ({ queue }) => queue.clean(0, 0, "delayed"),
  "drain()": ({ queue }) => queue.drain(true),
  async "obliterate()"({ queue }) {
    await queue.obliterate({ force: true });
    await queue.resume();
  },
  "a Worker that takes the calls for its own jobs": (broker) => takenBy(broker, async () => {}),
  "a Worker that fails them": (broker) =>
    takenBy(broker, () => Promise.reject(new UnrecoverableError("not mine"))),
  "the loss of the lists, with the jobs left": ({ queue, redis }) => redis.del(queue.toKey("delayed")),
};

ofOneQueue.each(Object.entries(TOOLS))(
  "after %s the sweep queues the calls again, and each is made once",
  async (_, use) => {
    const broker = await setup();
    await broker.stop();
    const before = broker.calls();
    await use(broker);
    expect(await broker.queue.getJobCountByTypes("wait", "delayed", "active")).toBe(0);
    const heir = await broker.sweepLater();
    const after = before.map((count) => count + 1);
    // The push config gets the event of the lease, too, if that call failed before.
    await until(() => broker.calls()[0] === after[0] && (broker.calls()[1] ?? 0) >= (after[1] ?? 0));
    await until(async () => (await broker.queue.getJobCountByTypes("wait", "delayed", "active")) === 0);
    const made = broker.calls();
    broker.clock.offset_ms += 600_000;
    await heir.sweep.tick();
    expect(await broker.callsAt()).toBeUndefined();
    expect(broker.calls()).toEqual(made);
    expect(made[0]).toBe(after[0]);
  },
);

ofOneQueue("calls that are in the queue are not queued again", async () => {
  const { jobs, queue, gateway, clock, calls, callsAt, log } = await setup();
  const before = calls();
  clock.offset_ms += 600_000;
  await gateway.sweep.tick();
  expect(await queue.getDelayedCount()).toBe(2);
  expect((await queue.getDelayed()).map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
  expect(log.some((line) => line.includes("lost call"))).toBe(false);
  // It looks again, later and later.
  expect(Number(await callsAt())).toBeGreaterThan(Date.now() + clock.offset_ms + 200_000);
  expect(calls()).toEqual(before);
});

ofOneQueue("promote() makes a call at once; pause() stops all calls until resume()", async () => {
  const { jobs, queue, calls } = await setup();
  const before = calls();
  await queue.pause();
  for (const job of jobs) await job.promote();
  expect(await queue.getJobCounts()).toMatchObject({ delayed: 0, active: 0 });
  expect(calls()).toEqual(before);
  await queue.resume();
  await until(async () => (await queue.getJobCountByTypes("wait", "delayed", "active")) === 0);
  expect(calls()[0]).toBe((before[0] ?? 0) + 1);
});

ofOneQueue("a callback that is made is no longer looked after", async () => {
  const { redis, url, gateway, clock } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const receiver = await startReceiver();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { callback: { url: receiver.url } })).body;
  await api.reply((await api.lease("scout")).body.leases[0].lease_id);
  const key = `{errand:0}:d:${id}`;
  await until(async () => receiver.received.length === 1 && !(await redis.hexists(key, "notify:3")));
  clock.offset_ms += 600_000;
  await gateway.sweep.tick();
  expect(await fieldOf(redis, key, "calls_at")).toBeUndefined();
  expect(receiver.received).toHaveLength(1);
});

/**
 * BullMQ's own tools on the queue of an agent in use: reads change nothing, and removing tickets loses no work,
 * because the sweep makes them again.
 */
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";
import { expect, inject, onTestFinished, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { until } from "../support/until.ts";

const PREFIX = "{errand:0}:q";
const WAITING = 4;

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const ids: string[] = [];
  for (let n = 0; n < WAITING; n += 1) {
    ids.push(String((await api.delegate("scout", { priority: n < 2 ? 7 : 5 })).body.id));
  }
  const connection = new Redis(inject("redisSocket"), { db: broker.db, maxRetriesPerRequest: null });
  const options = { connection, prefix: PREFIX };
  const queue = new Queue("scout", options);
  onTestFinished(async () => {
    await queue.close();
    connection.disconnect();
  });
  /** Leases everything that can be leased now, in order. */
  const leased = async () => {
    const { leases } = (await api.lease("scout", { wait_seconds: 0, max: 32 })).body;
    return leases.map((lease: { attempt: number; delegation: { id: string } }) => {
      expect(lease.attempt).toBe(1);
      return lease.delegation.id;
    });
  };
  return { ...broker, api, ids, queue, options, leased };
}

test("the reads of a dashboard change nothing", async () => {
  const { api, ids, queue, options, redis, leased } = await setup();
  const delayed = (await api.delegate("scout", { delay_seconds: 3_600 })).body.id;
  await queue.waitUntilReady();
  const before = await dump(redis);
  expect(await queue.getJobCounts()).toMatchObject({ prioritized: WAITING, delayed: 1, active: 0 });
  const jobs = await queue.getJobs(["wait", "prioritized", "delayed", "active", "completed", "failed"]);
  expect(jobs.map(({ data }) => data.delegation_id).sort()).toEqual([...ids, delayed].sort());
  for (const { id } of jobs) {
    const job = await queue.getJob(String(id));
    expect(await job?.getState()).toMatch(/prioritized|delayed/);
    await queue.getJobLogs(String(id));
  }
  await queue.getMetrics("completed");
  await queue.getWorkers();
  await queue.getCountsPerPriority([0, 1, 2]);
  expect(await queue.isPaused()).toBe(false);
  const events = new QueueEvents("scout", options);
  await events.waitUntilReady();
  await events.close();
  expect(await dump(redis)).toEqual(before);
  expect(await leased()).toEqual(ids);
});

type Setup = Awaited<ReturnType<typeof setup>>;
const TAKERS: Record<string, (broker: Setup) => Promise<unknown>> = {
  "a Worker that takes the tickets for jobs": async ({ options }) => {
    const done: Job[] = [];
    const worker = new Worker("scout", async (job) => done.push(job), options);
    await until(() => done.length === WAITING);
    await worker.close();
  },
  "a Worker that fails them": async ({ options }) => {
    let failed = 0;
    const worker = new Worker("scout", () => Promise.reject(new Error("not a job")), options);
    worker.on("failed", () => {
      failed += 1;
    });
    await until(() => failed === WAITING);
    await worker.close();
  },
  "drain()": ({ queue }) => queue.drain(true),
  "obliterate()": ({ queue }) => queue.obliterate({ force: true }),
  "jobs that are removed": async ({ queue }) => {
    for (const job of await queue.getJobs(["prioritized"])) await job.remove();
  },
};

test.each(Object.entries(TAKERS))("%s: no work is lost, and no work is done twice", async (_name, take) => {
  const broker = await setup();
  const { ids, clock, gateway, queue, leased, api } = broker;
  await take(broker);
  expect(await leased()).toEqual([]);
  clock.offset_ms = 61_000;
  await gateway.sweep.tick();
  // obliterate() leaves the queue paused; that is BullMQ's behavior.
  if (await queue.isPaused()) await queue.resume();
  expect((await leased()).sort()).toEqual([...ids].sort());
  expect(await leased()).toEqual([]);
  const { counts } = (await api.call("GET", "/v1/agents/scout")).body;
  expect(counts).toMatchObject({ waiting: 0, working: WAITING });
});

test("nothing is leased from a queue that BullMQ paused until it is resumed", async () => {
  const { ids, queue, leased } = await setup();
  await queue.pause();
  expect(await leased()).toEqual([]);
  await queue.resume();
  expect(await leased()).toEqual(ids);
});

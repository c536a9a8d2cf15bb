/** BullMQ's own objects on a queue of a running broker, as its users have them. Limit: the queues of shard 0. */
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { inject, onTestFinished } from "vitest";
import { OUTBOUND_QUEUE } from "../../src/queue/outbound-queue.ts";
import { shardKeys } from "../../src/redis/keys.ts";
import { until } from "./until.ts";

const PREFIX = shardKeys(0).queuePrefix;

/** The names of the queue's keys begin with this. */
export const OUTBOUND_KEY = `${PREFIX}:${OUTBOUND_QUEUE}`;

export async function stockQueue(db: number, name: string = OUTBOUND_QUEUE) {
  const connection = new Redis(inject("redisSocket"), { db, maxRetriesPerRequest: null });
  const options = { connection, prefix: PREFIX };
  const queue = new Queue(name, options);
  onTestFinished(async () => {
    await queue.close();
    connection.disconnect();
  });
  await queue.waitUntilReady();
  return { queue, options };
}

/** A Worker that takes the first job and dies. */
export async function takeAndDie(db: number, name: string = OUTBOUND_QUEUE): Promise<string | undefined> {
  const { options } = await stockQueue(db, name);
  const worker = new Worker(name, async () => {}, { ...options, autorun: false, lockDuration: 30 });
  const job = await worker.getNextJob("token", { block: false });
  await worker.close(true);
  return job?.id;
}

/** Does what the gateways do every 15 s: gives the jobs of Workers that died to others. No Worker may be at work. */
export async function rescueStalled(db: number, name: string = OUTBOUND_QUEUE): Promise<void> {
  const { queue, options } = await stockQueue(db, name);
  const worker = new Worker(name, async () => {}, { ...options, autorun: false, stalledInterval: 20 });
  // A gateway has just looked, and a lock outlives its Worker by half a minute.
  const locks = (await queue.getActive()).map(({ id }) => `${PREFIX}:${name}:${id}:lock`);
  await options.connection.del(`${PREFIX}:${name}:stalled-check`, ...locks);
  await worker.startStalledCheckTimer();
  await until(async () => (await queue.getActiveCount()) === 0);
  await worker.close(true);
}

/** BullMQ's submitters: a plain Queue; each lane waits for its job's result by QueueEvents. Limit: one load at a time. */

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, QueueEvents } from "bullmq";
import { bullSchema, QUEUE } from "../bull.ts";
import { filler } from "../payload.ts";
import { serve } from "../remote.ts";
import { clock, Tallier } from "../tally.ts";

const tallier = new Tallier();
let stopping = false;
let running: Promise<void> = Promise.resolve();

/**
 * Resolves once completions are really received: QueueEvents never reports a job that completes before it starts to
 * read, and its waiter would wait forever.
 */
async function untilCompletionsArrive(queue: Queue, events: QueueEvents): Promise<void> {
  const completed = once(events, "completed");
  let isHeard = false;
  const hearing = completed.then(() => {
    isHeard = true;
  });
  while (!isHeard) {
    await queue.add("probe", {});
    await Promise.race([hearing, sleep(50)]);
  }
}

async function run(args: unknown): Promise<void> {
  const { lanes, working: _working, bytes, rate, ...connection } = bullSchema.parse(args);
  const queue = new Queue(QUEUE, { connection });
  const events = new QueueEvents(QUEUE, { connection });
  // Each waiting lane adds a listener.
  events.setMaxListeners(0);
  queue.setMaxListeners(0);
  await untilCompletionsArrive(queue, events);
  const data = { text: filler(bytes) };
  const one = async (): Promise<void> => {
    const since = clock();
    const job = await queue.add("task", data);
    const result: unknown = await job.waitUntilFinished(events);
    if (typeof result !== "string" || result.length !== bytes) throw new Error("a job has no result");
    tallier.add(clock() - since);
  };
  const loop = async (): Promise<void> => {
    while (!stopping) await one();
  };
  const paced = async (a_second: number): Promise<void> => {
    const open = new Set<Promise<void>>();
    let next = clock();
    while (!stopping) {
      await sleep(Math.max(0, next - clock()));
      next += ((0.5 + Math.random()) * 1000) / a_second;
      const job = one().finally(() => open.delete(job));
      open.add(job);
    }
    await Promise.all(open);
  };
  try {
    await (rate === null ? Promise.all(Array.from({ length: lanes }, loop)) : paced(rate));
  } catch (error) {
    tallier.fail(error);
  } finally {
    await events.close();
    await queue.close();
  }
}

serve({
  start(args) {
    stopping = false;
    running = run(args);
  },
  mark: () => tallier.mark(),
  take: () => tallier.take(),
  async stop() {
    stopping = true;
    await running;
  },
});

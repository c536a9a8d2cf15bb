/** Tickets made and taken by the script, against what BullMQ itself does. Limit: of the BullMQ that is installed. */
import { createRedisBackend, type IQueueBackend, Queue } from "bullmq";
import { Redis } from "ioredis";
import { expect, inject, onTestFinished, test } from "vitest";
import { addTicketScript, TICKET_LUA } from "../../src/queue/script.ts";
import { Script } from "../../src/redis/script.ts";
import { freshDb } from "../support/broker.ts";
import { dump } from "../support/dump.ts";

const PREFIX = "{errand:0}:q";
const NAME = "scout";
const QUEUE = `${PREFIX}:${NAME}`;
const take = new Script(
  `#!lua\n${TICKET_LUA}\nlocal id, number = ticket_take(KEYS[1], tonumber(ARGV[1]))\nreturn { id or '', number or '' }`,
);

async function database() {
  const redis = new Redis(inject("redisSocket"), { db: await freshDb() });
  onTestFinished(() => redis.disconnect());
  return redis;
}

async function bullmq(redis: Redis) {
  const options = {
    connection: redis,
    prefix: PREFIX,
    streams: { events: { maxLen: 1 } },
    skipWaitingForReady: true,
  };
  const backend = createRedisBackend("root", options).forQueue(NAME, PREFIX);
  const queue: Queue<unknown, unknown, string, unknown, unknown, string, IQueueBackend> = new Queue(
    NAME,
    options,
    () => backend,
  );
  await queue.waitUntilReady();
  return { queue, backend };
}

/** Without what differs from one run to the next, and without BullMQ's name for itself. */
function comparable(state: Record<string, unknown>): string {
  const text = JSON.stringify(state, (key, value) => (key === "version" ? undefined : value));
  return text
    .replaceAll(/\d{13}-\d+/g, "<id>")
    .replaceAll(/\b\d{13}\b/g, "<ms>")
    .replaceAll(/\b\d{16,}\b/g, "<due>");
}

test.each([
  ["at once", 0],
  ["for later", 60_000],
])("a ticket made by the script is the job that BullMQ would add: %s", async (_, delay) => {
  const ours = await database();
  const theirs = await database();
  await bullmq(ours);
  const { queue } = await bullmq(theirs);
  for (const [ticket, priority, returned] of [
    [1, 5, false],
    [2, 9, true],
  ] as const) {
    await addTicketScript.run(ours, [QUEUE], ["dlg_0_a", ticket, priority, returned ? 1 : 0, delay]);
    await queue.add(
      "ticket",
      { delegation_id: "dlg_0_a", ticket },
      {
        jobId: `dlg_0_a.${ticket}`,
        priority: (9 - priority) * 2 + (returned ? 1 : 2),
        delay,
        removeOnComplete: true,
        removeOnFail: true,
      },
    );
  }
  const normal = (value: Record<string, unknown>) => {
    for (const [key, fields] of Object.entries(value)) {
      // The order of an object's members is not the same in both languages.
      if (fields && typeof fields === "object" && "opts" in fields) {
        const opts: unknown = JSON.parse(String(fields.opts));
        value[key] = { ...fields, opts: Object.entries(Object(opts)).sort() };
      }
    }
    return comparable(value);
  };
  expect(normal(await dump(ours))).toBe(normal(await dump(theirs)));
});

test("a ticket taken is gone, the first of the highest rank, whoever made it", async () => {
  const redis = await database();
  const { queue } = await bullmq(redis);
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  await queue.add(
    "ticket",
    {},
    { jobId: "dlg_0_b.12", priority: 1, removeOnComplete: true, removeOnFail: true },
  );
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  const at = Date.now();
  expect(await take.run(redis, [QUEUE], [at])).toEqual(["dlg_0_b", 12]);
  expect(await take.run(redis, [QUEUE], [at])).toEqual(["dlg_0_a", 1]);
  expect(await take.run(redis, [QUEUE], [at])).toEqual(["", ""]);
  expect((await redis.keys("*")).filter((key) => key.includes("dlg_"))).toEqual([]);
  expect(await redis.llen(`${QUEUE}:active`)).toBe(0);
  expect(await queue.getJobCounts()).toMatchObject({ active: 0, prioritized: 0, waiting: 0, completed: 0 });
});

test("an empty queue says when its next ticket is due, and gives it then", async () => {
  const redis = await database();
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 60_000]);
  const at = Date.now();
  const [nothing, due] = Object.values(Object(await take.run(redis, [QUEUE], [at])));
  expect(nothing).toBe("");
  expect(Number(due) - at).toBeGreaterThan(55_000);
  expect(Number(due) - at).toBeLessThan(65_000);
  expect(await take.run(redis, [QUEUE], [at + 70_000])).toEqual(["dlg_0_a", 1]);
});

test("a job that is no ticket of ours is passed over, with the one behind it in the same look", async () => {
  const redis = await database();
  const { queue } = await bullmq(redis);
  await queue.add("alien", {}, { jobId: "alien" });
  await queue.add("alien", {}, { jobId: "alien.1", priority: 1 });
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["dlg_0_a", 1]);
  expect(await queue.getJobCounts()).toMatchObject({ active: 0, prioritized: 0, waiting: 0 });
});

test("a queue that somebody gave a rate says when that is over", async () => {
  const redis = await database();
  const { queue } = await bullmq(redis);
  await queue.setGlobalRateLimit(1, 60_000);
  for (const ticket of [1, 2]) await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", ticket, 5, 0, 0]);
  const at = Date.now();
  expect(await take.run(redis, [QUEUE], [at])).toEqual(["dlg_0_a", 1]);
  const [nothing, due] = Object.values(Object(await take.run(redis, [QUEUE], [at])));
  expect(nothing).toBe("");
  expect(Number(due) - at).toBeGreaterThan(50_000);
  await queue.removeGlobalRateLimit();
  await redis.del(`${QUEUE}:limiter`);
  expect(await take.run(redis, [QUEUE], [at])).toEqual(["dlg_0_a", 2]);
});

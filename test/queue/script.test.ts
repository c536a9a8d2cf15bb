/** Tickets made and taken by the script, against what BullMQ itself does. Limit: of the BullMQ that is installed. */
import { expect, test } from "vitest";
import { addTicketScript, TICKET_LUA } from "../../src/queue/script.ts";
import { Script } from "../../src/redis/script.ts";
import { bullmq, comparable, database, FOR_OTHERS, QUEUE } from "../support/ticket-queue.ts";

const take = new Script(
  `#!lua\n${TICKET_LUA}\nlocal id, number = ticket_take(KEYS[1], tonumber(ARGV[1]))\nreturn { id or '', number or '' }`,
);

test.each([
  ["at once", 0, false, FOR_OTHERS],
  ["at once, into a queue that somebody gave a concurrency", 0, true, []],
  ["for later", 60_000, false, []],
])("a ticket made by the script is the job that BullMQ would add: %s", async (_, delay, isSetUp, without) => {
  const ours = await database();
  const theirs = await database();
  const { queue } = await bullmq(theirs);
  for (const one of [queue, (await bullmq(ours)).queue]) if (isSetUp) await one.setGlobalConcurrency(7);
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
  for (const key of without) expect(await ours.exists(key), key).toBe(0);
  expect(await comparable(ours, without)).toBe(await comparable(theirs, without));
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

/** Tickets made and taken by the script, compared with what the installed BullMQ does. */
import { expect, test } from "vitest";
import { addTicketScript, TICKET_LUA } from "../../src/queue/ticket-script.ts";
import { Script } from "../../src/redis/script.ts";
import { bullmq, comparable, database, FOR_OTHERS, FOR_TURNS, QUEUE } from "../support/ticket-queue.ts";

const take = new Script(
  `#!lua\n${TICKET_LUA}\nlocal id, number = ticket_take(KEYS[1], tonumber(ARGV[1]))\nreturn { id or '', number or '' }`,
);

test.each([
  ["at once", 0, false, FOR_OTHERS],
  ["at once, into a queue with a concurrency", 0, true, []],
  ["delayed", 60_000, false, []],
])(
  "a ticket made by the script equals the job that BullMQ would add: %s",
  async (_, delay, isSetUp, without) => {
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
    const compared = [...without, ...FOR_TURNS];
    expect(await comparable(ours, compared)).toBe(await comparable(theirs, compared));
  },
);

test("the first ticket of the highest rank is taken and removed, whoever made it", async () => {
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

test("an empty queue says when its next ticket is due, and returns it then", async () => {
  const redis = await database();
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 60_000]);
  const at = Date.now();
  const [nothing, due] = Object.values(Object(await take.run(redis, [QUEUE], [at])));
  expect(nothing).toBe("");
  expect(Number(due) - at).toBeGreaterThan(55_000);
  expect(Number(due) - at).toBeLessThan(65_000);
  expect(await take.run(redis, [QUEUE], [at + 70_000])).toEqual(["dlg_0_a", 1]);
});

test("jobs that are not our tickets are skipped, and the ticket behind them is taken in the same call", async () => {
  const redis = await database();
  const { queue } = await bullmq(redis);
  await queue.add("alien", {}, { jobId: "alien" });
  await queue.add("alien", {}, { jobId: "alien.1", priority: 1 });
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["dlg_0_a", 1]);
  expect(await queue.getJobCounts()).toMatchObject({ active: 0, prioritized: 0, waiting: 0 });
});

test("a queue with a rate limit says when the limit ends", async () => {
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

test("on a plain queue no script of BullMQ runs, not even with a delayed ticket in the queue", async () => {
  const redis = await database();
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_later", 1, 5, 0, 60_000]);
  await redis.del(`${QUEUE}:events`);
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["dlg_0_a", 1]);
  // BullMQ would publish events.
  expect(await redis.exists(`${QUEUE}:events`)).toBe(0);
});

test.each([
  ["at once", 0],
  ["delayed", 60_000],
])("BullMQ trims the events of a queue whose first ticket the script made: %s", async (_, delay) => {
  const redis = await database();
  const { queue, backend } = await bullmq(redis);
  // As if another gateway had dropped it.
  await queue.obliterate();
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, delay]);
  await backend.remove("dlg_0_a.1", false);
  expect(await redis.hget(`${QUEUE}:meta`, "opts.maxLenEvents")).toBe("1");
});

test("a ticket that the queue refused leaves no data, and is made when it is offered again", async () => {
  const redis = await database();
  await redis.set(`${QUEUE}:pc`, "no number");
  const offer = () => addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 1, 0]);
  await expect(offer()).rejects.toThrow("the queue refused a ticket");
  expect(await redis.exists(`${QUEUE}:dlg_0_a.1`)).toBe(0);
  await redis.del(`${QUEUE}:pc`);
  await offer();
  expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["dlg_0_a", 1]);
});

test.each(["xdlg_0_a.1", "dlg_0_a.1x", "dlg_0_a.p1", "dlg_0_a", "dlg_.1"])(
  "%s is not a ticket",
  async (jobId) => {
    const redis = await database();
    const { queue } = await bullmq(redis);
    await queue.add("alien", {}, { jobId, priority: 1 });
    expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["", ""]);
  },
);

test("taking from a queue that never existed leaves no data", async () => {
  const redis = await database();
  expect(await take.run(redis, [QUEUE], [Date.now()])).toEqual(["", ""]);
  expect(await redis.keys("*")).toEqual([]);
});

test("cached properties of one queue are not used for another", async () => {
  const redis = await database();
  await addTicketScript.run(redis, [QUEUE], ["dlg_0_a", 1, 5, 0, 0]);
  await redis.hset(`${QUEUE}:meta`, "paused", 1);
  const takeBehind = new Script(
    `#!lua\n${TICKET_LUA}\nticket_take(KEYS[1] .. '2', 1)\nreturn { ticket_take(KEYS[1], 1) or '' }`,
  );
  expect(await takeBehind.run(redis, [QUEUE], [])).toEqual([""]);
});

const isFirst = new Script(
  `#!lua\n${TICKET_LUA}\nreturn ticket_is_first(KEYS[1], tonumber(ARGV[1])) and 1 or 0`,
);
const NOW = Date.now();
const DUE = String(NOW * 0x1000);
const LATER = String((NOW + 1_000) * 0x1000);

test.each([
  ["an empty queue", [], 1],
  ["a queue whose delayed jobs are not due", [["zadd", "delayed", LATER, "dlg_0_a.1"]], 1],
  ["a queue with a job that is due", [["zadd", "delayed", DUE, "dlg_0_a.1"]], 0],
  ["a queue with a job that has a priority", [["zadd", "prioritized", "1", "dlg_0_a.1"]], 0],
  ["a queue with a job that has none", [["rpush", "wait", "dlg_0_a.1"]], 0],
  ["a paused queue", [["hset", "meta", "paused", "1"]], 0],
  ["a queue with a rate limit", [["hset", "meta", "max", "1"]], 0],
] as const)("a new ticket would be the first of %s: %j -> %i", async (_, commands, expected) => {
  const redis = await database();
  for (const [name, key, ...args] of commands) await redis.call(name, `${QUEUE}:${key}`, ...args);
  expect(await isFirst.run(redis, [QUEUE], [NOW])).toBe(expected);
});

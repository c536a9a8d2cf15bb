/**
 * Random walks over two queues: the script's functions make and take the tickets of one, BullMQ alone those of the
 * other. Limit: no step sets a rate, because rates follow Redis' own clock; one delegator, because BullMQ knows no turns.
 */
import fc from "fast-check";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";
import { TICKET_LUA } from "../../src/queue/ticket-script.ts";
import { Script } from "../../src/redis/script.ts";
import {
  bullmq,
  database,
  exact,
  FOR_OTHERS,
  FOR_TURNS,
  QUEUE,
  RECORD_LUA,
} from "../support/ticket-queue.ts";

const script = (body: string) => new Script(`#!lua\n${TICKET_LUA}\n${RECORD_LUA}\n${body}`);
const add = script(`
local id, ticket, priority, returned, delay, at = unpack(ARGV)
set_record(KEYS[1], id, 'caller:ana')
return ticket_add(KEYS[1], id, tonumber(ticket), tonumber(priority), returned == '1', tonumber(delay), tonumber(at))`);
const take = script(`
local id, next = ticket_take(KEYS[1], tonumber(ARGV[1]))
return { id or '', next and math.floor(next) or '' }`);
const takeByBull = script(`
local function k(name) return KEYS[1] .. ':' .. name end
local function first()
  local found = bull_moveToActive({ k('wait'), k('active'), k('prioritized'), k('events'), k('stalled'), k('limiter'),
    k('delayed'), k('paused'), k('meta'), k('pc'), k('marker') }, { k(''), ARGV[1], cmsgpack.pack({ token = '0' }) })
  local job = found[2]
  if job == 0 then return { '', found[4] ~= 0 and math.floor(found[4]) or '' } end
  redis.call('LREM', k('active'), 1, job)
  redis.call('DEL', k(job))
  local id, ticket = string.match(job, '^(dlg_[%w_]+)%.(%d+)$')
  return id and { id, tonumber(ticket) } or first()
end
return first()`);

const START = 1_800_000_000_000;

type Bull = Awaited<ReturnType<typeof bullmq>>;

interface World {
  readonly ours: Redis;
  readonly theirs: Redis;
  readonly queues: readonly Bull["queue"][];
  readonly backends: readonly Bull["backend"][];
  /** Jobs popped through BullMQ and not finished. */
  readonly popped: string[];
  at: number;
  count: number;
}

/** A step; a failing walk prints the names. */
interface Step {
  readonly name: string;
  readonly run: (world: World) => Promise<void>;
}
const step = (name: string, run: Step["run"]): Step => ({ name, run });

const work = fc.record({
  priority: fc.integer({ min: 0, max: 9 }),
  returned: fc.boolean(),
  delay: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 50 }) },
  ),
});

/** Adding the same ticket again changes neither queue. */
const offer = fc.tuple(work, fc.boolean()).map(([asked, again]) =>
  step(`offer ${JSON.stringify(asked)}${again ? " again" : ""}`, async (world) => {
    const { ours, theirs, queues, at } = world;
    const { priority, returned, delay } = asked;
    if (!again) world.count += 1;
    const [id, ticket] = [`dlg_0_${world.count}`, 1 + (world.count % 3)];
    await add.run(ours, [QUEUE], [id, ticket, priority, returned ? 1 : 0, delay, at]);
    const rank = (9 - priority) * 2 + (returned ? 1 : 2);
    const options = { priority: rank, delay, timestamp: at, removeOnComplete: true, removeOnFail: true };
    await queues[1]?.add("ticket", { delegation_id: id, ticket }, { jobId: `${id}.${ticket}`, ...options });
    const job = `${QUEUE}:${id}.${ticket}`;
    expect(await theirs.exists(job)).toBe(await ours.exists(job));
  }),
);

// To the exact millisecond at which a ticket falls due, or far beyond it.
const draw = fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 60 })).map((later) =>
  step(`take ${later} ms later`, async (world) => {
    world.at += later;
    const at = [world.at];
    expect(await take.run(world.ours, [QUEUE], at)).toEqual(await takeByBull.run(world.theirs, [QUEUE], at));
  }),
);

const onBoth = (
  name: string,
  act: (queue: World["queues"][number], n: number, index: number) => Promise<unknown>,
) =>
  step(name, async (world) => {
    world.count += 1;
    for (const [index, queue] of world.queues.entries()) await act(queue, world.count, index);
  });
const setUp = fc.constantFrom(
  onBoth("pause", (queue) => queue.pause()),
  onBoth("resume", (queue) => queue.resume()),
  onBoth("concurrency", (queue) => queue.setGlobalConcurrency(2)),
  onBoth("no concurrency", (queue) => queue.removeGlobalConcurrency()),
  onBoth("alien", (queue, n) => queue.add("alien", {}, { jobId: `alien-${n}` })),
  // The first queue has a band of priorities where the other one has a priority.
  onBoth("alien with a priority", (queue, n, index) =>
    queue.add("alien", {}, { jobId: `alien-${n}`, priority: index === 0 ? 3 * 0x10000 : 3 }),
  ),
);

/** As outgoing calls are popped: by a process that may die before it finishes them. */
const pop = step("pop", async ({ backends, popped }) => {
  const [job, other] = await Promise.all(backends.map((backend) => backend.moveToActive("token")));
  expect(job?.[1]).toEqual(other?.[1]);
  expect(job?.[3]).toEqual(other?.[3]);
  if (typeof job?.[1] === "string") popped.push(job[1]);
});
const onPopped = (
  name: string,
  act: (backend: Bull["backend"], id: string, world: World) => Promise<unknown>,
) =>
  step(name, async (world) => {
    const id = world.popped.shift();
    if (id !== undefined) for (const backend of world.backends) await act(backend, id, world);
  });
const backAtOnce = onPopped("back at once", (backend, id) => backend.moveJobFromActiveToWait(id, "0"));
const backLater = onPopped("back for later", (backend, id, { at }) =>
  backend.moveToDelayed(id, at + 20, 20, "0", { skipAttempt: true }),
);
const takeOut = step("take out", async ({ backends, count }) => {
  const found = await Promise.all(
    backends.map(async (backend) => {
      const id = `dlg_0_${count}.${1 + (count % 3)}`;
      const state = await backend.getState(id);
      if (state !== "active") await backend.remove(id, false);
      return state;
    }),
  );
  expect(found[0]).toBe(found[1]);
});

const walk = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: offer },
    { weight: 6, arbitrary: draw },
    { weight: 1, arbitrary: setUp },
    { weight: 4, arbitrary: fc.constantFrom(pop, pop, backAtOnce, backLater, takeOut) },
  ),
  { minLength: 10, maxLength: 40 },
);

test("after any steps, the script takes the tickets that BullMQ would take, and leaves the data that BullMQ would leave", {
  timeout: 240_000,
}, async () => {
  const [ours, theirs] = [await database(), await database()];
  const bulls = [await bullmq(ours), await bullmq(theirs)];
  const [queues, backends] = [bulls.map(({ queue }) => queue), bulls.map(({ backend }) => backend)];
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const walks = fc.asyncProperty(walk, async (taken) => {
    for (const redis of [ours, theirs]) {
      await redis.flushdb();
      await redis.hset(`${QUEUE}:meta`, "opts.maxLenEvents", 1);
    }
    const world: World = { ours, theirs, queues, backends, popped: [], at: START, count: 0 };
    for (const { run } of taken) {
      vi.setSystemTime(world.at);
      await run(world);
    }
    const without = [...FOR_OTHERS, ...FOR_TURNS];
    expect(await exact(ours, without)).toBe(await exact(theirs, without));
  });
  await fc.assert(walks, { numRuns: 150 });
});

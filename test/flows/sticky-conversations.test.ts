/** Agents with `sticky_seconds`: the next delegation of a conversation is kept for the worker that had the last one. */
import { expect, test } from "vitest";
import { as, startBroker } from "../support/broker.ts";
import { eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

async function setup(settings: object = {}) {
  const broker = await startBroker({ shards: 1 });
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  await scout.agent("scout", { sticky_seconds: 60, ...settings });
  const say = async (context_id: string, by = alice): Promise<string> =>
    (await by.delegate("scout", { context_id })).body.id;
  const leases = new Map<string, string>();
  const poll = async (worker_id: string, wait_seconds = 0, at = scout): Promise<string[]> => {
    const taken = (await at.lease("scout", { worker_id, wait_seconds })).body.leases;
    for (const { lease_id, delegation } of taken) leases.set(delegation.id, lease_id);
    return taken.map((lease: { delegation: { id: string } }) => lease.delegation.id);
  };
  const reply = async (id: string) =>
    expect((await scout.reply(leases.get(id) ?? "")).status, "of the reply").toBe(200);
  /** The worker has had a delegation of the conversation. */
  const had = async (worker: string, context_id: string) => {
    const id = await say(context_id);
    expect(await poll(worker)).toEqual([id]);
    await reply(id);
  };
  return { ...broker, scout, alice, say, poll, reply, had };
}

test("only the worker that had the last one gets the next one; others get other conversations", async () => {
  const { url, alice, say, poll, had } = await setup();
  await had("w1", "a");
  const next = await say("a");
  const other = await say("b");
  const [sent] = await eventsOf(alice, next);
  expect(sent).toMatchObject({ status: "queued", kept_for: "w1" });
  const theirs = await say("a", await as(url, "caller:bob"));
  expect([await poll("w2"), await poll("w2"), await poll("w2")]).toEqual([[other], [theirs], []]);
  expect(await poll("w1")).toEqual([next]);
});

test("it is preferred for so long after its reply; then any worker gets it", async () => {
  const { clock, say, poll, had } = await setup();
  await had("w1", "a");
  clock.offset_ms += 61_000;
  const next = await say("a");
  expect(await poll("w2")).toEqual([next]);
});

test("one that nobody has fetched by then is for any worker", async () => {
  const { say, poll, had } = await setup({ sticky_seconds: 0.5 });
  await had("w1", "a");
  const next = await say("a");
  expect(await poll("w2", 20)).toEqual([next]);
});

test("with serial_by, the next one in line is kept for the worker that replies, whose poll is woken", async () => {
  const { alice, say, poll, reply, another } = await setup({ serial_by: "context" });
  const [first, second, third] = [await say("a"), await say("a"), await say("a")];
  expect(await poll("w1")).toEqual([first]);
  const { gateway, url } = await another();
  const there = await as(url, "agent:scout");
  const [w2, w1] = [poll("w2", 20, there), poll("w1", 20, there)];
  await until(() => gateway.broker.handoff.polls.count("scout") === 2);
  await reply(first);
  expect(await w1).toEqual([second]);
  expect((await eventsOf(alice, second)).map(({ status }) => status)).toEqual([
    "queued",
    "admitted",
    "leased",
  ]);
  const other = await say("b");
  expect(await w2).toEqual([other]);
  await reply(second);
  expect([await poll("w2"), await poll("w1")]).toEqual([[], [third]]);
});

test("a worker that vanished without a reply is not preferred", async () => {
  const { clock, gateway, say, poll } = await setup({ limits: { max_attempts: 1 } });
  const first = await say("a");
  expect(await poll("w1")).toEqual([first]);
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  const next = await say("a");
  expect(await poll("w2")).toEqual([next]);
});

test("of very many conversations, the last workers of the newest are remembered, in two hashes that expire", async () => {
  const { redis, say, poll, reply, had } = await setup();
  const last = "{errand:0}:last:scout";
  for (let from = 0; from < 5_000; from += 500) {
    const names = Array.from({ length: 500 }, (_, n) => [`c${from + n}`, `${Date.now() + 60_000} w9`]).flat();
    await redis.call("HSET", last, ...names);
  }
  await had("w1", "a");
  expect([await redis.hlen(last), await redis.hlen(`${last}:older`)]).toEqual([1, 5_000]);
  expect(await redis.pttl(last)).toBeGreaterThan(50_000);
  const next = await say("a");
  expect([await poll("w2"), await poll("w1")]).toEqual([[], [next]]);
  await reply(next);
});

test.each([null, "context"])(
  "a long conversation takes turns with the work of others: %s",
  async (serial_by) => {
    const { url, say, poll, reply, had } = await setup({ serial_by });
    await had("w1", "a");
    const bob = await as(url, "caller:bob");
    const own: string[] = [];
    for (let n = 0; n < 4; n += 1) own.push(await say("a"));
    const others = [await say("b", bob), await say("c", bob)];
    const taken: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const [id = ""] = await poll("w1");
      taken.push(id);
      await reply(id);
    }
    expect(taken).toEqual([own[0], others[0], own[1], others[1], own[2], own[3]]);
  },
);

test("workers that are gone, for which tickets were kept, make room for others", async () => {
  const { redis, say, poll, had } = await setup();
  await had("w1", "a");
  // Others have had these tickets; none of the workers came back to look.
  const gone = Array.from({ length: 1_000 }, (_, n) => [`gone-${n}`, `dlg_0_gone${n} 1\n`]).flat();
  await redis.call("HSET", "{errand:0}:sticky:scout", ...gone);
  const next = await say("a");
  expect([await poll("w2"), await poll("w1")]).toEqual([[], [next]]);
  expect(await redis.hlen("{errand:0}:sticky:scout")).toBeLessThan(1_000);
});

test("an agent without the settings remembers no worker", async () => {
  const { redis, had } = await setup({ sticky_seconds: null });
  await had("w1", "a");
  expect(await redis.keys("*:last:*")).toEqual([]);
  expect(await redis.keys("*:line:*")).toEqual([]);
});

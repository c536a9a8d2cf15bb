/**
 * Random walks through a wait for children: the wait, the ends of the children, a cancel of the parent, the time limit,
 * sweeps and the next lease, at two gateways with one Redis. fast-check's scheduler chooses the order in which the moves
 * are executed and answered, and shrinks it when a walk fails. A gateway may die: the sweep of the other one finishes what
 * it began. Whatever the order, a parent that waited is queued again exactly once.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import type { Broker } from "../../src/engine/broker.ts";
import { cancel } from "../../src/engine/delegations/cancel.ts";
import { awaitChildren } from "../../src/engine/leases/await-children.ts";
import { reply } from "../../src/engine/leases/reply.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { awaitRequestSchema } from "../../src/schema/await.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";
import { replyRequestSchema } from "../../src/schema/lease.ts";
import { as, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";

const ACTS = [
  ...["wait", "wait", "end", "end", "end", "cancel a child", "time limit", "time limit", "sweep", "take"],
  ...["cancel", "die", "do one thing", "do one thing", "do one thing", "rest"],
] as const;
const steps = fc.array(
  fc.record({
    act: fc.constantFrom(...ACTS),
    gateway: fc.nat(1),
    which: fc.nat(2),
    until: fc.constantFrom("all" as const, "any" as const, "all" as const),
    limited: fc.constantFrom(true, true, true, false),
  }),
  { minLength: 4, maxLength: 24 },
);
type Step = (typeof steps extends fc.Arbitrary<infer T> ? T : never)[number];

const LEAD = toPrincipal("agent:lead");
const SCOUT = toPrincipal("agent:scout");
const ALICE = toPrincipal("caller:alice");
/** Longer than the pause after which the sweep takes a pending delivery over. */
const TAKEN_OVER_MS = 6_000;
/** Answers, after which most walks have come to rest. */
const REST = 20;
const LEASE = { wait_seconds: 5, lease_seconds: 3_600 };

/** The calls of one gateway to the script, which the scheduler executes and answers in its own order. */
class Controlled {
  readonly broker: Broker;
  isDead = false;
  /** Undefined: calls are executed at once. */
  scheduler: fc.Scheduler | undefined;
  flip: () => boolean = () => false;

  constructor({ broker }: Gateway) {
    this.broker = broker;
    const move = broker.writer.move.bind(broker.writer);
    vi.spyOn(broker.writer, "move").mockImplementation(async (command, taker) => {
      const { scheduler } = this;
      if (!scheduler) return move(command, taker);
      await scheduler.schedule(Promise.resolve(), command.move);
      if (this.isDead && this.flip()) throw new Error("the gateway is dead");
      const result = await move(command, taker);
      await this.scheduler?.schedule(Promise.resolve(), `${command.move} answered`);
      if (this.isDead) throw new Error("the gateway is dead");
      return result;
    });
  }
}

function isBefore(one: string, other: string): boolean {
  const [ms = 0, n = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherN = 0] = other.split("-").map(Number);
  return ms < otherMs || (ms === otherMs && n < otherN);
}

async function setup() {
  // In one shard, the ids of events say their order.
  const first = await startBroker({ shards: 1 });
  const second = await first.another();
  const { clock } = first;
  const gateways = [first.gateway, second.gateway];
  const controlled = gateways.map((gateway) => new Controlled(gateway));
  const alice = await as(first.url, "caller:alice");
  const lead = await as(first.url, "agent:lead");
  const scout = await as(first.url, "agent:scout");
  await lead.agent("lead");
  await scout.agent("scout");
  const counts = { resumed: 0, limited: 0, canceled: 0, died: 0 };

  /** A walk that fails leaves nothing behind for the next one. */
  async function walk(...given: Parameters<typeof walkOnce>): Promise<void> {
    const [scheduler] = given;
    try {
      await walkOnce(...given);
    } finally {
      for (const one of controlled) one.scheduler = undefined;
      while (scheduler.count() > 0) await scheduler.waitOne();
      for (const api of [alice, lead]) {
        const { delegations } = (
          await api.call("GET", "/v1/delegations?state=submitted,working,awaiting_children")
        ).body;
        for (const { id } of delegations) await api.cancel(id);
      }
    }
  }

  async function walkOnce(
    scheduler: fc.Scheduler,
    flips: Iterator<boolean>,
    count: number,
    todo: readonly Step[],
  ) {
    const { id } = (await alice.delegate("lead")).body;
    let lease = String((await lead.lease("lead", LEASE)).body.leases[0].lease_id);
    const children: { id: string; lease: string }[] = [];
    for (let n = 0; n < count; n += 1) {
      const child = (await lead.delegate("scout", { parent_id: id })).body.id;
      const taken = (await scout.lease("scout", LEASE)).body.leases[0];
      expect(taken.delegation.id).toBe(child);
      children.push({ id: child, lease: taken.lease_id });
    }
    for (const one of controlled) {
      one.isDead = false;
      one.scheduler = scheduler;
      one.flip = () => flips.next().value === true;
    }
    const begun: Promise<unknown>[] = [];
    const begin = (work: Promise<unknown>) => void begun.push(work.catch(() => undefined));
    /** What was sent to Redis is answered. */
    const settled = async () => {
      for (let n = 0; n < 2; n += 1) await Promise.all(controlled.map(({ broker }) => broker.redis.ping()));
    };
    const doOne = async () => {
      await settled();
      if (scheduler.count() > 0) await scheduler.waitOne();
    };
    const wait = (broker: Broker, until: "all" | "any", limited: boolean) => {
      const limit = limited && { time_limit_seconds: 600 };
      const request = { children: children.map((one) => one.id), until, ...limit };
      begin(awaitChildren(broker, LEAD, lease, awaitRequestSchema.parse(request)));
    };
    const perform = async ({ act, gateway, which, until, limited }: Step): Promise<void> => {
      const living = controlled.filter(({ isDead }) => !isDead);
      const { broker } = living[gateway % living.length] ?? controlled[0] ?? expect.unreachable();
      const child = children[which % children.length] ?? expect.unreachable();
      switch (act) {
        case "wait":
          return wait(broker, until, limited);
        case "end":
          return begin(
            reply(broker, SCOUT, child.lease, replyRequestSchema.parse({ state: "completed", text: "" })),
          );
        case "cancel a child":
          return begin(cancel(broker, LEAD, child.id, { cascade: true }));
        case "cancel":
          return begin(cancel(broker, ALICE, id, { cascade: true }));
        case "time limit":
          clock.offset_ms += 601_000;
          return begin(gateways[gateway]?.sweep.tick() ?? Promise.resolve());
        case "sweep":
          clock.offset_ms += TAKEN_OVER_MS;
          return begin(gateways[gateway]?.sweep.tick() ?? Promise.resolve());
        case "take": {
          for (let n = 0; n < REST; n += 1) await doOne();
          const [taken] = (await lead.lease("lead", { ...LEASE, wait_seconds: 0 })).body.leases;
          if (!taken) return;
          lease = taken.lease_id;
          return wait(broker, until, limited);
        }
        case "die": {
          if (living.length < 2) return;
          const dying = living[gateway];
          if (dying) dying.isDead = true;
          counts.died += 1;
          return;
        }
        case "do one thing":
          return doOne();
        case "rest":
          for (let n = 0; n < REST; n += 1) await doOne();
      }
    };
    for (const step of todo) await perform(step);

    // What is under way ends, and the living gateways do the rest.
    const ended = Promise.all(begun);
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver || scheduler.count() > 0) await doOne();
    for (const one of controlled) one.scheduler = undefined;
    const heal = async () => {
      for (let n = 0; n < 3; n += 1) {
        for (const { broker } of controlled) await Promise.all(broker.background);
        clock.offset_ms += TAKEN_OVER_MS;
        for (const [at, gateway] of gateways.entries())
          if (!controlled[at]?.isDead) await gateway.sweep.tick();
      }
    };
    for (const one of children) await lead.cancel(one.id);
    await heal();

    const { state } = (await alice.get(id)).body;
    const events = await eventsOf(alice, id);
    checkHistory(events, state === "canceled" ? "finished" : "live");
    const waits = events.filter(({ status }) => status === "awaiting").length;
    const resumes = events.filter(({ status }) => status === "resumed");
    expect(["submitted", "working", "canceled"], "every child has ended").toContain(state);
    if (state !== "canceled") expect(resumes, "one for each wait").toHaveLength(waits);
    await expectEnough(events, children);
    counts.resumed += resumes.length;
    counts.limited += resumes.filter((event) => "time_limit" in event).length;
    counts.canceled += state === "canceled" && waits > resumes.length ? 1 : 0;
    if (state === "submitted") {
      const again = (await lead.lease("lead", LEASE)).body.leases;
      expect(again).toMatchObject([{ delegation: { id } }]);
      if (resumes.length > 0) expect(again[0].awaited.children).toHaveLength(count);
    }
    expect((await lead.lease("lead", { wait_seconds: 0 })).body.leases).toEqual([]);
    if (state !== "canceled") await alice.cancel(id);
    checkHistory(await eventsOf(alice, id), "finished");
  }
  /** When it was queued again, as many children had ended as the wait said, unless its time was over. */
  async function expectEnough(events: readonly DelegationEvent[], children: readonly { id: string }[]) {
    const ends = await Promise.all(
      children.map(async (one) => (await eventsOf(lead, one.id)).at(-1)?.id ?? ""),
    );
    for (const [at, event] of events.entries()) {
      if (event.status !== "resumed" || event.time_limit) continue;
      const wait = events.slice(0, at).findLast(({ status }) => status === "awaiting");
      const ended = ends.filter((end) => isBefore(end, event.id)).length;
      expect(ended, "children that had ended").toBeGreaterThanOrEqual(
        wait?.status === "awaiting" ? wait.awaits.left : Number.POSITIVE_INFINITY,
      );
    }
  }
  return { walk, counts };
}

test("a parent that waits is queued again once, in any order of events", async () => {
  const { walk, counts } = await setup();
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.infiniteStream(fc.boolean()),
    fc.integer({ min: 1, max: 3 }),
    steps,
    walk,
  );
  await fc.assert(property, { seed: 1, numRuns: 150, endOnFailure: true });
  for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(0);
}, 120_000);

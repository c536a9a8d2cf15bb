/**
 * Random walks through one conversation of an agent that works on one delegation of it at a time: submits, leases,
 * replies, cancels, deadlines, sweeps and changes of the setting, at two gateways with one Redis. fast-check's scheduler
 * chooses the order in which the moves are executed and answered. A gateway may die after a move and before its answer.
 * Whatever the order, at most one is at work, in the order of acceptance, and in the end nothing is left in the line.
 */
import fc from "fast-check";
import { expect, vi } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import type { Broker } from "../../src/engine/broker.ts";
import { cancel } from "../../src/engine/delegations/cancel.ts";
import { delegate } from "../../src/engine/delegations/delegate.ts";
import { lease } from "../../src/engine/leases/lease.ts";
import { reply } from "../../src/engine/leases/reply.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { delegateRequestSchema, isTerminal } from "../../src/schema/delegation.ts";
import { leaseRequestSchema, replyRequestSchema } from "../../src/schema/lease.ts";
import { as, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";

const ACTS = [
  ...[
    "say",
    "say",
    "say",
    "take",
    "take",
    "take",
    "end",
    "end",
    "end",
    "cancel",
    "time",
    "time",
    "sweep",
    "sweep",
  ],
  ...["switch", "die", "do one thing", "do one thing", "do one thing", "rest"],
] as const;
const steps = fc.array(
  fc.record({ act: fc.constantFrom(...ACTS), gateway: fc.nat(1), which: fc.nat(3), short: fc.boolean() }),
  { minLength: 6, maxLength: 30 },
);
type Step = (typeof steps extends fc.Arbitrary<infer T> ? T : never)[number];

const SCOUT = toPrincipal("agent:scout");
const ALICE = toPrincipal("caller:alice");
const SPEC = { limits: { max_attempts: 2, lease_seconds: 3_600 }, backoff: { initial_ms: 0 } };
/** Longer than the pause after which the sweep looks at a ticket, or at a line, for the first time. */
const LOOK_MS = 6_000;
/** Longer than a lease, and than the deadline of some. */
const HOUR_MS = 3_601_000;
/** Answers, after which most walks have come to rest. */
const REST = 20;

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
    const take = broker.writer.take.bind(broker.writer);
    vi.spyOn(broker.writer, "move").mockImplementation((command, taker) =>
      this.#run(command.move, () => move(command, taker)),
    );
    vi.spyOn(broker.writer, "take").mockImplementation((taker) => this.#run("take", () => take(taker)));
  }

  async #run<T>(name: string, call: () => Promise<T>): Promise<T> {
    if (!this.scheduler) return call();
    await this.scheduler.schedule(Promise.resolve(), name);
    if (this.isDead && this.flip()) throw new Error("the gateway is dead");
    const result = await call();
    await this.scheduler?.schedule(Promise.resolve(), `${name} answered`);
    if (this.isDead) throw new Error("the gateway is dead");
    return result;
  }
}

/** The ids of the events of one shard, as numbers. */
function order(id: string): bigint {
  const [ms = "0", n = "0"] = id.split("-");
  return (BigInt(ms) << 64n) + BigInt(n);
}

async function setup() {
  // In one shard, the ids of events say their order.
  const first = await startBroker({ shards: 1, retentionMs: 365 * 24 * HOUR_MS });
  const second = await first.another();
  const { clock, redis } = first;
  const gateways = [first.gateway, second.gateway];
  const controlled = gateways.map((gateway) => new Controlled(gateway));
  const alice = await as(first.url, "caller:alice");
  const scout = await as(first.url, "agent:scout");
  const set = (serial: boolean) => scout.agent("scout", { ...SPEC, serial_by: serial ? "context" : null });
  await set(true);
  const counts = { admitted: 0, switched: 0, died: 0, expired: 0, lapsed: 0, canceled: 0 };
  let walks = 0;

  /** A walk that fails leaves nothing behind for the next one. */
  async function walk(...given: Parameters<typeof walkOnce>): Promise<void> {
    const [scheduler] = given;
    try {
      await walkOnce(...given);
    } finally {
      for (const one of controlled) one.scheduler = undefined;
      while (scheduler.count() > 0) await scheduler.waitOne();
      const { delegations } = (await alice.call("GET", "/v1/delegations?state=submitted,working")).body;
      for (const { id } of delegations) await alice.cancel(id);
      await set(true);
    }
  }

  async function walkOnce(scheduler: fc.Scheduler, flips: Iterator<boolean>, todo: readonly Step[]) {
    walks += 1;
    const context_id = `c${walks}`;
    let serial = true;
    let isSwitched = false;
    const leases: string[] = [];
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
    const all = async (): Promise<string[]> => {
      const { delegations } = (await alice.call("GET", `/v1/delegations?context_id=${context_id}&limit=100`))
        .body;
      return delegations.map(({ id }: { id: string }) => id);
    };
    const perform = async ({ act, gateway, which, short }: Step): Promise<void> => {
      const living = controlled.filter(({ isDead }) => !isDead);
      const { broker } = living[gateway % living.length] ?? controlled[0] ?? expect.unreachable();
      switch (act) {
        case "say": {
          const request = { target: "scout", task: "t", context_id, ...(short && { ttl_seconds: 3_000 }) };
          return begin(delegate(broker, ALICE, delegateRequestSchema.parse(request)));
        }
        case "take": {
          const request = leaseRequestSchema.parse({ wait_seconds: 0 });
          const taking = lease(broker, SCOUT, "scout", request, new AbortController().signal);
          return begin(
            taking.then((got) => {
              for (const { json } of got) leases.push(JSON.parse(json).lease_id);
            }),
          );
        }
        case "end": {
          const lease_id = leases[which % Math.max(1, leases.length)];
          if (lease_id === undefined) return;
          const failed = { state: "failed", error: { code: "broken", message: "no", retryable: true } };
          const body = short ? failed : { state: "completed", text: "" };
          return begin(reply(broker, SCOUT, lease_id, replyRequestSchema.parse(body)));
        }
        case "cancel": {
          const ids = await all();
          const id = ids[which % Math.max(1, ids.length)];
          return id === undefined ? undefined : begin(cancel(broker, ALICE, id, { cascade: true }));
        }
        case "time":
          clock.offset_ms += HOUR_MS;
          return begin(gateways[gateway]?.sweep.tick() ?? Promise.resolve());
        case "sweep":
          clock.offset_ms += LOOK_MS;
          return begin(gateways[gateway]?.sweep.tick() ?? Promise.resolve());
        case "switch":
          serial = !serial;
          isSwitched = true;
          counts.switched += 1;
          await set(serial);
          return;
        case "die": {
          const dying = living.length < 2 ? undefined : living[gateway];
          if (!dying) return;
          dying.isDead = true;
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

    // What is under way ends. Then workers do what is left; the living gateways sweep.
    let isOver = false;
    void Promise.all(begun).then(() => {
      isOver = true;
    });
    while (!isOver || scheduler.count() > 0) await doOne();
    for (const one of controlled) one.scheduler = undefined;
    const ids = await all();
    const isLive = async (id: string) => !isTerminal((await alice.get(id)).body.state);
    for (let rounds = 0; (await Promise.all(ids.map(isLive))).includes(true); rounds += 1) {
      expect(rounds, "rounds until all have ended").toBeLessThan(100);
      // A lease whose answer was lost lasts an hour.
      clock.offset_ms += rounds % 4 === 3 ? HOUR_MS : LOOK_MS;
      for (const [at, gateway] of gateways.entries())
        if (!controlled[at]?.isDead || controlled.every(({ isDead }) => isDead)) await gateway.sweep.tick();
      for (const { broker } of controlled) await Promise.all(broker.background);
      const got = (await scout.lease("scout", { wait_seconds: 0, max: 32 })).body.leases;
      if (serial && !isSwitched) expect(got.length, "at work at the same time").toBeLessThan(2);
      for (const lease_id of [...leases.splice(0), ...got.map((one: { lease_id: string }) => one.lease_id)])
        await scout.reply(lease_id);
    }

    const events = (await Promise.all(ids.map((id) => eventsOf(alice, id)))).map((own) => {
      checkHistory(own, "finished");
      return own;
    });
    if (!isSwitched) {
      const sent = [...events].sort((a, b) => (order(a[0]?.id ?? "") < order(b[0]?.id ?? "") ? -1 : 1));
      let ended = 0n;
      for (const own of sent) {
        const taken = own.find(({ status }) => status === "leased");
        const end = order(own.at(-1)?.id ?? "");
        if (taken) expect(order(taken.id) > ended, `${taken.delegation_id} after those before it`).toBe(true);
        if (end > ended) ended = end;
      }
    }
    const count = (status: string) => events.flat().filter((event) => event.status === status).length;
    counts.admitted += count("admitted");
    counts.lapsed += count("lease_expired");
    for (const own of events) {
      const last = own.at(-1);
      if (last?.type !== "DELEGATION_FAILED") continue;
      if (last.error.code === "deadline_exceeded") counts.expired += 1;
      if (last.state === "canceled") counts.canceled += 1;
    }
    expect(await redis.keys("*:line:*"), "lines of conversations that have ended").toEqual([]);
  }
  return { walk, counts };
}

const HAPPENINGS = ["admitted", "switched", "died", "expired", "lapsed", "canceled"] as const;

/** Makes walks; in all of them together, each of these things must have happened. */
export async function walkThroughConversations(
  seed: number,
  numRuns: number,
  happened: readonly (typeof HAPPENINGS)[number][] = HAPPENINGS,
): Promise<void> {
  const { walk, counts } = await setup();
  const property = fc.asyncProperty(fc.scheduler(), fc.infiniteStream(fc.boolean()), steps, walk);
  await fc.assert(property, { seed, numRuns, endOnFailure: true });
  for (const what of happened) expect(counts[what], what).toBeGreaterThan(0);
}

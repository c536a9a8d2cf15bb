/**
 * Random walks through the hand-off: answers that are late, out of order or lost; late wakes; submits that match a
 * poll; drains; blocked agents; polls that leave; one or two gateways on one queue. The hand-off is the real one;
 * Redis, the feed and pub/sub are models, because only the order of events is under test. fast-check's scheduler
 * chooses that order, and shrinks it when a walk fails. A gateway may die: its sweep and the end of its leases repair
 * what it began, but a wake must not need them. One file, because only this walk uses the models. Limit: time
 * advances only to the next thing that is due.
 */
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Granted, Handoff, type HandoffOptions } from "../../../src/engine/leases/handoff.ts";
import type { LeaseRef, Offer } from "../../../src/engine/leases/in-doubt.ts";
import { WaitingPoll } from "../../../src/engine/leases/waiting-poll.ts";
import { toEntry } from "../../../src/events/entry.ts";
import type { Sink } from "../../../src/events/feed.ts";
import type { Command, Taker } from "../../../src/lifecycle/command.ts";
import type { Moved, Result } from "../../../src/lifecycle/outcome.ts";
import type { MoveName } from "../../../src/lifecycle/states.ts";
import { storedFrom } from "../../../src/lifecycle/stored-delegation.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { entryFields } from "../../support/entry.ts";

/** Longer than a walk: only wakes may help. */
const RECHECK_MS = 1e9;
const AGENT = "scout";
const REQUEST = { wait_seconds: 1_000_000, max: 1 };
/** A stale ticket. */
const STALE = 0;
/** A record of which only the id matters here; every other field reads "working". */
const recordOf = (id: string) =>
  storedFrom(id, Array(100).fill("working"), { history: [], artifacts: new Map() });

const settled = () => new Promise((resolve) => setImmediate(resolve));
const shards = new Shards(1);

const refused = (outcome: Result["outcome"]): Result => ({ outcome, record: null, unseen: [] });
const live = () => ({ now: Date.now(), version: 1, target: AGENT, ticket: 1, attempt: 1, created_at: 0 });
const moved = (move: MoveName, more: Partial<Moved> = {}): Moved => ({
  ...live(),
  kind: "ok",
  move,
  state: "submitted",
  fence: 0,
  ...more,
});

/** One gateway: the real hand-off, and a feed that delivers the events in order, at any time. */
class Gateway {
  readonly handoff: Handoff;
  /** It sends and receives nothing more. What it had sent may still be executed. */
  isDead = false;
  #sink: Sink | null = null;
  #brought = 0;
  readonly #walk: Walk;

  constructor(walk: Walk) {
    this.#walk = walk;
    const options: HandoffOptions = {
      shards,
      clock: { offset_ms: 0 },
      writer: {
        move: (command, taker) => walk.command(this, () => walk.submitted(this, command, taker)),
        take: (taker) => {
          walk.fetches += 1;
          return walk.command(this, () => walk.takeFirst(this, taker));
        },
        underWay: () => undefined,
        onMoved: () => {},
      },
      tickets: { add: (_, data) => walk.command(this, () => walk.add(data.ticket)) },
      feed: {
        subscribe: (_, sink) => {
          this.#sink = sink;
          return () => {};
        },
        mayHaveDelivered: () => true,
      },
      broadcast: (wake) => walk.broadcast(this, wake.kind === "ticket" && wake.drain),
      pushAgents: { wake: () => {}, recheckAll: () => {} },
      findGrants: (_, grants) => walk.command(this, () => walk.findGrants(grants.map(({ nonce }) => nonce))),
      returnLease: async (lease) => {
        const event_id = await walk.command(this, () => walk.giveBack(lease));
        if (event_id !== null) this.handoff.wakeUnlessPublished(AGENT, event_id);
      },
      onReturn: () => {},
      warn: () => {},
      polls: {
        onError: () => {},
        recheckMs: RECHECK_MS,
        findQueued: (agents) =>
          walk.command(this, () => (walk.ready.length + walk.delayed.length > 0 ? agents : [])),
      },
    };
    this.handoff = new Handoff(options);
    this.handoff.start();
  }

  /** Delivers what one read returns: the next event, and perhaps some that follow. */
  bringNext(): void {
    if (this.isDead) return;
    do {
      const event = this.#walk.events[this.#brought];
      if (!event) return;
      this.#brought += 1;
      const { matched, ...entry } = event;
      const fields = [...entryFields({ ...entry, target: AGENT }), ...(matched ? ["m", ""] : [])];
      this.#sink?.push(toEntry(0, `${this.#brought}-0`, fields));
    } while (this.#walk.flip());
  }

  /** The feed lost the events that it had not delivered yet. */
  gap(): void {
    this.#brought = this.#walk.events.length;
    this.#sink?.gap();
  }
}

interface Step {
  readonly act: Act;
  readonly gateway: number;
  readonly times: number;
  readonly fate: number;
  readonly ms: number;
}

/** Part of every walk; the number is how often each is chosen. */
const ALWAYS = [
  ["do one thing", 6],
  ["poll", 3],
  ["submit", 3],
] as const;
/** Part of some walks only, because most of them hide a lost wake by another one. */
const SOMETIMES = [
  "rest",
  "leave a poll",
  "add tickets without an event",
  "add tickets with one wake",
  "wake without a ticket",
  "lose wakes",
  "block or unblock",
  "reach or leave the limit of work",
  "fail or heal",
  "let time pass",
  "reclaim work",
  "a gateway dies",
] as const;
type Act = (typeof ALWAYS)[number][0] | (typeof SOMETIMES)[number];

const always = ALWAYS.flatMap(([act, weight]) => Array<Act>(weight).fill(act));
const steps = fc.subarray([...SOMETIMES], { maxLength: 4 }).chain((sometimes) =>
  fc.array(
    fc.record({
      act: fc.constantFrom(...always, ...sometimes),
      gateway: fc.nat(1),
      times: fc.integer({ min: 1, max: 3 }),
      fate: fc.nat(9),
      ms: fc.nat(500),
    }),
    { minLength: 5, maxLength: 25, size: "max" },
  ),
);

interface EventOf {
  readonly type: string;
  readonly delegation_id: string;
  readonly status?: string;
  readonly matched?: boolean;
}

const never = <T>(): Promise<T> => new Promise(() => {});

class Walk {
  readonly gateways: readonly Gateway[];
  readonly #scheduler: fc.Scheduler;
  readonly #flips: Iterator<boolean>;
  /** The polls of living gateways. */
  readonly polls = new Map<AbortController, Gateway>();
  /** Tickets in the queue, in order. */
  readonly ready: number[] = [];
  readonly delayed: { ticket: number; at: number }[] = [];
  readonly leases = new Map<string, { ticket: number; fence: number; nonce: string; from: Gateway }>();
  /** Delegations whose old holder reclaimed them: their tickets are stale. */
  readonly reclaimed = new Set<string>();
  /** Leases that a poll has received. */
  readonly received = new Set<string>();
  readonly events: EventOf[] = [];
  /** The delegations of tickets whose submits had other ids. */
  readonly #ids = new Map<number, string>();
  blocked = false;
  /** The agent works on as much as it may. */
  full = false;
  failing = false;
  made = 0;
  fences = 0;
  matched = 0;
  fetches = 0;
  /** Polls that ended with nothing although they had not left and no fetch of theirs had failed. */
  dropped = 0;
  /** Everything that may cause fetches. */
  stirs = 0;

  constructor(scheduler: fc.Scheduler, flips: Iterator<boolean>, count: number) {
    this.#scheduler = scheduler;
    this.#flips = flips;
    this.gateways = Array.from({ length: count }, () => new Gateway(this));
  }

  #later(label: string): Promise<void> {
    return this.#scheduler.schedule(Promise.resolve(), label);
  }

  flip(): boolean {
    return this.#flips.next().value === true;
  }

  get isBlocked(): boolean {
    return this.blocked || this.full;
  }

  /** The agent finished something, so it may take more. Its event is the only wake. */
  free(): void {
    this.full = false;
    this.stirs += 1;
    this.#write({ type: "DELEGATION_COMPLETE", delegation_id: "dlg_0_other" });
  }

  get living(): readonly Gateway[] {
    return this.gateways.filter(({ isDead }) => !isDead);
  }

  /** Executed at one moment and answered at a later one, unless Redis or the gateway fails in between, or before. */
  async command<T>(from: Gateway, work: () => T): Promise<T> {
    if (from.isDead) return never();
    await this.#later("command");
    const isLost = this.failing;
    if (isLost && this.flip()) throw new Error("Command timed out");
    if (from.isDead && this.flip()) return never();
    const result = work();
    await this.#later("answer");
    if (from.isDead) return never();
    if (isLost) throw new Error("Command timed out");
    return result;
  }

  broadcast(from: Gateway, drain: boolean): Promise<void> {
    if (from.isDead) return never();
    this.stirs += 1;
    for (const gateway of this.gateways) {
      if (gateway === from) continue;
      void this.#later("wake").then(() => gateway.isDead || gateway.handoff.wakeHere(AGENT, drain));
    }
    return Promise.resolve();
  }

  submitted(from: Gateway, { id, params = {} }: Command, taker?: Taker): Result {
    const { fate, delay_ms = 0 } = params;
    if (taker) this.matched += 1;
    if (fate === 0) return refused({ kind: "full", now: Date.now() });
    // Another ticket comes first, and is stale.
    if (fate === 2) this.ready.unshift(STALE);
    // Another ticket comes first, and its wake was for a poll that is gone.
    if (fate === 4 && taker) {
      this.made += 1;
      this.ready.unshift(this.made);
    }
    this.made += 1;
    const ticket = this.made;
    this.#ids.set(ticket, id);
    const isFirst = taker !== undefined && delay_ms === 0 && !this.isBlocked && this.#isFirst();
    const event_id = this.event(ticket, isFirst);
    const ready_at = Date.now() + Number(delay_ms);
    // The queue refuses the ticket, or the take fails. A failure of the take undoes nothing.
    const ticketed = fate !== 1 && !(isFirst && fate === 3);
    const outcome = moved("submit", { ticket, event_id, ready_at, ticketed });
    if (!ticketed) return { outcome, record: null, unseen: [] };
    if (delay_ms === 0) this.ready.push(ticket);
    else this.delayed.push({ ticket, at: ready_at });
    const taken = taker && delay_ms === 0 && fate !== 3 ? this.takeFirst(from, taker) : undefined;
    return { outcome, record: null, unseen: [], ...(taken && { taken }) };
  }

  /** Adds the event of a new ticket. */
  event(ticket: number, matched = false): string {
    this.stirs += 1;
    return this.#write({ type: "DELEGATION_SENT", delegation_id: this.#idOf(ticket), matched });
  }

  /** Whether a ticket that is added now is the first. */
  #isFirst(): boolean {
    return this.ready.length === 0 && this.delayed.every(({ at }) => at > Date.now());
  }

  #idOf(ticket: number): string {
    return this.#ids.get(ticket) ?? `dlg_0_${ticket}`;
  }

  #write(event: EventOf): string {
    this.events.push(event);
    for (const gateway of this.gateways) void this.#later("event").then(() => gateway.bringNext());
    return `${this.events.length}-0`;
  }

  takeFirst(from: Gateway, { nonce }: Taker): Result {
    const now = Date.now();
    if (this.isBlocked) return refused({ kind: "blocked", why: "paused", now });
    for (const due of this.delayed.filter(({ at }) => at <= now)) {
      this.delayed.splice(this.delayed.indexOf(due), 1);
      this.ready.push(due.ticket);
    }
    const ticket = this.ready.shift();
    if (ticket === STALE || this.isReclaimed(ticket))
      return refused({ ...live(), kind: "ticket", state: "submitted", fence: 0 });
    if (ticket === undefined) {
      const next = Math.min(...this.delayed.map(({ at }) => at));
      return refused({ kind: "empty", now, ...(Number.isFinite(next) && { next_due_at: next }) });
    }
    const id = this.#idOf(ticket);
    expect(this.leases.has(id), "one lease for each ticket").toBe(false);
    this.fences += 1;
    const fence = this.fences;
    this.leases.set(id, { ticket, fence, nonce, from });
    this.#write({ type: "DELEGATION_STATUS", delegation_id: id, status: "leased" });
    return { outcome: moved("lease", { id, state: "working", fence }), record: recordOf(id), unseen: [] };
  }

  readonly isReclaimed = (ticket: number | undefined): boolean =>
    ticket !== undefined && this.reclaimed.has(this.#idOf(ticket));

  /** Its ticket may stay in the queue for a while. */
  reclaim(): void {
    const ticket = this.ready.find((one) => one !== STALE && !this.isReclaimed(one));
    if (ticket === undefined) return;
    this.reclaimed.add(this.#idOf(ticket));
    if (this.flip()) this.ready.splice(this.ready.indexOf(ticket), 1);
    this.#write({ type: "DELEGATION_STATUS", delegation_id: this.#idOf(ticket), status: "reclaimed" });
  }

  /** The same ticket added twice is one ticket. */
  add(ticket: number): void {
    const isKnown = this.leases.has(this.#idOf(ticket)) || this.ready.includes(ticket);
    if (!isKnown) this.ready.push(ticket);
  }

  findGrants(nonces: readonly string[]): LeaseRef[] {
    return [...this.leases].flatMap(([delegation_id, { nonce, fence }]) =>
      nonces.includes(nonce) ? [{ delegation_id, fence }] : [],
    );
  }

  /** Adds the ticket's event; null if the lease had ended. */
  giveBack({ delegation_id, fence }: LeaseRef): string | null {
    const lease = this.leases.get(delegation_id);
    if (lease?.fence !== fence) return null;
    this.leases.delete(delegation_id);
    this.ready.unshift(lease.ticket);
    return this.event(lease.ticket);
  }

  async #submit({ handoff }: Gateway, { fate, ms }: Step): Promise<void> {
    this.stirs += 1;
    const id = `dlg_0_s${this.stirs}`;
    const params = { fate, delay_ms: fate > 7 ? 1 + ms : 0 };
    const { outcome } = await handoff.submit(AGENT, { move: "submit", id, params });
    if (outcome.kind !== "ok" || outcome.ticketed) return;
    await handoff.offer(this.#offerOf(outcome.ticket));
  }

  #offerOf(ticket: number): Offer {
    const order = { priority: 5, returned: false, delay_ms: 0 };
    return { agent: AGENT, data: { delegation_id: `dlg_0_${ticket}`, ticket }, order };
  }

  async #poll(gateway: Gateway): Promise<void> {
    const { handoff } = gateway;
    this.stirs += 1;
    const leaving = new AbortController();
    this.polls.set(leaving, gateway);
    const poll = new WaitingPoll(handoff, AGENT, REQUEST, leaving.signal);
    const granted = await new Promise<Granted | null>((settle) => poll.wait(settle)).catch(
      () => "failed" as const,
    );
    this.polls.delete(leaving);
    if (granted === "failed" || gateway.isDead) return;
    if (granted === null) {
      if (!leaving.signal.aborted) this.dropped += 1;
      return;
    }
    const { id } = granted.record;
    const { fence } = granted.outcome;
    if (leaving.signal.aborted) await handoff.inDoubt.returnLease({ delegation_id: id, fence });
    else this.received.add(id);
  }

  perform(step: Step): void | Promise<void> {
    const gateway = this.living[step.gateway % this.living.length];
    if (!gateway) throw new RangeError("no gateway");
    const { handoff } = gateway;
    switch (step.act) {
      case "do one thing":
        return this.#next();
      case "rest":
        return this.rest();
      case "poll":
        return void this.#poll(gateway);
      case "submit":
        return void this.#submit(gateway, step).catch(() => {});
      case "leave a poll":
        return [...this.polls.keys()][step.ms % this.polls.size]?.abort();
      case "add tickets without an event":
        for (let n = step.fate; n >= 0; n -= 3) {
          this.made += 1;
          void handoff.offer(this.#offerOf(this.made));
        }
        return;
      case "add tickets with one wake":
        for (let n = step.fate; n >= 0; n -= 3) {
          this.made += 1;
          this.ready.push(this.made);
        }
        return handoff.wakeEverywhere(AGENT);
      case "wake without a ticket":
        return handoff.wakeEverywhere(AGENT, step.fate > 4);
      case "lose wakes":
        this.stirs += 1;
        return gateway.gap();
      case "block or unblock":
        this.blocked = !this.blocked;
        if (!this.blocked) handoff.wakeEverywhere(AGENT);
        return;
      case "reach or leave the limit of work":
        if (this.full) this.free();
        else this.full = true;
        return;
      case "fail or heal":
        this.failing = !this.failing;
        return;
      case "reclaim work":
        return this.reclaim();
      case "a gateway dies":
        return this.#kill(gateway);
      case "let time pass":
        vi.advanceTimersByTime(step.ms);
    }
  }

  #kill(gateway: Gateway): void {
    if (this.living.length === 1) return;
    gateway.isDead = true;
    for (const [poll, at] of this.polls) if (at === gateway) this.polls.delete(poll);
  }

  /** What happens later because a gateway died: its leases end, and the sweep adds the tickets that it did not. */
  afterDeath(): void {
    const [living] = this.living;
    for (const [delegation_id, { fence, from }] of this.leases) {
      if (from.isDead && !this.received.has(delegation_id)) this.giveBack({ delegation_id, fence });
    }
    const queued = new Set([...this.ready, ...this.delayed.map(({ ticket }) => ticket)]);
    for (let ticket = 1; ticket <= this.made; ticket += 1) {
      const isTaken = this.leases.has(this.#idOf(ticket)) || this.isReclaimed(ticket);
      if (!isTaken && !queued.has(ticket)) void living?.handoff.offer(this.#offerOf(ticket));
    }
  }

  async #next(): Promise<void> {
    if (this.#scheduler.count() > 0) await this.#scheduler.waitNext(1);
  }

  /** Completes everything in flight. */
  async rest(): Promise<void> {
    for (let n = 0; n < 3_000; n += 1) {
      await settled();
      if (this.#scheduler.count() === 0) return;
      await this.#next();
    }
    throw new Error("it never comes to rest");
  }

  /** Redis answers again, and nothing stays in doubt. */
  async heal(): Promise<void> {
    this.failing = false;
    await this.rest();
    const isInDoubt = () =>
      this.living.some(({ handoff: { inDoubt } }) => {
        return inDoubt.grants.size + inDoubt.offers.length + inDoubt.returns.length > 0;
      });
    for (let rounds = 0; isInDoubt(); rounds += 1) {
      expect(rounds, "rounds of recovery").toBeLessThan(30);
      vi.advanceTimersByTime(500);
      await this.rest();
    }
  }
}

async function check(walk: Walk): Promise<void> {
  await walk.heal();
  if (walk.isBlocked) {
    const before = walk.fetches;
    await walk.rest();
    expect(walk.fetches, "no fetches while blocked").toBe(before);
  }
  if (walk.blocked) {
    walk.blocked = false;
    walk.living[0]?.handoff.wakeEverywhere(AGENT);
    await walk.rest();
  }
  if (walk.full) walk.free();
  await walk.rest();
  vi.advanceTimersByTime(1_000);
  await walk.rest();
  expectNoPollWaits(walk);
  const { polls, living, leases, received } = walk;
  if (living.length < walk.gateways.length) {
    walk.afterDeath();
    await walk.rest();
    expectNoPollWaits(walk);
  }
  expect(walk.dropped, "polls that ended without a reason").toBe(0);
  const lost = [...leases].filter(([id, { from }]) => !received.has(id) && !from.isDead);
  expect(lost, "lost leases").toEqual([]);
  const parked = living.map(({ handoff }) => handoff.polls.countAll());
  expect(parked.reduce((sum, count) => sum + count, 0)).toBe(polls.size);
  for (const leaving of polls.keys()) leaving.abort();
  await walk.rest();
  expect(living.flatMap(({ handoff }) => handoff.polls.agents())).toEqual([]);
  // Each cause costs a fetch at each gateway, and each poll some of its own.
  expect(walk.fetches, "fetches").toBeLessThan(8 * walk.stirs + 20);
}

function expectNoPollWaits({ polls, ready, delayed, living, isReclaimed }: Walk): void {
  const parked = living.map(({ handoff }) => handoff.polls.countAll());
  const waiting = ready.filter((ticket) => !isReclaimed(ticket)).length + delayed.length;
  expect(waiting > 0 && polls.size > 0, `${parked} polls parked while ${waiting} tickets wait`).toBe(false);
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
  });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each(Array.from({ length: 5 }, (_, seed) => seed))(
  "no poll stays parked while a ticket waits and no lease is lost, in any order of events: seed %i",
  async (seed) => {
    let matched = 0;
    let walks = 0;
    const property = fc.asyncProperty(
      fc.scheduler(),
      fc.infiniteStream(fc.boolean()),
      fc.integer({ min: 1, max: 2 }),
      steps,
      async (scheduler, flips, gateways, todo) => {
        const walk = new Walk(scheduler, flips, gateways);
        try {
          for (const step of todo) {
            for (let n = 0; n < step.times; n += 1) {
              await walk.perform(step);
              await settled();
            }
          }
          await check(walk);
          matched += walk.matched;
        } finally {
          for (const { handoff } of walk.gateways) handoff.stop();
        }
        walks += 1;
        // Hundreds of timers would slow down all fake ones, so only some walks keep theirs to the end.
        if (walks % 25 !== 0 || walk.living.length < gateways) vi.clearAllTimers();
      },
    );
    await fc.assert(property, { seed, numRuns: 500 });
    expect(matched).toBeGreaterThan(200);
    // Nothing is kept about queues without a poll.
    vi.advanceTimersByTime(2 * RECHECK_MS);
    expect(vi.getTimerCount()).toBe(0);
  },
  180_000,
);

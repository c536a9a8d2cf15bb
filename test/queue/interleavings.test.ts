/**
 * Random walks over everything that can meet in the claimers: looks that answer late and out of order, tickets told of
 * late, work that a lent poll takes where it is made, drains, holds, failures, polls that leave, on one or two gateways
 * over one queue. The queue is a model, for the order is what is under test; so is the glue between a submit and its
 * poll (engine/delegations/delegate.ts). Limit: time stands still but for what falls due.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Told } from "../../src/engine/leases/handoff.ts";
import { toEntry } from "../../src/events/entry.ts";
import type { Sink } from "../../src/events/feed.ts";
import { type Look, ParkedPolls } from "../../src/queue/parked-polls.ts";
import { Shards } from "../../src/redis/shards.ts";
import { entryFields } from "../support/entry.ts";
import { randomOf } from "../support/random.ts";

/** Never within a walk: nothing but the wakes may help. */
const RECHECK_MS = 1e9;

const AGENT = "scout";
const MOST_STEPS = 20;

const settled = () => new Promise((resolve) => setImmediate(resolve));

type Found = number | "held";
type Kind = "command" | "answer" | "wake";
/** Null: the first ticket was worth nothing, and is gone. */
type Seen = Look<Found> | null;
type Brought = { readonly seen: Seen };

/** A ticket that is worth nothing. */
const VOID = 0;

/** Claimers, what they are told, and a feed that brings the events in their order, at any time. */
class Gateway {
  readonly claimers = new ParkedPolls<string, Brought>({ onError: () => {}, recheckMs: RECHECK_MS });
  readonly told: Told;
  readonly #events: string[] = [];
  #sink: Sink | null = null;
  #brought = 0;

  constructor(tell: () => void) {
    const feed = {
      subscribe: (_: unknown, sink: Sink) => {
        this.#sink = sink;
        return () => {};
      },
      hasBrought: (_: number, id: string) => Number.parseInt(id, 10) <= this.#brought,
    };
    const wakers = {
      wake: (agent: string, drain?: boolean) => this.claimers.wake(agent, drain),
      wakeAll: () => this.claimers.wakeAll(),
    };
    this.told = new Told(wakers, feed, new Shards(1), tell);
    this.told.start();
  }

  event(delegation_id: string): void {
    this.#events.push(delegation_id);
  }

  bringNext(): void {
    const delegation_id = this.#events[this.#brought];
    this.#brought += 1;
    const fields = entryFields({
      type: "DELEGATION_SENT",
      delegation_id: delegation_id ?? "",
      target: AGENT,
    });
    this.#sink?.push(toEntry(0, `${this.#brought}-0`, fields));
  }
}

class Walk {
  readonly random: (below: number) => number;
  readonly gateways: Gateway[] = [];
  /** What is on its way. Any of it may be next. */
  readonly pending: Record<Kind, (() => void)[]> = { command: [], answer: [], wake: [] };
  readonly polls = new Set<AbortController>();
  readonly taken: number[] = [];
  readonly ready: number[] = [];
  readonly delayed: { ticket: number; at: number }[] = [];
  held = false;
  failing = false;
  made = 0;
  lent = 0;
  events = 0;
  looks = 0;
  /** Polls that were ended although they had not left and no look of theirs had failed. */
  dropped = 0;
  stirs = 0;

  constructor(seed: number) {
    this.random = randomOf(seed);
    for (let n = this.random(2); n < 2; n += 1) this.gateways.push(new Gateway(() => this.tell(false)));
  }

  later<T>(kind: Kind, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.pending[kind].push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  tell(drain: boolean): void {
    for (const { claimers } of this.gateways) void this.later("wake", () => claimers.wake(AGENT, drain));
    this.stirs += 1;
  }

  #takeFirst(): Seen {
    const now = Date.now();
    if (this.held) return { found: "held", held: true };
    for (const due of this.delayed.filter(({ at }) => at <= now)) {
      this.delayed.splice(this.delayed.indexOf(due), 1);
      this.ready.push(due.ticket);
    }
    const found = this.ready.shift() ?? null;
    if (found === VOID) return null;
    if (found !== null) this.taken.push(found);
    const next = Math.min(...this.delayed.map(({ at }) => at));
    return { found, next_due_at: found === null && Number.isFinite(next) ? next : null };
  }

  /** Carried out at one moment, answered at a later one; as the engine does it, until there is something or nothing. */
  async look(brought?: Brought): Promise<Look<Found>> {
    if (brought?.seen) return brought.seen;
    for (;;) {
      this.looks += 1;
      const seen = await this.later("command", () => {
        if (this.failing) throw new Error("not answered");
        return this.#takeFirst();
      });
      const answered = await this.later("answer", () => seen);
      if (answered) return answered;
    }
  }

  /** New work, perhaps with a poll to take it: one command, that may be refused or not heard of. */
  async submit({ claimers, told }: Gateway): Promise<void> {
    this.stirs += 1;
    const id = `dlg_${this.stirs}`;
    const delay_ms = this.random(4) === 0 ? 1 + this.random(500) : 0;
    const fate = this.random(8);
    const lent = claimers.lend(AGENT);
    if (lent) {
      this.lent += 1;
      told.bring(id);
    }
    const made = this.later("command", (): { event_id: string | null; taken?: Seen } => {
      if (this.failing && fate < 4) throw new Error("not carried out");
      if (fate === 0) return { event_id: null };
      if (fate === 1 || fate === 3) this.ready.unshift(VOID);
      this.ticket(delay_ms);
      const event_id = this.#event(id);
      // What failed in the taking of it undoes nothing.
      const taken = lent && delay_ms === 0 && fate !== 2 ? this.#takeFirst() : undefined;
      if (!this.failing) return { event_id, ...(taken !== undefined && { taken }) };
      const ghost = taken?.found;
      if (typeof ghost === "number") void this.later("command", () => this.#giveBack(ghost));
      throw new Error("carried out, and not answered");
    });
    const moving = made.then((answer) => this.later("answer", () => answer));
    const taking = moving.then(
      ({ taken }) => (taken === undefined ? null : { seen: taken }),
      () => null,
    );
    lent?.done(
      taking.then((taken) => {
        if (taken === null) told.notTaken(AGENT, id);
        return taken;
      }),
    );
    const { event_id, taken } = await moving.catch(() => ({ event_id: null, taken: undefined }));
    if (event_id !== null && taken === undefined) told.by(AGENT, event_id);
  }

  #event(id: string): string {
    for (const gateway of this.gateways) {
      gateway.event(id);
      void this.later("wake", () => gateway.bringNext());
    }
    this.events += 1;
    return `${this.events}-0`;
  }

  /** A lease that nobody heard of. */
  #giveBack(ticket: number): void {
    this.taken.splice(this.taken.indexOf(ticket), 1);
    this.ready.unshift(ticket);
    this.tell(false);
  }

  async poll({ claimers }: Gateway): Promise<void> {
    this.stirs += 1;
    const leaving = new AbortController();
    const { signal } = leaving;
    this.polls.add(leaving);
    let failed = false;
    const look = (brought?: Brought) =>
      this.look(brought).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    let found: Found | null = null;
    do {
      const park: boolean = found === "held";
      const parked: Promise<Found | null> = claimers.claim(AGENT, { signal, look, terms: AGENT, park });
      // As the engine does it: asked once parked.
      if (park) void this.later("answer", () => this.held).then((held) => held || this.tell(true));
      found = await parked.catch(() => null);
    } while (found === "held" && !signal.aborted);
    if (found === null && !failed && !signal.aborted) this.dropped += 1;
    this.polls.delete(leaving);
  }

  ticket(delay_ms = 0): void {
    this.made += 1;
    if (delay_ms === 0) this.ready.push(this.made);
    else this.delayed.push({ ticket: this.made, at: Date.now() + delay_ms });
  }

  readonly #acts: readonly (() => void | Promise<void>)[] = [
    () => this.rest(),
    () => this.next("command"),
    () => this.next("answer"),
    () => this.next("wake"),
    () => void this.poll(this.#anyGateway()),
    () => void this.submit(this.#anyGateway()),
    // Several at once that are told of as one: a gap, a burst that falls due.
    () => {
      for (let n = this.random(4); n >= 0; n -= 1) this.ticket();
      this.tell(true);
    },
    // Told of, but whoever asked without waiting has had it.
    () => this.tell(false),
    () => {
      this.held = !this.held;
      if (!this.held) this.tell(true);
    },
    () => {
      this.failing = !this.failing;
    },
    () => [...this.polls][this.random(this.polls.size)]?.abort(),
    () => void vi.advanceTimersByTime(this.random(200)),
  ];

  /** Each walk has its own mind, and does a thing several times: what heals (a drain, a hold) is not in all of them. */
  steps(): (() => void | Promise<void>)[] {
    const bag = this.#acts.flatMap((act, n) =>
      Array(n < 6 ? 1 + this.random(4) : this.random(3) >> 1).fill(act),
    );
    return Array.from({ length: 5 + this.random(MOST_STEPS) }, () => bag[this.random(bag.length)]).flatMap(
      (act) => Array(1 + this.random(3)).fill(act),
    );
  }

  #anyGateway(): Gateway {
    const gateway = this.gateways[this.random(this.gateways.length)];
    if (!gateway) throw new RangeError("no gateway");
    return gateway;
  }

  next(kind: Kind): void {
    const pending = this.pending[kind];
    pending.splice(this.random(pending.length), 1)[0]?.();
  }

  /** All that is under way ends. */
  async rest(): Promise<void> {
    for (let n = 0; n < 3_000; n += 1) {
      await settled();
      const kinds = (["command", "answer", "wake"] as const).filter((kind) => this.pending[kind].length > 0);
      const kind = kinds[this.random(kinds.length)];
      if (kind === undefined) return;
      this.next(kind);
    }
    throw new Error("it never comes to rest");
  }
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
  });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each(Array.from({ length: 5 }, (_, n) => n))(
  "no poll stays parked while a ticket waits, whatever meets, and nobody looks without end: seeds %i000 and on",
  async (thousand) => {
    let lent = 0;
    for (let seed = thousand * 1_000; seed < (thousand + 1) * 1_000; seed += 1) {
      const walk = new Walk(seed);
      for (const step of walk.steps()) {
        await step();
        await settled();
      }
      walk.failing = false;
      await walk.rest();
      // What was held is handed out again.
      if (walk.held) {
        const before = walk.looks;
        await walk.rest();
        expect(walk.looks, `seed ${seed}: looks although it is held`).toBe(before);
        walk.held = false;
        walk.tell(true);
      }
      await walk.rest();
      vi.advanceTimersByTime(1_000);
      await walk.rest();
      const parked = walk.gateways.map(({ claimers }) => claimers.parked());
      const waiting = walk.ready.length + walk.delayed.length;
      lent += walk.lent;
      expect(waiting > 0 && walk.polls.size > 0, `seed ${seed}: ${parked} parked, ${waiting} wait`).toBe(
        false,
      );
      expect(walk.dropped, `seed ${seed}: polls dropped`).toBe(0);
      expect(new Set(walk.taken).size, `seed ${seed}: each once`).toBe(walk.taken.length);
      expect(
        parked.reduce((sum, polls) => sum + polls, 0),
        `seed ${seed}`,
      ).toBe(walk.polls.size);
      for (const leaving of walk.polls) leaving.abort();
      await walk.rest();
      expect(
        walk.gateways.flatMap(({ claimers }) => [...claimers.agents()]),
        `seed ${seed}`,
      ).toEqual([]);
      // Each stir costs a look at each gateway, each poll some of its own.
      expect(walk.looks, `seed ${seed}: looks`).toBeLessThan(8 * walk.stirs + 20);
    }
    expect(lent).toBeGreaterThan(200);
    // What was known of queues without a poll is forgotten.
    vi.advanceTimersByTime(2 * RECHECK_MS);
    expect(vi.getTimerCount()).toBe(0);
  },
  180_000,
);

/**
 * Random walks over everything that can meet in the claimers: looks that answer late and out of order, tickets told of
 * late, drains, holds, failures, polls that leave, on one or two gateways over one queue. The queue is a model, for the order is
 * what is under test. Limit: time stands still but for what falls due.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Claimers, type Look } from "../../src/queue/claimers.ts";

const AGENT = "scout";
const MOST_STEPS = 20;

/** mulberry32: the same walk for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

type Found = number | "held";
type Kind = "command" | "answer" | "wake";

class Walk {
  readonly random: (below: number) => number;
  readonly gateways: Claimers[] = [];
  /** What is on its way. Any of it may be next. */
  readonly pending: Record<Kind, (() => void)[]> = { command: [], answer: [], wake: [] };
  readonly polls = new Set<AbortController>();
  readonly taken: number[] = [];
  readonly ready: number[] = [];
  readonly delayed: { ticket: number; at: number }[] = [];
  held = false;
  failing = false;
  made = 0;
  looks = 0;
  stirs = 0;

  constructor(seed: number) {
    this.random = randomOf(seed);
    for (let n = this.random(2); n < 2; n += 1)
      this.gateways.push(new Claimers({ onError: () => {}, recheckMs: 1e9 }));
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
    for (const claimers of this.gateways) void this.later("wake", () => claimers.wake(AGENT, drain));
    this.stirs += 1;
  }

  /** Carried out at one moment, answered at a later one. */
  async look(): Promise<Look<Found>> {
    this.looks += 1;
    const seen = await this.later("command", (): Look<Found> => {
      const now = Date.now();
      if (this.failing) throw new Error("not answered");
      if (this.held) return { found: "held", held: true };
      for (const due of this.delayed.filter(({ at }) => at <= now)) {
        this.delayed.splice(this.delayed.indexOf(due), 1);
        this.ready.push(due.ticket);
      }
      const found = this.ready.shift() ?? null;
      if (found !== null) this.taken.push(found);
      const next = Math.min(...this.delayed.map(({ at }) => at));
      return { found, next_due_at: found === null && Number.isFinite(next) ? next : null };
    });
    return this.later("answer", () => seen);
  }

  async poll(claimers: Claimers): Promise<void> {
    this.stirs += 1;
    const leaving = new AbortController();
    const { signal } = leaving;
    this.polls.add(leaving);
    const look = () => this.look();
    let found: Found | null = null;
    do {
      const park: boolean = found === "held";
      const parked: Promise<Found | null> = claimers.claim<Found>(AGENT, { signal, look, park });
      // As the engine does it: asked once parked.
      if (park) void this.later("answer", () => this.held).then((held) => held || this.tell(true));
      found = await parked.catch(() => null);
    } while (found === "held" && !signal.aborted);
    this.polls.delete(leaving);
  }

  ticket(delay_ms = 0): void {
    this.made += 1;
    if (delay_ms === 0) this.ready.push(this.made);
    else this.delayed.push({ ticket: this.made, at: Date.now() + delay_ms });
  }

  readonly #acts: readonly (() => void)[] = [
    () => this.next("command"),
    () => this.next("answer"),
    () => this.next("wake"),
    () => void this.poll(this.#anyGateway()),
    () => {
      this.ticket();
      this.tell(false);
    },
    // Several at once that are told of as one: a gap, a burst that falls due.
    () => {
      for (let n = this.random(4); n >= 0; n -= 1) this.ticket();
      this.tell(true);
    },
    () => {
      this.ticket(1 + this.random(500));
      this.tell(false);
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
  steps(): (() => void)[] {
    const bag = this.#acts.flatMap((act, n) =>
      Array(n < 5 ? 1 + this.random(4) : this.random(3) >> 1).fill(act),
    );
    return Array.from({ length: 5 + this.random(MOST_STEPS) }, () => bag[this.random(bag.length)]).flatMap(
      (act) => Array(1 + this.random(3)).fill(act),
    );
  }

  #anyGateway(): Claimers {
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

test.each(Array.from({ length: 10 }, (_, n) => n))(
  "no poll stays parked while a ticket waits, whatever meets, and nobody looks without end: seeds %i000 and on",
  async (thousand) => {
    for (let seed = thousand * 1_000; seed < (thousand + 1) * 1_000; seed += 1) {
      const walk = new Walk(seed);
      for (const step of walk.steps()) {
        step();
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
      const parked = walk.gateways.map((claimers) => claimers.parked());
      const waiting = walk.ready.length + walk.delayed.length;
      expect(waiting > 0 && walk.polls.size > 0, `seed ${seed}: ${parked} parked, ${waiting} wait`).toBe(
        false,
      );
      expect(new Set(walk.taken).size, `seed ${seed}: each once`).toBe(walk.taken.length);
      expect(
        parked.reduce((sum, polls) => sum + polls, 0),
        `seed ${seed}`,
      ).toBe(walk.polls.size);
      for (const leaving of walk.polls) leaving.abort();
      await walk.rest();
      expect(
        walk.gateways.flatMap((claimers) => [...claimers.agents()]),
        `seed ${seed}`,
      ).toEqual([]);
      // Each stir costs a look at each gateway, each poll some of its own.
      expect(walk.looks, `seed ${seed}: looks`).toBeLessThan(8 * walk.stirs + 20);
    }
    expect(vi.getTimerCount()).toBe(0);
  },
  60_000,
);

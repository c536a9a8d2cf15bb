/**
 * Counts the moves of this gateway in memory and adds them to Redis once a second, in one script: a move costs no
 * command. Limit: a gateway that is killed loses the last second, and nothing is counted while memory is short.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../lifecycle/command.ts";
import type { Used } from "../../lifecycle/outcome.ts";
import { MOVES, type Move } from "../../lifecycle/states.ts";
import { readSummaries } from "../../lifecycle/summary.ts";
import type { Observe } from "../../lifecycle/writer.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Log } from "../../telemetry/log.ts";
import {
  classOf,
  FIELD,
  GAUGE,
  keptMs,
  MAX_CODES,
  MAX_CURRENCIES,
  RESOLUTIONS,
  type Subject,
  slotOf,
  storedCode,
  USED,
} from "./layout.ts";

const FLUSH_MS = 1_000;
/** Readers within this time share one sample of the queues. */
const FRESH_MS = 1_000;
/** Entries in one call of the script: few, so that it does not delay other commands. */
const BATCH = 5;
/** The longest pause between two calls; all of them take at most half the time between two flushes. */
const MAX_PAUSE_MS = 20;
/** Finished delegations whose record must still be read; further ones are counted without delegator and code. */
const MAX_UNREAD = 1_000;
/** Entries of one second; beyond it, only `all` is counted. */
const MAX_ENTRIES = 10_000;

const { hour: HOUR, day: DAY } = RESOLUTIONS;
const BOTH = [HOUR, DAY];

/** Redis refuses it at full memory, like all new work. */
const writeScript = new Script(`#!lua\n${readLua("./write.lua", import.meta.url)}`);

interface Entry {
  readonly subject: Subject;
  readonly at: number;
  readonly add: Record<string, number>;
  readonly max: Record<string, number>;
  /** A map, because agents choose the codes: `constructor` is a member of every object. */
  readonly codes: Map<string, number>;
  readonly used: Record<string, number>;
  readonly costs: Record<string, number>;
}

/** A finished delegation whose outcome names neither the delegator nor the error. */
interface Unread {
  readonly id: string;
  readonly target: string;
  readonly field: string;
  readonly at: number;
}

export interface QueueSample {
  readonly agent: string;
  readonly waiting: number;
  readonly working: number;
  readonly oldest_seconds: number;
}

export interface CountersOptions {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly log: Log;
  readonly clock: Clock;
  /** True while memory is short: figures can be missing, work cannot. */
  readonly isShort: () => boolean;
}

export class Counters {
  readonly #options: CountersOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #unread: Unread[] = [];
  #timer: NodeJS.Timeout | null = null;
  #sampledAt = 0;
  #flushing: Promise<void> = Promise.resolve();
  /** Callers of `flush` that wait for its end. */
  #waiting = 0;

  constructor(options: CountersOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#enqueue(), FLUSH_MS).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.flush();
  }

  /** Counts one outcome of the writer. */
  readonly count: Observe = ({ id }, outcome, record) => {
    if (outcome.kind !== "ok") return;
    const { now: at, target, state, move } = outcome;
    const add = (field: string) => {
      this.#add("all", at, field);
      this.#add(`target:${target}`, at, field);
      if (record) this.#add(`delegator:${record.get("delegator")}`, at, field);
    };
    if (outcome.used) this.#addUsed(outcome.used, target, at);
    if (move === "submit") add(FIELD.sent);
    if (move === "lease") add(FIELD.lease(classOf(at - (outcome.ready_at ?? at))));
    // A finished delegation may still get moves that keep its state, such as a new push config.
    const { to }: Move = MOVES[move];
    if (to.length === 0 || !isTerminal(state)) return;
    if (state === "completed") return add(FIELD.answer(classOf(at - outcome.created_at)));
    const field = endField(state);
    if (record) {
      add(field);
      this.#addCode(record.get("delegator"), target, at, state, record.get("error"));
    } else if (id !== undefined && this.#unread.length < MAX_UNREAD) {
      this.#unread.push({ id, target, field, at });
    } else add(field);
  };

  /** Samples the queues, unless this gateway did so within the last second. */
  async sampleOnce(read: () => Promise<readonly QueueSample[]>): Promise<void> {
    const at = Date.now() + this.#options.clock.offset_ms;
    if (Math.abs(at - this.#sampledAt) < FRESH_MS) return;
    this.#sampledAt = at;
    this.sample(at, await read());
  }

  /** Records how full the queues are at an instant, ms. */
  sample(at: number, samples: readonly QueueSample[]): void {
    const all = { waiting: 0, working: 0, oldest_seconds: 0 };
    for (const { agent, waiting, working, oldest_seconds } of samples) {
      this.#keepMax(`target:${agent}`, at, { waiting, working, oldest_seconds });
      all.waiting += waiting;
      all.working += working;
      all.oldest_seconds = Math.max(all.oldest_seconds, oldest_seconds);
    }
    if (samples.length > 0) this.#keepMax("all", at, all);
  }

  /** Writes what was counted, without pauses. Never rejects: figures that cannot be written are dropped. */
  async flush(): Promise<void> {
    this.#waiting += 1;
    await this.#enqueue();
    this.#waiting -= 1;
  }

  #enqueue(): Promise<void> {
    this.#flushing = this.#flushing
      .then(() => this.#flush())
      .catch((error: unknown) =>
        this.#options.log.debug(
          { err: error instanceof Error ? error.message : "unknown" },
          "figures not written",
        ),
      );
    return this.#flushing;
  }

  /** Deletes the figures of an agent that is deleted. Another gateway may still add to the newest ones. */
  async forget(agent: string): Promise<void> {
    await this.flush();
    const subjects: Subject[] = [`target:${agent}`, `delegator:agent:${agent}`];
    const now = Date.now() + this.#options.clock.offset_ms;
    // From one bucket in the future to three beyond those that are shown, because clocks differ.
    const names = subjects.flatMap((subject) =>
      BOTH.flatMap((resolution) =>
        Array.from({ length: resolution.buckets + 4 }, (_, n) =>
          keys.stats(subject, resolution.seconds, slotOf(now, resolution) + 1 - n),
        ),
      ),
    );
    await this.#options.redis.unlink(...names);
    await this.#options.redis.zrem(keys.statsSubjects, ...subjects);
  }

  async #flush(): Promise<void> {
    await this.#readUnread();
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    if (this.#options.isShort()) return;
    const pause = Math.min(MAX_PAUSE_MS, (FLUSH_MS * BATCH) / 2 / entries.length);
    for (let from = 0; from < entries.length; from += BATCH) {
      // Nobody waits for the timer's writes, so they leave room for other commands.
      if (from > 0 && this.#waiting === 0) await sleep(pause, undefined, { ref: false });
      await this.#write(entries.slice(from, from + BATCH));
    }
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const names = entries.flatMap(({ subject, at }) =>
      BOTH.map((resolution) => keys.stats(subject, resolution.seconds, slotOf(at, resolution))),
    );
    await writeScript.run(
      this.#options.redis,
      [keys.statsSubjects, ...names],
      [
        Math.max(...entries.map(({ at }) => at)),
        LIMITS.stats_subjects.value,
        keptMs(DAY),
        MAX_CODES,
        BOTH.map(keptMs).join(","),
        MAX_CURRENCIES,
        ...entries.map(({ codes, at: _at, ...entry }) =>
          JSON.stringify({ ...entry, codes: Object.fromEntries(codes) }),
        ),
      ],
    );
  }

  /** The sweep does not read the records that it finishes: their delegator and error are read here, once. */
  async #readUnread(): Promise<void> {
    const unread = this.#unread.splice(0);
    if (unread.length === 0) return;
    const { redis, shards } = this.#options;
    const ids = unread.map(({ id }) => id);
    const summaries = await readSummaries(redis, shards, ids, { errors: true }).catch(() => []);
    for (const [index, { target, field, at }] of unread.entries()) {
      this.#add("all", at, field);
      this.#add(`target:${target}`, at, field);
      const summary = summaries[index];
      if (!summary) continue;
      const delegator = summary.get("delegator");
      this.#add(`delegator:${delegator}`, at, field);
      this.#addCode(delegator, target, at, summary.get("state"), summary.get("error"));
    }
  }

  #addCode(delegator: string, target: string, at: number, state: string, error: string | null): void {
    if (state === "canceled") return;
    const code = storedCode(codeOf(error));
    for (const subject of ["all", `target:${target}`, `delegator:${delegator}`] as const) {
      const { codes } = this.#entry(subject, at) ?? {};
      codes?.set(code, (codes.get(code) ?? 0) + 1);
    }
  }

  #addUsed({ delegator, cost, currency, ...used }: Used, target: string, at: number): void {
    for (const subject of ["all", `target:${target}`, `delegator:${delegator}`] as const) {
      const entry = this.#entry(subject, at);
      if (!entry) continue;
      for (const [name, field] of USED_FIELDS) plus(entry.used, field, used[name]);
      if (currency !== undefined) plus(entry.costs, currency, cost);
    }
  }

  #add(subject: Subject, at: number, field: string): void {
    const { add } = this.#entry(subject, at) ?? {};
    if (add) add[field] = (add[field] ?? 0) + 1;
  }

  #keepMax(subject: Subject, at: number, sample: Omit<QueueSample, "agent">): void {
    const { max } = this.#entry(subject, at) ?? {};
    if (!max) return;
    const keep = (field: string, value: number) => {
      max[field] = Math.max(max[field] ?? 0, value);
    };
    keep(GAUGE.waiting, sample.waiting);
    keep(GAUGE.working, sample.working);
    keep(GAUGE.oldest, Math.round(sample.oldest_seconds));
  }

  #entry(subject: Subject, at: number): Entry | undefined {
    const name = `${slotOf(at, HOUR)} ${subject}`;
    let entry = this.#entries.get(name);
    if (!entry && (subject === "all" || this.#entries.size < MAX_ENTRIES)) {
      entry = { subject, at, add: {}, max: {}, codes: new Map(), used: {}, costs: {} };
      this.#entries.set(name, entry);
    }
    return entry;
  }
}

const USED_FIELDS = [
  ["input_tokens", USED.input_tokens],
  ["output_tokens", USED.output_tokens],
  ["cached_tokens", USED.cached_tokens],
  ["reasoning_tokens", USED.reasoning_tokens],
] as const;

function plus(sums: Record<string, number>, name: string, amount = 0): void {
  if (amount > 0) sums[name] = (sums[name] ?? 0) + amount;
}

const endField = (state: string): string =>
  state === "failed" ? FIELD.failed : state === "rejected" ? FIELD.rejected : FIELD.canceled;

/** The code in the JSON text of a delegation's error; empty if it has none. */
function codeOf(error: string | null): string {
  const value: unknown = error === null || error === "" ? null : JSON.parse(error);
  return typeof value === "object" && value !== null && "code" in value ? String(value.code) : "";
}

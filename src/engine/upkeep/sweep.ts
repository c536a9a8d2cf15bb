/**
 * The sweep: makes the moves that are due (expired leases, deadlines), trims old events and replaces lost tickets.
 * Limit: the script decides what is due, by Redis' clock. Any number of gateways may sweep at once.
 */
import type { Outcome, Result } from "../../lifecycle/outcome.ts";
import { MOVES } from "../../lifecycle/states.ts";
import type { ShardKeys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import { TIME_LUA } from "../../redis/time.ts";
import { LIMITS } from "../../schema/limits.ts";
import { afterMove, type Moves, warn } from "../after-move.ts";
import type { Broker, PendingDeliveries, Records } from "../broker.ts";
import { retireKey } from "../delegations/idempotency.ts";
import { unansweredParams } from "../questions/expire.ts";

type SweepNeeds = Moves & Records & Pick<Broker, "clock" | "retentionMs">;

const takeDueScript = new Script(`#!lua flags=allow-oom
${TIME_LUA}
${readLua("./outages.lua", import.meta.url)}
${readLua("./take-due.lua", import.meta.url)}`);

/** About how many records a gateway sweeps at once, in all shards together: after an outage, all of them are due. */
const AT_ONCE = 100;
/** Otherwise a shard with much due work would need a round trip for every few records. */
const LEAST_OF_SHARD = 4;
/** How long a gateway has for the due records that it took; then another may take them. */
const TAKEN_MS = 2_000;
/** The limit of the shard's stream in bytes; the script limits its length. Live readers need only the last seconds. */
const LIVE_BYTES = LIMITS.live_bytes.value;

/** Sweeps each shard on its own, so that a silent master of a Cluster does not delay the other shards. */
export class Sweep {
  readonly #shards: readonly ShardSweep[];

  /** `outageMs`: after how long without a sign of life there was an outage. */
  constructor(broker: SweepNeeds, everyMs = 250, outageMs: number = LIMITS.outage_seconds.value * 1000) {
    const batch = batchOf(broker.shards.count);
    this.#shards = broker.shards.all.map(
      (keys) => new ShardSweep(broker, keys, { everyMs, batch, outageMs }),
    );
  }

  start(): void {
    for (const shard of this.#shards) shard.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#shards.map((shard) => shard.stop()));
  }

  /**
   * Handles everything that is due now; returns the number of records. Waits for ticks that are under way, which may
   * have taken some of them.
   */
  async tick(): Promise<number> {
    const handled = await Promise.all(this.#shards.map((shard) => shard.tick()));
    return handled.reduce((sum, count) => sum + count, 0);
  }
}

/** How many records of each shard are swept at once. */
export const batchOf = (shards: number): number => Math.max(LEAST_OF_SHARD, Math.floor(AT_ONCE / shards));

interface ShardSweepOptions {
  readonly everyMs: number;
  readonly batch: number;
  readonly outageMs: number;
}

class ShardSweep {
  readonly #broker: SweepNeeds;
  readonly #keys: ShardKeys;
  readonly #everyMs: number;
  readonly #batch: number;
  readonly #outageMs: number;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Deliveries that go on while more work is due: the queue of calls may be at a master that does not answer. */
  readonly #delivering = new Set<Promise<void>>();
  #stopped = false;

  constructor(broker: SweepNeeds, keys: ShardKeys, { everyMs, batch, outageMs }: ShardSweepOptions) {
    this.#broker = broker;
    this.#keys = keys;
    this.#everyMs = everyMs;
    this.#batch = batch;
    this.#outageMs = outageMs;
  }

  start(): void {
    this.#stopped = false;
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.#next()
        .catch((error: unknown) => warn(this.#broker, error, "sweep interrupted"))
        .finally(() => this.#schedule());
    }, this.#everyMs);
  }

  async tick(): Promise<number> {
    const handled = await this.#next();
    await Promise.all(this.#delivering);
    return handled;
  }

  #next(): Promise<number> {
    const handled = this.#running.then(() => this.#tick());
    this.#running = handled.then(
      () => {},
      () => {},
    );
    return handled;
  }

  async #tick(): Promise<number> {
    let handled = 0;
    for (let full = true; full && !this.#stopped; ) {
      const ids = await takeDue(this.#broker, this.#keys, this.#batch, this.#outageMs);
      // All moves come first: what one leads to must not cancel a child whose own deadline has passed, too.
      const due = await Promise.all(ids.map((id) => this.#attempt(this.#due(id))));
      await Promise.all(ids.map((id, at) => this.#attempt(this.#handle(id, due[at]?.outcome))));
      handled += ids.length;
      full = ids.length === this.#batch;
    }
    return handled;
  }

  /** Undefined if it fails, which is logged. */
  async #attempt<T>(work: Promise<T>): Promise<T | undefined> {
    return work.catch((error: unknown) => {
      warn(this.#broker, error, "sweep of one record failed");
      return undefined;
    });
  }

  async #handle(id: string, outcome: Outcome | undefined): Promise<void> {
    if (outcome?.kind === "ok") {
      // Moves without an event may come in thousands: a long queue ages.
      const level = MOVES[outcome.move].event === null ? "debug" : "info";
      this.#broker.log[level]({ delegation_id: id, move: outcome.move, state: outcome.state }, "swept");
      await afterMove(this.#broker, id, outcome);
    } else if (outcome?.kind === "pending") {
      const { cascade, cascade_all, claimed_until, expecting, reports_to, spends_to, spent, ...rest } =
        outcome;
      const { pending_events, calls_at } = rest;
      const isBetweenRecords = [expecting, reports_to, spends_to].some((one) => one !== undefined);
      if (cascade !== undefined || isBetweenRecords || pending_events)
        this.#broker.log.info({ delegation_id: id }, "pending deliveries taken over");
      // Not awaited: a cascade may take long, and other work is due.
      if (cascade !== undefined)
        void this.#broker.deliverPending(id, { cascade, cascade_all, claimed_until });
      if (isBetweenRecords || pending_events || calls_at !== undefined)
        this.#deliver(id, { expecting, reports_to, spends_to, spent, pending_events, calls_at });
    } else if (outcome?.kind === "check") {
      await this.#repairTicket(id, outcome.target, outcome.ticket);
    }
  }

  /** At the limit it does nothing: the record is due again in a while. */
  #deliver(id: string, pending: PendingDeliveries): void {
    if (this.#delivering.size >= AT_ONCE) return;
    const delivery = this.#broker
      .deliverPending(id, pending)
      .finally(() => this.#delivering.delete(delivery));
    this.#delivering.add(delivery);
  }

  /**
   * A record with an idempotency key is deleted only after the key is retired. The failure of a question that nobody answered
   * says who was notified.
   */
  async #due(id: string): Promise<Result> {
    const { writer, redis } = this.#broker;
    const params = { outage_ms: this.#outageMs };
    const result = await writer.move({ move: "due", id, params });
    const { outcome } = result;
    if (outcome.kind === "unanswered") {
      const more = await unansweredParams(this.#broker, id, outcome);
      return writer.move({ move: "due", id, params: { ...params, ...more } });
    }
    if (outcome.kind !== "retire_key") return result;
    const { idempotency: name, created_at, now } = outcome;
    await retireKey(redis, { name, id, created_at, now });
    return writer.move({ move: "due", id, params: { key_retired: true } });
  }

  /**
   * A record that is ready needs a ticket that can be popped. A ticket that was popped and not consumed does not count.
   * Nor does a delayed one, which a gateway with a wrong clock may have added.
   */
  async #repairTicket(id: string, agent: string, ticket: number): Promise<void> {
    const found = await this.#broker.tickets.find(agent, { delegation_id: id, ticket });
    if (found === "queued") return;
    const { outcome } = await this.#broker.writer.move({ move: "reticket", id, params: { ticket } });
    if (outcome.kind !== "ok") {
      // The ticket is used or stale, and the gateway that popped it did not remove it.
      if (found === "popped") await this.#broker.tickets.discard(agent, { delegation_id: id, ticket });
      return;
    }
    this.#broker.log.warn({ delegation_id: id, found }, "lost ticket replaced");
    await afterMove(this.#broker, id, outcome);
  }
}

async function takeDue(
  broker: Pick<Broker, "clock" | "redis" | "retentionMs">,
  keys: ShardKeys,
  batch: number,
  outageMs: number,
): Promise<string[]> {
  const ids = await takeDueScript.run(
    broker.redis,
    [keys.due, keys.events],
    [broker.clock.offset_ms, batch, TAKEN_MS, broker.retentionMs, LIVE_BYTES, outageMs],
  );
  return Array.isArray(ids) ? ids.map(String) : [];
}

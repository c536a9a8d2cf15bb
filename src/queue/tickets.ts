/**
 * Tickets: BullMQ jobs `<delegation>.<n>` that mean "work waits", one queue for each agent, all on one shared connection.
 * Limit: a ticket is only a hint; the record decides whether it counts.
 */

import { createRedisBackend, type IQueueBackend, Job, type JobJson, Queue } from "bullmq";
import type { Redis } from "../redis/connect.ts";
import { writeEvenIfFull } from "../redis/script.ts";
import { randomId, type Shards } from "../redis/shards.ts";
import { timeOf } from "../redis/time.ts";
import type { Log } from "../telemetry/log.ts";
import { BoundedMap } from "../util/bounded.ts";
import type { Fetched } from "./parked-poll.ts";
import { addTicketScript } from "./ticket-script.ts";

export interface TicketData {
  readonly delegation_id: string;
  readonly ticket: number;
  /** Of an outgoing call: the push config whose turn it is; absent for a callback. */
  readonly push?: string | undefined;
}

/** Where a ticket stands in its queue, and from when on. */
export interface TicketOrder {
  readonly priority: number;
  readonly returned: boolean;
  readonly delay_ms: number;
}

/** A popped ticket, held for milliseconds: consume it or put it back. */
export interface Popped extends TicketData {
  readonly agent: string;
  readonly job: Job<TicketData>;
  readonly token: string;
}

type TicketQueue = Queue<TicketData, unknown, string, TicketData, unknown, string, IQueueBackend>;

interface AgentQueue {
  readonly queue: TicketQueue;
  readonly backend: IQueueBackend;
}

/** How long a popped ticket is locked; a lease needs milliseconds, an outgoing call at most half of this. */
const LOCK_MS = 30_000;
/** Queue objects kept; they hold no connection, so an evicted one costs only its re-creation. */
const MAX_QUEUES = 10_000;
const JOB = "ticket";
/** The score of a delayed job is its time in ms, times this. */
const DELAYED_UNIT = 0x1000;
const ticketId = ({ delegation_id, ticket, push }: TicketData): string =>
  `${delegation_id}.${push === undefined ? "" : "p"}${ticket}`;

export class Tickets {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #queues = new BoundedMap<string, AgentQueue>(MAX_QUEUES);
  readonly #root: IQueueBackend;

  constructor(redis: Redis, shards: Shards, log: Log) {
    this.#redis = redis;
    this.#shards = shards;
    this.#root = createRedisBackend("root", this.#options(shards.at(0).queuePrefix));
    // Without a listener a lost connection would end the process; the commands report it themselves.
    this.#root.on("error", (error: Error) => log.debug({ err: error.message }, "queue connection error"));
  }

  #options(prefix: string) {
    return {
      connection: this.#redis,
      prefix,
      lockDuration: LOCK_MS,
      streams: { events: { maxLen: 1 } },
      skipWaitingForReady: true,
    };
  }

  #of(agent: string): AgentQueue {
    const known = this.#queues.get(agent);
    if (known) return known;
    const prefix = this.#shards.ofAgent(agent).queuePrefix;
    const backend = this.#root.forQueue(agent, prefix);
    const queue: TicketQueue = new Queue(agent, this.#options(prefix), () => backend);
    queue.on("error", () => {});
    const entry = { queue, backend };
    this.#queues.set(agent, entry);
    return entry;
  }

  async add(agent: string, data: TicketData, order: TicketOrder): Promise<void> {
    const queue = `${this.#shards.ofAgent(agent).queuePrefix}:${agent}`;
    const { delegation_id, ticket, push } = data;
    const { priority, returned, delay_ms } = order;
    await addTicketScript.run(
      this.#redis,
      [queue],
      [
        delegation_id,
        ticket,
        priority,
        returned ? 1 : 0,
        Math.max(0, delay_ms),
        push === undefined ? "" : JSON.stringify(push),
      ],
    );
  }

  /** Takes the first ticket without blocking, or says when the next delayed one is due. */
  async pop(agent: string): Promise<Fetched<Popped>> {
    const { queue, backend } = this.#of(agent);
    const token = randomId(16);
    const answer: readonly [JobJson | null, string, number, number] | readonly [] = tuple(
      await backend.moveToActive(token),
    );
    const [json, id, , delayUntil] = answer;
    if (!json || id === undefined) return { found: null, next_due_at: delayUntil ? delayUntil : null };
    const job = Job.fromJSON<TicketData>(queue, json, id);
    const { delegation_id, ticket, push } = job.data;
    return { found: { agent, delegation_id, ticket, push, job, token } };
  }

  /** Removes a popped ticket that was used or is stale. */
  async consume(popped: Popped): Promise<void> {
    await popped.job.moveToCompleted(null, popped.token, false);
  }

  /** Returns a popped ticket to the head of its rank, or delays it. */
  async putBack(popped: Popped, delayMs = 0): Promise<void> {
    const { backend } = this.#of(popped.agent);
    const id = ticketId(popped);
    if (delayMs > 0) {
      await backend.moveToDelayed(id, Date.now() + delayMs, delayMs, popped.token, { skipAttempt: true });
    } else {
      await backend.moveJobFromActiveToWait(id, popped.token);
    }
  }

  /** Where a ticket is: ready to be popped, delayed, popped by somebody who never consumed it, or nowhere. */
  async find(agent: string, data: TicketData): Promise<"queued" | "delayed" | "popped" | "missing"> {
    const state = await this.#of(agent).backend.getState(ticketId(data));
    if (state === "active") return "popped";
    // BullMQ moves a delayed ticket that is due only at the next pop.
    if (state === "delayed") return (await this.#isAhead(agent, data)) ? "delayed" : "queued";
    return state === "unknown" || state === "completed" || state === "failed" ? "missing" : "queued";
  }

  /** Whether a delayed ticket is not due yet, by Redis' clock. */
  async #isAhead(agent: string, data: TicketData): Promise<boolean> {
    const delayed = `${this.#shards.ofAgent(agent).queuePrefix}:${agent}:delayed`;
    const [score, now] = await Promise.all([
      this.#redis.zscore(delayed, ticketId(data)),
      timeOf(this.#redis),
    ]);
    return Number(score) / DELAYED_UNIT > now;
  }

  /** Tickets that were popped longer ago than any living gateway holds them. */
  async popped(agent: string, olderThanMs: number): Promise<TicketData[]> {
    const jobs = await this.#of(agent).queue.getJobs(["active"]);
    const before = Date.now() - olderThanMs;
    return jobs.flatMap((job) => ((job?.processedOn ?? 0) < before ? [job.data] : []));
  }

  /** Puts back, in one step, a ticket whose gateway is gone. */
  async requeue(agent: string, data: TicketData): Promise<void> {
    await this.#of(agent).backend.moveJobFromActiveToWait(ticketId(data), "0").catch(ignoreGone);
  }

  /** Removes a ticket from wherever it is. Idempotent. */
  async discard(agent: string, data: TicketData): Promise<void> {
    const { queue, backend } = this.#of(agent);
    const id = ticketId(data);
    if ((await backend.getState(id)) === "active") {
      const job = new Job<TicketData>(queue, JOB, data, { removeOnComplete: true }, id);
      // Token 0 passes the lock: whoever popped it is gone, or is about to be refused by the record.
      await job.moveToCompleted(null, "0", false).catch(ignoreGone);
    } else {
      await backend.remove(id, false);
    }
  }

  /** Deletes an agent's whole queue. */
  async drop(agent: string): Promise<void> {
    const { backend } = this.#of(agent);
    // As BullMQ's own pause, which obliterate asks for, but at full memory, too.
    const queue = `${this.#shards.ofAgent(agent).queuePrefix}:${agent}`;
    await writeEvenIfFull(this.#redis, "HSET", `${queue}:meta`, "paused", 1);
    while ((await backend.obliterate({ force: true, count: 1000 })) > 0);
    this.#queues.delete(agent);
  }
}

/** BullMQ types this answer loosely; it is empty or `[job, id, rate limit, delayed until]`. */
function tuple(answer: unknown[]): readonly [JobJson | null, string, number, number] | readonly [] {
  const [json, id, limit, delayUntil] = answer;
  if (answer.length === 0) return [];
  return [isJob(json) ? json : null, String(id), Number(limit), Number(delayUntil)];
}

function isJob(json: unknown): json is JobJson {
  return typeof json === "object" && json !== null && "data" in json;
}

function ignoreGone(error: unknown): void {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== -1 && code !== -3) throw error;
}

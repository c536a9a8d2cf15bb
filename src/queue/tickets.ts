/**
 * Tickets: BullMQ jobs `<delegation>.<n>` that mean "work waits", one queue for each agent, all on one shared
 * connection. Limit: a ticket is only a hint; the record decides whether it counts.
 */

import { createRedisBackend, type IQueueBackend, Job, Queue } from "bullmq";
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import { writeEvenIfFull } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";
import { timeOf } from "../redis/time.ts";
import type { Log } from "../telemetry/log.ts";
import { BoundedMap } from "../util/bounded.ts";
import { addTicketScript, discardTicketScript, findQueuedScript } from "./ticket-script.ts";

/** The ticket with this number of a delegation. */
export interface TicketData {
  readonly delegation_id: string;
  readonly ticket: number;
}

/** A ticket's order in its queue, and when it is ready. */
export interface TicketOrder {
  readonly priority: number;
  readonly returned: boolean;
  readonly delay_ms: number;
}

type TicketQueue = Queue<TicketData, unknown, string, TicketData, unknown, string, IQueueBackend>;

interface AgentQueue {
  readonly queue: TicketQueue;
  readonly backend: IQueueBackend;
}

/** Queue objects kept; they hold no connection, so an evicted one costs only its re-creation. */
const MAX_QUEUES = 10_000;
const JOB = "ticket";
/** As findQueuedScript returns it. */
const queuedSchema = z.array(z.int());
/** The score of a delayed job is its time in ms, times this. */
const DELAYED_UNIT = 0x1000;
const ticketId = ({ delegation_id, ticket }: TicketData): string => `${delegation_id}.${ticket}`;

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

  #key(agent: string): string {
    return `${this.#shards.ofAgent(agent).queuePrefix}:${agent}`;
  }

  #jobOf(agent: string, data: TicketData): Job<TicketData> {
    return new Job<TicketData>(this.#of(agent).queue, JOB, data, { removeOnComplete: true }, ticketId(data));
  }

  async add(agent: string, data: TicketData, order: TicketOrder): Promise<void> {
    const { delegation_id, ticket } = data;
    const { priority, returned, delay_ms } = order;
    const args = [delegation_id, ticket, priority, returned ? 1 : 0, Math.max(0, delay_ms)];
    await addTicketScript.run(this.#redis, [this.#key(agent)], args);
  }

  /** Those of these agents whose queues are not empty; one command for each shard. */
  async findQueued(agents: readonly string[]): Promise<string[]> {
    const groups = this.#shards.groupByShard(agents, (agent) => agent);
    const found = await Promise.all(
      [...groups.values()].map(async (ofShard) => {
        const positions = await findQueuedScript.run(
          this.#redis,
          ofShard.map((agent) => this.#key(agent)),
          [],
        );
        return queuedSchema.parse(positions).flatMap((position) => ofShard[position - 1] ?? []);
      }),
    );
    return found.flat();
  }

  /** How many tickets of the agent could be taken now. */
  async countReady(agent: string): Promise<number> {
    const key = this.#key(agent);
    const due = (await timeOf(this.#redis)) * DELAYED_UNIT + DELAYED_UNIT - 1;
    const counts = await Promise.all([
      this.#redis.llen(`${key}:wait`),
      this.#redis.zcard(`${key}:prioritized`),
      this.#redis.zcount(`${key}:delayed`, "-inf", due),
    ]);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Where a ticket is: ready to be taken, delayed, popped by a Worker of BullMQ, or missing. */
  async find(agent: string, data: TicketData): Promise<"queued" | "delayed" | "popped" | "missing"> {
    const state = await this.#of(agent).backend.getState(ticketId(data));
    if (state === "active") return "popped";
    // A delayed ticket that is due is moved only when the next one is taken.
    if (state === "delayed") return (await this.#isAhead(agent, data)) ? "delayed" : "queued";
    return state === "unknown" || state === "completed" || state === "failed" ? "missing" : "queued";
  }

  /** Whether a delayed ticket is not due yet, by Redis' clock. */
  async #isAhead(agent: string, data: TicketData): Promise<boolean> {
    const [score, now] = await Promise.all([
      this.#redis.zscore(`${this.#key(agent)}:delayed`, ticketId(data)),
      timeOf(this.#redis),
    ]);
    return Number(score) / DELAYED_UNIT > now;
  }

  /** Removes a ticket from wherever it is. Idempotent. */
  async discard(agent: string, data: TicketData): Promise<void> {
    const { delegation_id, ticket } = data;
    if ((await discardTicketScript.run(this.#redis, [this.#key(agent)], [delegation_id, ticket])) === 1)
      return;
    const { backend } = this.#of(agent);
    const id = ticketId(data);
    if ((await backend.getState(id)) === "active") {
      const job = this.#jobOf(agent, data);
      // Token 0 ignores the Worker's lock.
      await job.moveToCompleted(null, "0", false).catch(ignoreGone);
    } else {
      await backend.remove(id, false);
    }
  }

  /** Deletes an agent's whole queue. */
  async deleteQueue(agent: string): Promise<void> {
    const { backend } = this.#of(agent);
    // Pauses the queue as BullMQ does, which `obliterate` requires, but also at full memory.
    await writeEvenIfFull(this.#redis, "HSET", `${this.#key(agent)}:meta`, "paused", 1);
    while ((await backend.obliterate({ force: true, count: 1000 })) > 0);
    await this.#redis.unlink(this.#shards.ofAgent(agent).turns(agent));
    this.#queues.delete(agent);
  }
}

function ignoreGone(error: unknown): void {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== -1 && code !== -3) throw error;
}

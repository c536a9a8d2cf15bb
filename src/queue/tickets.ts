/**
 * Tickets: BullMQ jobs `<delegation>.<n>` that mean "work waits", one queue for each agent, all on one shared
 * connection. Limit: a ticket is only a hint; the record decides whether it counts.
 */

import { createRedisBackend, type IQueueBackend, Job, Queue } from "bullmq";
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import { writeEvenIfFull } from "../redis/script.ts";
import { randomId, type Shards } from "../redis/shards.ts";
import { timeOf } from "../redis/time.ts";
import type { Log } from "../telemetry/log.ts";
import { BoundedMap } from "../util/bounded.ts";
import type { Fetched } from "./parked-poll.ts";
import { addTicketScript, delayTicketScript, findQueuedScript, popTicketScript } from "./ticket-script.ts";

const ticketSchema = z.object({
  delegation_id: z.string(),
  ticket: z.int(),
  /** For a push notification: the id of its push config. */
  push: z.string().optional(),
});
export type TicketData = Readonly<z.infer<typeof ticketSchema>>;

/** A ticket's order in its queue, and when it is ready. */
export interface TicketOrder {
  readonly priority: number;
  readonly returned: boolean;
  readonly delay_ms: number;
}

/** A popped ticket, which is locked: consume it soon, or put it back. */
export interface Popped extends TicketData {
  readonly agent: string;
  /** The token of BullMQ's lock on the job. */
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
/** As pop-ticket.lua returns it. */
const poppedSchema = z.union([
  z.tuple([z.string(), z.string(), z.number()]),
  z.tuple([z.null(), z.number(), z.number()]),
]);
/** As findQueuedScript returns it. */
const queuedSchema = z.array(z.int());
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

  #key(agent: string): string {
    return `${this.#shards.ofAgent(agent).queuePrefix}:${agent}`;
  }

  #jobOf(agent: string, data: TicketData): Job<TicketData> {
    return new Job<TicketData>(this.#of(agent).queue, JOB, data, { removeOnComplete: true }, ticketId(data));
  }

  async add(agent: string, data: TicketData, order: TicketOrder): Promise<void> {
    const { delegation_id, ticket, push } = data;
    const { priority, returned, delay_ms } = order;
    await addTicketScript.run(
      this.#redis,
      [this.#key(agent)],
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

  /** Takes the first ticket without blocking, or returns when the next one is due, by the gateway's clock. */
  async pop(agent: string): Promise<Fetched<Popped>> {
    const token = randomId(16);
    const answer = await popTicketScript.run(this.#redis, [this.#key(agent)], [token, LOCK_MS]);
    const popped = poppedSchema.parse(answer);
    if (popped[0] === null) {
      const [, dueAt, now] = popped;
      return { found: null, next_due_at: dueAt === 0 ? null : dueAt - now + Date.now() };
    }
    return { found: { agent, token, ...ticketSchema.parse(JSON.parse(popped[1])) } };
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

  /** Removes a popped ticket that was used or is stale. */
  async consume(popped: Popped): Promise<void> {
    await this.#jobOf(popped.agent, popped).moveToCompleted(null, popped.token, false);
  }

  /** Returns a popped ticket to the head of its rank, or delays it. */
  async putBack(popped: Popped, delayMs = 0): Promise<void> {
    const id = ticketId(popped);
    if (delayMs <= 0) {
      await this.#of(popped.agent).backend.moveJobFromActiveToWait(id, popped.token);
      return;
    }
    const args = [id, popped.token, Math.ceil(delayMs)];
    const code = await delayTicketScript.run(this.#redis, [this.#key(popped.agent)], args);
    if (code !== 0) throw new Error(`the ticket ${id} was not put back: BullMQ returned the code ${code}`);
  }

  /** Where a ticket is: ready to be popped, delayed, popped but not consumed, or missing. */
  async find(agent: string, data: TicketData): Promise<"queued" | "delayed" | "popped" | "missing"> {
    const state = await this.#of(agent).backend.getState(ticketId(data));
    if (state === "active") return "popped";
    // BullMQ moves a delayed ticket that is due only at the next pop.
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

  /** The tickets that were popped more than `olderThanMs` ago and are not consumed. */
  async popped(agent: string, olderThanMs: number): Promise<TicketData[]> {
    const [jobs, now] = await Promise.all([this.#of(agent).queue.getJobs(["active"]), timeOf(this.#redis)]);
    const before = now - olderThanMs;
    return jobs.flatMap((job) => ((job?.processedOn ?? 0) < before ? [job.data] : []));
  }

  /** Puts back, in one step, a ticket whose gateway is gone. */
  async requeue(agent: string, data: TicketData): Promise<void> {
    await this.#of(agent).backend.moveJobFromActiveToWait(ticketId(data), "0").catch(ignoreGone);
  }

  /** Removes a ticket from wherever it is. Idempotent. */
  async discard(agent: string, data: TicketData): Promise<void> {
    const { backend } = this.#of(agent);
    const id = ticketId(data);
    if ((await backend.getState(id)) === "active") {
      const job = this.#jobOf(agent, data);
      // Token 0 ignores the lock: the process that popped the ticket is gone, or the record will refuse it.
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
    this.#queues.delete(agent);
  }
}

function ignoreGone(error: unknown): void {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== -1 && code !== -3) throw error;
}

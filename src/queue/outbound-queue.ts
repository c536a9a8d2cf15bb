/**
 * The queue of outgoing calls: a BullMQ queue and its Worker. A call that is to be made later goes back as a delayed job; if a
 * gateway dies during a call, BullMQ gives its job to another gateway within a minute.
 * Limit: a job is only a hint. The record lists the calls that are left (engine/outbound/outbox.ts), so one whose job is
 * gone is queued again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DelayedError, type Job, type JobsOptions, Queue, Worker } from "bullmq";
import * as z from "zod";
import { backendOf, PAUSE_MS, type QueueConnections, WORKER } from "./backend.ts";

/** Not a valid name of an agent, so no agent has this queue. */
export const OUTBOUND_QUEUE = "~outbound";

const delegation_id = z.string();
const jobSchema = z.discriminatedUnion("kind", [
  /** To the delegator's URL: the event with this number. */
  z.object({ kind: z.literal("callback"), delegation_id, seq: z.int() }),
  /** To the receiver of a push config: its undelivered events. `job`: the number of its job. */
  z.object({ kind: z.literal("push"), delegation_id, config: z.string(), job: z.int() }),
  /** To the server of a push agent: the cancel of the delegation's task. */
  z.object({ kind: z.literal("cancel"), delegation_id }),
  /** To a channel of a subscription: what is due in this lane. `claim`: by what the lane is taken. */
  z.object({ kind: z.literal("notify"), subscription: z.string(), lane: z.string(), claim: z.int() }),
]);
export type OutboundJob = Readonly<z.infer<typeof jobSchema>>;

/** The same call has the same job, so adding it twice makes one. */
export function jobIdOf(call: OutboundJob): string {
  if (call.kind === "notify") return `${call.subscription}.${call.lane}.${call.claim}`;
  const number = call.kind === "callback" ? `.${call.seq}` : call.kind === "push" ? `.${call.job}` : "";
  return `${call.delegation_id}.${call.kind}${number}`;
}

/**
 * An error of ours, not of the receiver, is retried for about nine minutes; then the sweep queues the call again. A lane of a
 * subscription is due again by itself, and gets a new job then (put-off.ts), so its job has one attempt.
 */
const JOB: JobsOptions = {
  attempts: 10,
  backoff: { type: "exponential", delay: 1_000 },
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
};

export interface OutboundQueueOptions extends QueueConnections {
  /** Makes one call. Resolves to null when the call is finished, or to the delay before the next try, ms. */
  readonly deliver: (call: OutboundJob, stopping: AbortSignal) => Promise<number | null>;
  readonly onError: (error: unknown) => void;
}

export class OutboundQueue {
  readonly #options: OutboundQueueOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #stopping = new AbortController();
  #pause: NodeJS.Timeout | null = null;

  constructor(options: OutboundQueueOptions) {
    this.#options = options;
    const { redis: connection, prefix } = options;
    const common = { connection, prefix, streams: { events: { maxLen: 1 } } };
    const access = backendOf(options);
    this.#queue = new Queue(OUTBOUND_QUEUE, common, access);
    this.#queue.on("error", options.onError);
    this.#worker = new Worker(
      OUTBOUND_QUEUE,
      (job, token) => this.#process(job, token),
      { ...common, ...WORKER },
      access,
    );
    this.#worker.on("error", (error) => this.#onError(error));
  }

  start(): void {
    this.#worker.run().catch(this.#options.onError);
  }

  /** Waits for running calls, up to `graceMs`; another gateway takes over the rest. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    if (this.#pause) clearTimeout(this.#pause);
    const late = new AbortController();
    // While Redis is away, BullMQ would wait for the end of a connection that it does not have.
    const closed = this.#worker.close(this.#options.blocking.status !== "ready");
    await Promise.race([closed, sleep(graceMs, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
  }

  async add(call: OutboundJob): Promise<void> {
    const options = call.kind === "notify" ? { ...JOB, attempts: 1 } : JOB;
    await this.#queue.add(call.kind, call, { ...options, jobId: jobIdOf(call) });
  }

  /** Removes a call from the queue; a running call continues. */
  async remove(call: OutboundJob): Promise<void> {
    await this.#queue.remove(jobIdOf(call));
  }

  /** Queues the call again if its job is gone, or has ended without making it. Returns whether it was so. */
  async restore(call: OutboundJob): Promise<boolean> {
    const state = await this.#queue.getJobState(jobIdOf(call));
    if (state !== "unknown" && state !== "completed" && state !== "failed") return false;
    // Otherwise BullMQ would take what is left of the job for the job.
    await this.remove(call);
    await this.add(call);
    return true;
  }

  async #process(job: Job, token: string | undefined): Promise<void> {
    const again = await this.#options.deliver(jobSchema.parse(job.data), this.#stopping.signal);
    if (again === null) return;
    await job.moveToDelayed(Date.now() + Math.ceil(again), token);
    throw new DelayedError();
  }

  #onError(error: unknown): void {
    this.#options.onError(error);
    if (this.#pause || this.#stopping.signal.aborted) return;
    void this.#worker.pause(true);
    this.#pause = setTimeout(() => {
      this.#pause = null;
      void this.#worker.resume();
    }, PAUSE_MS).unref();
  }
}

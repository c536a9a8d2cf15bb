/**
 * Wakes a gateway for each tick of a schedule: a BullMQ queue with a job scheduler for each schedule, whose times come from
 * our calendar.
 * Limit: a wake is only a hint. What is due is computed from the schedule itself (engine/schedules/advance.ts), so a wake
 * may come twice, late or never.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, Queue, Worker } from "bullmq";
import * as z from "zod";
import { type Calendar, type CalendarText, calendarOf, nextTick } from "../util/calendar/ticks.ts";
import { backendOf, PAUSE_MS, type QueueConnections, WORKER } from "./backend.ts";

const SCHEDULE_QUEUE = "~schedules";

export interface ScheduleQueueOptions extends QueueConnections {
  /** Makes what is due. Never throws. */
  readonly wake: (schedule: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export class ScheduleQueue {
  readonly #options: ScheduleQueueOptions;
  readonly #queue: Queue;
  readonly #worker: Worker;
  #pause: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: ScheduleQueueOptions) {
    this.#options = options;
    const { redis: connection, prefix } = options;
    const settings = {
      repeatStrategy: (ms: number, { pattern }: { pattern?: string }) => nextOf(pattern, ms),
    };
    const common = { connection, prefix, settings, streams: { events: { maxLen: 1 } } };
    const backend = backendOf(options);
    this.#queue = new Queue(SCHEDULE_QUEUE, common, backend);
    this.#queue.on("error", options.onError);
    this.#worker = new Worker(
      SCHEDULE_QUEUE,
      (job: Job) => options.wake(job.name),
      { ...common, ...WORKER },
      backend,
    );
    this.#worker.on("error", (error) => this.#onError(error));
  }

  start(): void {
    this.#worker.run().catch(this.#options.onError);
  }

  /** Waits for wakes that run, up to `graceMs`; another gateway takes over the rest. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    if (this.#pause) clearTimeout(this.#pause);
    const late = new AbortController();
    const closed = this.#worker.close(this.#options.blocking.status !== "ready");
    await Promise.race([closed, sleep(graceMs, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
  }

  /** From now on, the schedule is woken at its ticks. Safe to repeat. */
  async set(schedule: string, calendar: CalendarText): Promise<void> {
    const { cron, time_zone, every_seconds, anchor } = calendar;
    const pattern = JSON.stringify({ cron, time_zone, every_seconds, anchor });
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    await this.#queue.upsertJobScheduler(schedule, { pattern }, { name: schedule, data: {}, opts });
  }

  async remove(schedule: string): Promise<void> {
    await this.#queue.removeJobScheduler(schedule);
  }

  #onError(error: unknown): void {
    this.#options.onError(error);
    if (this.#pause || this.#stopped) return;
    void this.#worker.pause(true);
    this.#pause = setTimeout(() => {
      this.#pause = null;
      void this.#worker.resume();
    }, PAUSE_MS).unref();
  }
}

const patternSchema = z.object({
  cron: z.string().optional(),
  time_zone: z.string().optional(),
  every_seconds: z.number().optional(),
  anchor: z.string().optional(),
});

let last: { readonly pattern: string; readonly calendar: Calendar } | undefined;

function nextOf(pattern: string | undefined, ms: number): number | undefined {
  if (pattern === undefined) return undefined;
  if (last?.pattern !== pattern)
    last = { pattern, calendar: calendarOf(patternSchema.parse(JSON.parse(pattern))) };
  return nextTick(last.calendar, ms) ?? undefined;
}

/** Schedules: what is delegated again and again, and when. */
import * as z from "zod";
import {
  type Schedule,
  type ScheduleInput,
  type SchedulePatchInput,
  type ScheduleRun,
  schedulePageSchema,
  scheduleRunSchema,
  scheduleRunsSchema,
  scheduleSchema,
} from "../schema/schedule.ts";
import type { CallOptions, PageOptions } from "./admin.ts";
import { eachPage } from "./each-page.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";
import { randomKey } from "./random-key.ts";

export interface ScheduleOptions extends CallOptions {
  /** A repeat with the same key has the same result. Default: a random key for each call, which its retries share. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Creates and manages schedules. Each method but `list` and `all` throws `not_found` for a schedule that does not exist,
 * or that belongs to somebody else.
 *
 * @example
 * ```ts
 * const schedules = new Schedules();
 * const { id, next } = await schedules.create({
 *   cron: "30 9 * * MON-FRI",
 *   time_zone: "Europe/Berlin",
 *   delegation: { target: "scout", task: "read the news" },
 * });
 * ```
 */
export class Schedules {
  readonly #http: Http;

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: ConnectionOptions = {}) {
    this.#http = new Http(options);
  }

  /**
   * Delegates from now on at each tick of `cron` in `time_zone`, or every `every_seconds`. Throws `invalid_request`, with
   * the nearest good expression or zone as `details.suggestion`, and what `delegate` throws.
   */
  create(input: ScheduleInput, options: ScheduleOptions = {}): Promise<Schedule> {
    const { idempotencyKey = randomKey(), signal } = options;
    return this.#http.requestWithRetry(scheduleSchema, {
      method: "POST",
      path: "/v1/schedules",
      headers: { "idempotency-key": idempotencyKey },
      body: input,
      signal,
    });
  }

  /** Your schedules, oldest first, fetched page by page as the loop asks for them; for the operator all. */
  async *all({ pageSize: limit, signal }: PageOptions = {}): AsyncGenerator<Schedule, void> {
    const pages = eachPage((cursor) =>
      this.#http.requestWithRetry(schedulePageSchema, {
        path: "/v1/schedules",
        query: { cursor, limit },
        signal,
      }),
    );
    for await (const { schedules } of pages) yield* schedules;
  }

  /** Returns all schedules at once, otherwise like {@link Schedules.all}. */
  async list(options: PageOptions = {}): Promise<Schedule[]> {
    const found: Schedule[] = [];
    for await (const schedule of this.all(options)) found.push(schedule);
    return found;
  }

  /** The settings, the next three ticks and the newest runs. */
  get(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return this.#http.requestWithRetry(scheduleSchema, { path: route`/v1/schedules/${id}`, signal });
  }

  /** Changes the settings that are given; `null` resets one. A changed calendar counts from now. */
  patch(id: string, settings: SchedulePatchInput, { signal }: CallOptions = {}): Promise<Schedule> {
    const path = route`/v1/schedules/${id}`;
    return this.#http.requestWithRetry(scheduleSchema, { method: "PATCH", path, body: settings, signal });
  }

  /** Makes no ticks until {@link Schedules.resume}. */
  pause(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    const path = route`/v1/schedules/${id}/pause`;
    return this.#http.requestWithRetry(scheduleSchema, { method: "POST", path, signal });
  }

  /** Continues with the next tick, also if it is blocked. From now on it depends on your token. */
  resume(id: string, { signal }: CallOptions = {}): Promise<Schedule> {
    const path = route`/v1/schedules/${id}/resume`;
    return this.#http.requestWithRetry(scheduleSchema, { method: "POST", path, signal });
  }

  /** Delegates at once, outside the calendar, also while it is paused. */
  run(id: string, options: ScheduleOptions = {}): Promise<ScheduleRun> {
    const { idempotencyKey = randomKey(), signal } = options;
    return this.#http.requestWithRetry(scheduleRunSchema, {
      method: "POST",
      path: route`/v1/schedules/${id}/run`,
      headers: { "idempotency-key": idempotencyKey },
      signal,
    });
  }

  /** The newest 100 ticks and manual runs, newest first: the delegation of each, or why there is none. */
  async runs(id: string, { signal }: CallOptions = {}): Promise<ScheduleRun[]> {
    const path = route`/v1/schedules/${id}/runs`;
    return (await this.#http.requestWithRetry(scheduleRunsSchema, { path, signal })).runs;
  }

  /** Deletes it with its history; its delegations stay. */
  async delete(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), {
      method: "DELETE",
      path: route`/v1/schedules/${id}`,
      signal,
    });
  }
}

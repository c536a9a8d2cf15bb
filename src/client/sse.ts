/**
 * Server-sent events as an async iterator that skips nothing and repeats nothing, also across reconnects.
 * Limit: frames that are about no delegation, and of a type that this version does not know, are dropped.
 */

import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { StreamEvent } from "../schema/event.ts";
import { BoundedSet } from "../util/bounded.ts";
import { backoffMs, LONGEST_MS, sleep, TimeLimit } from "../util/timing.ts";
import type { ErrandApiError } from "./errors.ts";
import { isLast, toEvent, unreadable } from "./events.ts";
import type { Call, Http } from "./http.ts";
import { isLoopback } from "./outage.ts";

export interface EventsOptions {
  readonly path: string;
  readonly query?: Call["query"];
  /** The cursor to resume after; `0` is the beginning. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** True for a delegation's own stream, which ends with its final event; others continue until they are aborted. */
  readonly ends: boolean;
}

/** A connection that lasted this long resets the backoff, even without an event. */
const GOOD_MS = 5000;
/** The broker sends a comment every 15 s; after three missed ones the connection is dead. */
const SILENCE_MS = 45_000;
const HEAD_MS = 15_000;
const MAX_FRAME_CHARS = 16 * 1024 * 1024;
/** How many of the last events are remembered, to drop those that the broker repeats after a reconnect. */
const REMEMBERED = 1024;

/** What a stream has. */
export interface Kind<Event> {
  /** Null: to be dropped. */
  readonly parse: (data: unknown) => Event | null;
  /** The same for an event and its repeat; null: it is never repeated. */
  readonly keyOf: (event: Event) => string | null;
  readonly isLast: (event: Event) => boolean;
}

/** Compares delegation and seq, because events of different shards may have the same id. */
export const keyOf = (event: { readonly delegation_id: string; readonly seq: number }): string =>
  `${event.delegation_id}/${event.seq}`;

const EVENTS: Kind<StreamEvent> = {
  parse: toEvent,
  keyOf: (event) => (event.type === "DELEGATION_SNAPSHOT" || event.type === "RESET" ? null : keyOf(event)),
  isLast,
};

export const readEvents = (http: Http, options: EventsOptions): AsyncGenerator<StreamEvent, void> =>
  readStream(http, options, EVENTS);

/** Retries during an outage. Throws the signal's reason when it aborts, and errors that a retry cannot fix. */
export async function* readStream<Event>(
  http: Http,
  options: EventsOptions,
  kind: Kind<Event>,
): AsyncGenerator<Event, void> {
  const seen = new BoundedSet<string>(REMEMBERED);
  let cursor = options.after;
  let failures = 0;
  /** The broker's `retry:`, ms. It differs for each reader, so that not all reconnect at once after a restart. */
  let retryMs = 0;
  const onRetry = (ms: number) => {
    if (!isLoopback(http.url)) retryMs = Math.min(ms, LONGEST_MS);
  };
  for (;;) {
    let failure: ErrandApiError | undefined;
    const openedAt = performance.now();
    const limit = new TimeLimit(HEAD_MS, options.signal);
    try {
      for await (const frame of frames(http, options, cursor, limit, onRetry)) {
        failures = 0;
        cursor = frame.id ?? cursor;
        const event = kind.parse(dataOf(frame));
        if (event === null) continue;
        const key = kind.keyOf(event);
        if (key !== null && seen.has(key)) continue;
        if (key !== null) seen.add(key);
        yield event;
        if (options.ends && kind.isLast(event)) return;
      }
    } catch (error) {
      if (error === ENDED) return;
      if (!http.isTemporary(error)) throw error;
      failure = error;
    } finally {
      limit.close();
    }
    if (performance.now() - openedAt > GOOD_MS) failures = 0;
    const delayMs = Math.max(retryMs, backoffMs(failures, failure?.retryAfterMs));
    retryMs = 0;
    failures += 1;
    if (failure) http.onRetry?.(failure, delayMs);
    await sleep(delayMs, options.signal);
  }
}

/** For a 204: the cursor is at the end of the stream. */
const ENDED = new Error("the stream has ended");

async function* frames(
  http: Http,
  options: EventsOptions,
  cursor: string | undefined,
  limit: TimeLimit,
  onRetry: (ms: number) => void,
): AsyncGenerator<EventSourceMessage, void> {
  const headers = {
    accept: "text/event-stream",
    ...(cursor !== undefined && { "last-event-id": cursor }),
  };
  const response = await http.open({ path: options.path, query: options.query ?? {}, headers }, limit);
  if (response.status === 204) throw ENDED;
  const queue: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: (frame) => queue.push(frame),
    onRetry,
    maxBufferSize: MAX_FRAME_CHARS,
  });
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      // Only the wait for the broker counts as silence, not the time that the consumer takes.
      limit.restart(SILENCE_MS);
      const chunk = await reader.read().catch((error: unknown) => {
        throw http.toError(error, limit);
      });
      limit.restart(Number.POSITIVE_INFINITY);
      if (chunk.done) return;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      for (let frame = queue.shift(); frame; frame = queue.shift()) yield frame;
    }
  } finally {
    // A stream that has failed or ended cannot be canceled; the connection is over in either case.
    reader.cancel().catch(() => undefined);
  }
}

function dataOf(frame: EventSourceMessage): unknown {
  try {
    return JSON.parse(frame.data);
  } catch {
    throw unreadable("not JSON");
  }
}

/**
 * Server-sent events: writes an async iterator of frames at the reader's pace. Limit: a reader that stalls is
 * disconnected, and resumes by its cursor; it never grows the gateway's memory.
 */

import type { Quota } from "../../engine/access/quotas.ts";
import type { Broker } from "../../engine/broker.ts";
import type { SubscribedEvent } from "../../engine/events/subscribe.ts";
import { formatCursor } from "../../events/cursor.ts";
import { toEventJson } from "../../events/entry.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import { CHUNK_BYTES } from "./outflow.ts";
import type { RequestScope } from "./request-scope.ts";

const COMMENT_MS = 15_000;
const STALLED_MS = 30_000;
const encoder = new TextEncoder();

export interface Frame {
  /** The cursor to resume from; absent if the stream cannot be resumed. */
  readonly id?: string;
  /** Absent if the protocol does not name its events. */
  readonly type?: string;
  /** One JSON object, without line breaks. */
  readonly json: string;
}

/** A position that has no frame of its own; sent with the next comment. */
export interface Reached {
  readonly reached: string;
}

/** Undefined for an item that subscribers do not see. */
export function toFrame(event: SubscribedEvent): Frame | undefined {
  if ("caught_up" in event || "skipped" in event) return undefined;
  const id = formatCursor(event.positions);
  if ("reset" in event) return { id, type: "RESET", json: JSON.stringify({ id, type: "RESET" }) };
  return { id, type: event.entry.type, json: toEventJson(event.entry, id) };
}

export async function* toFrames(events: AsyncIterable<SubscribedEvent>): AsyncGenerator<Frame | Reached> {
  for await (const event of events) {
    if ("skipped" in event) yield { reached: formatCursor(event.positions) };
    const frame = toFrame(event);
    if (frame) yield frame;
  }
}

type StreamScope = Pick<RequestScope, "signal" | "release">;

/** The part of an {@link AuthenticatedRequest} that a stream needs. */
export type Reader = Pick<AuthenticatedRequest, "cut" | "requestId" | "reserve"> & {
  readonly openScope: (quota: Quota) => StreamScope;
  readonly broker: Pick<Broker, "log" | "metrics">;
};

/** JSON has no raw line breaks, and types and cursors are ours, so a frame cannot be forged. */
function encode({ id, type, json }: Frame): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${type === undefined ? "" : `event: ${type}\n`}`;
  return `${head}data: ${json}\n\n`;
}

/**
 * `open` gets the signal that ends the stream. It is called at the first read: the response to a HEAD has no body, so
 * nothing would close what `open` returns. The quota is acquired at once, while an error status can still be
 * sent, and released at the latest with the connection.
 */
export function sse(reader: Reader, open: (signal: AbortSignal) => AsyncIterable<Frame | Reached>): Response {
  const scope = reader.openScope("streams");
  scope.signal.addEventListener("abort", () => scope.release(), { once: true });
  if (scope.signal.aborted) scope.release();
  let pump: Pump | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!pump) {
          pump = new Pump(reader, scope, open);
          // Readers that lose their streams at the same moment must not reconnect at the same moment.
          controller.enqueue(encoder.encode(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`));
          return;
        }
        const bytes = await pump.next();
        if (pump.canceled) return;
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: () => (pump ? pump.cancel() : scope.release()),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

type Step = { readonly frame: Frame } | { readonly failed: unknown } | "end";

/** One open stream: frames at the reader's pace, comments during silence, a watchdog for readers that stall. */
class Pump {
  readonly #reader: Reader;
  readonly #frames: AsyncIterator<Frame | Reached>;
  readonly #scope: StreamScope;
  readonly #gone = new AbortController();
  readonly #watchdog: NodeJS.Timeout;
  /** The rest of the current frame. */
  #unsent = new Uint8Array();
  /** The next step, if it has arrived. */
  #step: Step | undefined;
  #onStep: () => void = () => {};
  #reached: string | null = null;
  #wroteAt = Date.now();
  #pulling = false;
  #closed = false;
  /** Releases the reservation of the current frame. */
  #release: () => void = () => {};
  canceled = false;

  constructor(
    reader: Reader,
    scope: StreamScope,
    open: (signal: AbortSignal) => AsyncIterable<Frame | Reached>,
  ) {
    this.#reader = reader;
    this.#scope = scope;
    scope.signal.addEventListener("abort", () => this.#gone.abort(), { once: true });
    if (scope.signal.aborted) this.#gone.abort();
    this.#frames = open(this.#gone.signal)[Symbol.asyncIterator]();
    this.#ask();
    this.#watchdog = setInterval(() => {
      if (!this.#pulling && Date.now() - this.#wroteAt > STALLED_MS) reader.cut();
    }, COMMENT_MS).unref();
    reader.broker.metrics.streams.inc();
  }

  /**
   * The next bytes of a frame or comment; null at the end. A large frame is sent in pieces, because the progress of a
   * slow reader within one write is invisible.
   */
  async next(): Promise<Uint8Array | null> {
    if (this.#unsent.length === 0) {
      const text = await this.#text();
      if (text === null) return null;
      this.#unsent = encoder.encode(text);
    }
    const piece = this.#unsent.subarray(0, CHUNK_BYTES);
    this.#unsent = this.#unsent.subarray(CHUNK_BYTES);
    this.#wroteAt = Date.now();
    return piece;
  }

  async #text(): Promise<string | null> {
    this.#pulling = true;
    this.#release();
    try {
      const step = await this.#take();
      if (step === undefined) return this.#comment();
      if (step === "end") {
        this.#close();
        return null;
      }
      if ("failed" in step) throw step.failed;
      this.#reached = null;
      const release = await this.#reader.reserve(step.frame.json.length);
      if (this.#closed) release();
      else this.#release = release;
      this.#ask();
      return encode(step.frame);
    } catch (error) {
      this.#close();
      if (!this.canceled) {
        this.#reader.broker.log.warn(
          { request_id: this.#reader.requestId, err: error instanceof Error ? error.message : "unknown" },
          "stream ended early; the reader resumes by its cursor",
        );
      }
      return null;
    } finally {
      this.#pulling = false;
    }
  }

  async cancel(): Promise<void> {
    this.canceled = true;
    this.#close();
    await this.#frames.return?.();
  }

  #ask(): void {
    const arrive = (step: Step) => {
      this.#step = step;
      this.#onStep();
    };
    this.#frames.next().then(
      ({ done, value }) => {
        if (done) return arrive("end");
        if (!("reached" in value)) return arrive({ frame: value });
        this.#reached = value.reached;
        this.#ask();
      },
      (failed: unknown) => arrive({ failed }),
    );
  }

  /**
   * The next step, or undefined after {@link COMMENT_MS} without one. (Promise.race against a long-lived promise would add
   * a reaction to it each time.)
   */
  async #take(): Promise<Step | undefined> {
    if (this.#step === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, COMMENT_MS);
        this.#onStep = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const step = this.#step;
    this.#step = undefined;
    return step;
  }

  /** A comment with the position reached, if any: a block without data is no event, but updates the Last-Event-ID. */
  #comment(): string {
    const reached = this.#reached;
    this.#reached = null;
    return reached === null ? ": still here\n\n" : `: still here\nid: ${reached}\n\n`;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watchdog);
    this.#release();
    this.#scope.release();
    this.#gone.abort();
    this.#reader.broker.metrics.streams.dec();
  }
}

/**
 * Server-sent events: an async iterator of frames onto a connection, at the reader's pace. Limit: a reader
 * that does not read for a while is cut and resumes by its cursor; it never grows the gateway's memory.
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
  /** Where a reader resumes; absent where there is no resuming. */
  readonly id?: string;
  /** Absent where the protocol has no names for events. */
  readonly type?: string;
  /** One JSON object, without line breaks. */
  readonly json: string;
}

/** How far a reader has come without a frame for it; told with the next comment. */
export interface Reached {
  readonly reached: string;
}

/** Undefined for what is not told to subscribers. */
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

/** What a stream needs of its {@link AuthenticatedRequest}. */
export type Reader = Pick<AuthenticatedRequest, "cut" | "requestId" | "reserve"> & {
  readonly openScope: (quota: Quota) => StreamScope;
  readonly broker: Pick<Broker, "log" | "metrics">;
};

/** JSON never holds a raw line break, and types and cursors are ours, so a frame can not be forged. */
function encode({ id, type, json }: Frame): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${type === undefined ? "" : `event: ${type}\n`}`;
  return `${head}data: ${json}\n\n`;
}

/**
 * `open` gets the signal that ends the stream. Nothing is opened before the first read: the answer to a HEAD has
 * no body, and nobody would ever close what stands behind it. The place among the caller's streams is taken at once,
 * while there still is a status to refuse with, and given back with the connection at the latest.
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
          // Readers that lose many streams at once must not come back in step.
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

/** One open stream: frames at the reader's pace, comments in silence, an end for who stops reading. */
class Pump {
  readonly #reader: Reader;
  readonly #frames: AsyncIterator<Frame | Reached>;
  readonly #scope: StreamScope;
  readonly #gone = new AbortController();
  readonly #watchdog: NodeJS.Timeout;
  /** The rest of the frame that is being sent. */
  #unsent = new Uint8Array();
  /** What has come and was not taken yet. */
  #step: Step | undefined;
  #onStep: () => void = () => {};
  #reached: string | null = null;
  #wroteAt = Date.now();
  #pulling = false;
  #closed = false;
  /** Of the room that the frame on its way takes. */
  #giveBack: () => void = () => {};
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
   * The next bytes of a frame or comment; null at the end. A large frame goes in pieces, because the progress of a slow
   * reader within one write cannot be seen.
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
    this.#giveBack();
    try {
      const step = await this.#take();
      if (step === undefined) return this.#comment();
      if (step === "end") {
        this.#close();
        return null;
      }
      if ("failed" in step) throw step.failed;
      this.#reached = null;
      const giveBack = await this.#reader.reserve(step.frame.json.length);
      if (this.#closed) giveBack();
      else this.#giveBack = giveBack;
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
    const come = (step: Step) => {
      this.#step = step;
      this.#onStep();
    };
    this.#frames.next().then(
      ({ done, value }) => {
        if (done) return come("end");
        if (!("reached" in value)) return come({ frame: value });
        this.#reached = value.reached;
        this.#ask();
      },
      (failed: unknown) => come({ failed }),
    );
  }

  /**
   * The next step, or undefined after a while of silence. (A race against a promise that lasts as long as the silence
   * would leave something behind on it each time.)
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

  /** With an id where there is one to resume by: a block without data moves a reader's Last-Event-ID, and is no event. */
  #comment(): string {
    const reached = this.#reached;
    this.#reached = null;
    return reached === null ? ": still here\n\n" : `: still here\nid: ${reached}\n\n`;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watchdog);
    this.#giveBack();
    this.#scope.release();
    this.#gone.abort();
    this.#reader.broker.metrics.streams.dec();
  }
}

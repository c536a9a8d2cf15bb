/**
 * Server-sent events: writes the items of one generator at the reader's pace, to Node's own response: a web stream takes
 * twice the memory. The items are events (`watch()` in events/watch.ts) or frames of a protocol of its own (A2A,
 * AG-UI). An event of the wire, written by {@link encode}:
 *
 *     id: 1718000000000-0
 *     event: DELEGATION_STATUS
 *     data: {"id":"1718000000000-0","type":"DELEGATION_STATUS","delegation_id":"dlg_0_…","seq":3,…}
 *
 * The next item is asked for when Node has taken the last one, so what waits is bounded in watch(). Limit: a reader that
 * stalls is disconnected, and resumes by its cursor; it never grows the gateway's memory.
 */
import type { Writable } from "node:stream";
import type { Quota } from "../../engine/access/quotas.ts";
import type { Broker } from "../../engine/broker.ts";
import { formatCursor, type Positions } from "../../events/cursor.ts";
import { toEventJson } from "../../events/entry.ts";
import type { Watched } from "../../events/watch.ts";
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import { CHUNK_BYTES } from "./outflow.ts";
import type { RequestScope } from "./request-scope.ts";
import type { StreamTicker, Ticking } from "./stream-ticker.ts";
import { TextResponse } from "./text-response.ts";

const COMMENT_MS = 15_000;
const STALLED_MS = 30_000;
const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

export interface Frame {
  /** The cursor to resume from; absent if the stream cannot be resumed. */
  readonly id?: string;
  /** Absent if the protocol does not name its events. */
  readonly type?: string;
  /** One JSON object, without line breaks. */
  readonly json: string;
  /** Its bytes are counted already. */
  readonly isHeld?: boolean;
}

/** Undefined for an item that readers do not see. */
export function toFrame(event: Watched): Frame | undefined {
  if ("caught_up" in event || "skipped" in event) return undefined;
  const id = formatCursor(event.positions);
  if ("reset" in event) return { id, type: "RESET", json: JSON.stringify({ id, type: "RESET" }) };
  const { entry, isHeld } = event;
  return { id, type: entry.type, json: toEventJson(entry, id), isHeld };
}

type StreamScope = StopSignal & Pick<RequestScope, "release">;

/** The part of an {@link AuthenticatedRequest} that a stream needs. */
export type Reader = Pick<AuthenticatedRequest, "cut" | "requestId" | "reserve"> & {
  readonly openScope: (quota: Quota) => StreamScope;
  readonly broker: Pick<Broker, "log" | "metrics">;
};

/** The parts of a request that its stream needs; `reserved` is a scope that was opened before work was accepted. */
export const toReader = (request: AuthenticatedRequest, reserved?: StreamScope): Reader => ({
  broker: request.broker,
  requestId: request.requestId,
  cut: () => request.cut(),
  reserve: (bytes) => request.reserve(bytes),
  openScope: (quota) => reserved ?? request.openScope(quota),
});

/** The part of Node's response that a stream needs. */
type Outgoing = Pick<Writable, "destroyed" | "end" | "once" | "write" | "writableNeedDrain"> & {
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown;
  flushHeaders(): void;
};

/** Some clients (httpx-sse) deliver a block without data as an empty event, so no block lacks data. */
function positionFrame(id: string): Frame {
  return { id, type: "CURSOR", json: JSON.stringify({ id, type: "CURSOR" }) };
}

/** Without an empty line, which would end a block. */
const COMMENT = ": still here\n";

/** JSON has no raw line breaks, and types and cursors are ours, so a frame cannot be forged. */
function encode({ id, type, json }: Frame): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${type === undefined ? "" : `event: ${type}\n`}`;
  return `${head}data: ${json}\n\n`;
}

/** A stream that is over after one event. */
export const singleEvent = (frame: Frame, headers: Readonly<Record<string, string>>): TextResponse =>
  new TextResponse(200, encode(frame), { ...HEADERS, ...headers });

type Open = (signal: StopSignal) => AsyncIterable<Frame | Watched>;

interface Beginning {
  readonly headers?: Readonly<Record<string, string>>;
  /** The position at which the stream begins, sent before everything else. */
  readonly from?: Positions;
  /** A frame before those of `open`. */
  readonly first?: Frame;
}

/**
 * A response that is a stream: frames at the reader's pace, comments during silence. One object, because there may be
 * thousands.
 */
export class EventStream implements AbortListener, Ticking {
  readonly status = 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly #reader: Reader;
  readonly #scope: StreamScope;
  readonly #open: Open | null;
  readonly #first: Frame | undefined;
  /** Set while the stream is open. */
  #outgoing: Outgoing | undefined;
  #ticker: StreamTicker | undefined;
  /** Continues a write that waits for the reader. */
  #resume: (() => void) | undefined;
  /** A position that has no frame of its own; sent in place of the next comment. */
  #reached: Positions | null = null;
  #sentRetry = false;
  #wroteAt = 0;

  /**
   * `open` gets the signal that ends the stream, and is called when the stream is written; null: only `first` is sent.
   * The quota is acquired at once, while an error status can still be sent, and released at the latest with the connection.
   */
  constructor(reader: Reader, open: Open | null, { headers, from, first }: Beginning = {}) {
    this.headers = headers ? { ...HEADERS, ...headers } : HEADERS;
    this.#reader = reader;
    this.#open = open;
    this.#reached = from ?? null;
    this.#first = first;
    this.#scope = reader.openScope("streams");
    this.#scope.addEventListener("abort", this);
    if (this.#scope.aborted) this.#scope.release();
  }

  /** For a response without a body. */
  discard(): void {
    this.#scope.release();
  }

  /** `common` are the headers of every response. */
  writeTo(outgoing: Outgoing, common: Readonly<Record<string, string>>, ticker: StreamTicker): void {
    if (outgoing.destroyed) {
      this.discard();
      return;
    }
    this.#outgoing = outgoing;
    this.#ticker = ticker;
    outgoing.writeHead(this.status, { ...common, ...this.headers });
    outgoing.flushHeaders();
    this.#wroteAt = Date.now();
    ticker.add(this);
    this.#reader.broker.metrics.streams.inc();
    void this.#run(outgoing);
  }

  /** Called when the reader left, the token ended or the gateway stops. The frames end, too. */
  handleEvent(): void {
    this.#scope.release();
    // Otherwise the reader still gets the rest of its frame.
    if (this.#outgoing?.destroyed) this.#close();
  }

  tick(now: number): void {
    if (!this.#outgoing) return;
    const silentMs = now - this.#wroteAt;
    if (this.#outgoing.writableNeedDrain) {
      if (silentMs > STALLED_MS) this.#reader.cut();
    } else if (silentMs >= COMMENT_MS) {
      this.#wroteAt = now;
      this.#outgoing.write(this.#position() ?? COMMENT);
    }
  }

  async #run(outgoing: Outgoing): Promise<void> {
    try {
      // A stream that is lost before its first frame is resumed where it began.
      const began = this.#position();
      if (began !== undefined) await this.#write(outgoing, began);
      if (this.#first) await this.#send(outgoing, this.#first);
      for await (const item of this.#open?.(this.#scope) ?? []) {
        if (!this.#outgoing) return;
        if ("skipped" in item) this.#reached = item.positions;
        const frame = "json" in item ? item : toFrame(item);
        if (frame) await this.#send(outgoing, frame);
      }
    } catch (error) {
      if (this.#outgoing) {
        this.#reader.broker.log.warn(
          { request_id: this.#reader.requestId, err: error instanceof Error ? error.message : "unknown" },
          "stream ended early; the reader resumes by its cursor",
        );
      }
    } finally {
      this.#close();
      if (!outgoing.destroyed) outgoing.end();
    }
  }

  async #send(outgoing: Outgoing, frame: Frame): Promise<void> {
    this.#reached = null;
    const release = frame.isHeld ? () => {} : await this.#reader.reserve(frame.json.length);
    try {
      await this.#write(outgoing, this.#retry(frame) + encode(frame));
    } finally {
      release();
    }
  }

  /** A large frame is written in pieces, because the progress of a slow reader within one write is invisible. */
  async #write(outgoing: Outgoing, text: string): Promise<void> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length && this.#outgoing; at += CHUNK_BYTES) {
      this.#wroteAt = Date.now();
      if (outgoing.write(bytes.subarray(at, at + CHUNK_BYTES))) continue;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
        outgoing.once("drain", resolve);
      });
    }
  }

  /** The position reached, if any, as a block. */
  #position(): string | undefined {
    if (this.#reached === null) return undefined;
    const frame = positionFrame(formatCursor(this.#reached));
    this.#reached = null;
    return this.#retry(frame) + encode(frame);
  }

  /**
   * The delay of a reconnect, in the first block that can be resumed from: only an EventSource reconnects. Random, because
   * readers that lose their streams at the same moment must not reconnect at the same moment.
   */
  #retry({ id }: Frame): string {
    if (this.#sentRetry || id === undefined) return "";
    this.#sentRetry = true;
    return `retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n`;
  }

  #close(): void {
    if (!this.#outgoing) return;
    this.#outgoing = undefined;
    this.#ticker?.delete(this);
    this.#scope.release();
    this.#reader.broker.metrics.streams.dec();
    this.#resume?.();
  }
}

/**
 * Server-sent events: an async iterator of frames onto a connection, at the reader's pace. Limit: a reader
 * that does not read for a while is cut and resumes by its cursor; it never grows the gateway's memory.
 */
import { formatCursor } from "../events/cursor.ts";
import { toEventJson } from "../events/entry.ts";
import type { Watched } from "../events/watch.ts";
import type { Call } from "./call.ts";

const COMMENT_MS = 15_000;
const STALLED_MS = 30_000;
const encoder = new TextEncoder();

export interface Frame {
  readonly id: string;
  readonly type: string;
  /** One JSON object, without line breaks. */
  readonly json: string;
}

/** Undefined for what is not told to subscribers. */
export function toFrame(watched: Watched): Frame | undefined {
  if ("reset" in watched) return { id: "", type: "RESET", json: '{"id":"","type":"RESET"}' };
  if ("caught_up" in watched) return undefined;
  const id = formatCursor(watched.positions);
  return { id, type: watched.entry.type, json: toEventJson(watched.entry, id) };
}

/** JSON never holds a raw line break, and types and cursors are ours, so a frame can not be forged. */
function encode({ id, type, json }: Frame): string {
  return `${id === "" ? "" : `id: ${id}\n`}event: ${type}\ndata: ${json}\n\n`;
}

/** `open` gets the signal that ends the stream; `release` of the hold is taken care of here. */
export function sse(call: Call, open: (signal: AbortSignal) => AsyncIterable<Frame>): Response {
  const hold = call.hold();
  const gone = new AbortController();
  hold.signal.addEventListener("abort", () => gone.abort(), { once: true });
  if (hold.signal.aborted) gone.abort();
  const frames = open(gone.signal)[Symbol.asyncIterator]();
  let next = frames.next();
  let wroteAt = Date.now();
  let pulling = false;
  let canceled = false;
  call.broker.metrics.streams.inc();
  let counted = true;
  const watchdog = setInterval(() => {
    if (!pulling && Date.now() - wroteAt > STALLED_MS) call.cut();
  }, COMMENT_MS).unref();
  const close = () => {
    if (counted) call.broker.metrics.streams.dec();
    counted = false;
    clearInterval(watchdog);
    hold.release();
    gone.abort();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // Readers that lose many streams at once must not come back in step.
      controller.enqueue(encoder.encode(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`));
    },
    async pull(controller) {
      pulling = true;
      try {
        const result = await within(next, COMMENT_MS);
        if (canceled) return;
        if (result === "silence") {
          controller.enqueue(encoder.encode(": still here\n\n"));
        } else if (result.done) {
          close();
          controller.close();
        } else {
          controller.enqueue(encoder.encode(encode(result.value)));
          next = frames.next();
        }
      } catch (error) {
        if (canceled) return;
        close();
        call.broker.log.warn(
          { request_id: call.requestId, err: error instanceof Error ? error.message : "unknown" },
          "stream ended early; the reader resumes by its cursor",
        );
        controller.close();
      } finally {
        pulling = false;
        wroteAt = Date.now();
      }
    },
    async cancel() {
      canceled = true;
      close();
      await frames.return?.();
    },
  });
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | "silence"> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<"silence">((resolve) => {
    timer = setTimeout(() => resolve("silence"), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}

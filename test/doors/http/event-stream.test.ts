/** Event streams as HTTP: comments while idle, positions, and readers that are slow or do not read. */
import { get, type IncomingMessage } from "node:http";
import { Writable } from "node:stream";
import { createParser } from "eventsource-parser";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { EventStream, type Frame, type Reader, toFrame } from "../../../src/doors/http/event-stream.ts";
import { StreamTicker } from "../../../src/doors/http/stream-ticker.ts";
import type { Watched } from "../../../src/events/watch.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import type { StopSignal } from "../../../src/util/stop-signal.ts";
import { as, startBroker } from "../../support/broker.ts";
import { entryFields } from "../../support/entry.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

/** As in the documentation. */
const COMMENT_MS = 15_000;
/** Longer than a reader may stall. */
const LONG_MS = 60_000;
/** As long as a reader may stall. */
const SHORT_MS = 25_000;

/** A response whose reader takes one chunk after the other, when the test says so. */
class SlowResponse extends Writable {
  #chunks: Buffer[] = [];
  #took = () => {};
  #arrived = () => {};

  constructor() {
    super({ highWaterMark: 1 });
  }

  writeHead(): this {
    return this;
  }

  flushHeaders(): void {}

  override _write(chunk: Buffer, _encoding: string, took: () => void): void {
    this.#chunks.push(chunk);
    this.#took = took;
    this.#arrived();
  }

  /** The next chunk; waits for it. */
  async take(): Promise<Uint8Array> {
    if (this.#chunks.length === 0) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
    const chunk = this.#chunks.shift();
    this.#took();
    return chunk ?? new Uint8Array();
  }
}

const skipped = (position: string): Watched => ({ skipped: true, positions: [position] });

/** No empty line, which some clients take for an event. */
const COMMENT = /^:[^\n]*\n$/;

describe("an idle stream, its time moved by the test", () => {
  /** The reader of a stream without events until `send`. */
  function open() {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const cut = vi.fn();
    let send = (_frame: Frame | Watched) => {};
    /** How often the next event was asked for. */
    let asked = 0;
    const gone = new AbortController();
    const reader: Reader = {
      requestId: "req_1",
      broker: { log: createLog("silent", () => {}), metrics: new Metrics() },
      openScope: () => Object.assign(gone.signal, { release: () => {} }),
      cut,
      reserve: async () => () => {},
    };
    const generate = async function* (signal: StopSignal) {
      while (!signal.aborted) {
        const frame = await new Promise<Frame | Watched | null>((resolve) => {
          send = resolve;
          signal.addEventListener("abort", { handleEvent: () => resolve(null) });
        });
        if (frame) yield frame;
      }
    };
    const frames = (signal: StopSignal) => {
      const generator = generate(signal);
      const next = () => {
        asked += 1;
        return generator.next();
      };
      return { [Symbol.asyncIterator]: () => ({ next, return: () => generator.return() }) };
    };
    const response = new SlowResponse();
    new EventStream(reader, frames).writeTo(response, {}, new StreamTicker());
    const bytes = () => response.take();
    const read = async () => new TextDecoder().decode(await bytes());
    const close = () => {
      response.destroy();
      gone.abort();
    };
    const tell = async (frame: Frame | Watched) => {
      send(frame);
      await vi.advanceTimersByTimeAsync(0);
    };
    return { read, bytes, cut, send: tell, asked: () => asked, close };
  }

  test("sends a comment every 15 s after the last write", async () => {
    const { read, send, close } = open();
    let came: string | null = null;
    const next = () => {
      came = null;
      void read().then((text) => {
        came = text;
      });
    };
    for (let round = 0; round < 3; round += 1) {
      next();
      await vi.advanceTimersByTimeAsync(COMMENT_MS - 1);
      expect(came).toBeNull();
      await vi.advanceTimersByTimeAsync(1);
      expect(came).toMatch(COMMENT);
    }
    next();
    await vi.advanceTimersByTimeAsync(COMMENT_MS - 1);
    await send({ id: "1-0", type: "X", json: "{}" });
    expect(came).toMatch(/^retry: \d{4}\nid: 1-0\nevent: X\ndata: \{\}\n\n$/);
    next();
    await vi.advanceTimersByTimeAsync(COMMENT_MS - 1);
    expect(came).toBeNull();
    close();
  });

  test("reports a position without an event in place of a comment, once, and none after an event", async () => {
    const { read, send, close } = open();
    const comment = async () => {
      const text = read();
      await vi.advanceTimersByTimeAsync(COMMENT_MS);
      return text;
    };
    let text = read();
    await send(skipped("2-0"));
    await send(skipped("3-0"));
    await vi.advanceTimersByTimeAsync(COMMENT_MS);
    expect(await text).toMatch(
      /^retry: \d{4}\nid: 3-0\nevent: CURSOR\ndata: \{"id":"3-0","type":"CURSOR"\}\n\n$/,
    );
    expect(await comment()).toMatch(COMMENT);
    text = read();
    await send(skipped("4-0"));
    await send({ id: "5-0", type: "X", json: "{}" });
    expect(await text).toBe("id: 5-0\nevent: X\ndata: {}\n\n");
    expect(await comment()).toMatch(COMMENT);
    close();
  });

  test("without ids it has no retry, and no client sees an event without data", async () => {
    const { read, send, close } = open();
    let text = "";
    for (const frame of [null, { json: "{}" }, null, { json: "{}" }, skipped("3-0"), null, null]) {
      const next = read();
      if (frame) await send(frame);
      if (!frame || "skipped" in frame) await vi.advanceTimersByTimeAsync(COMMENT_MS);
      text += await next;
    }
    const blocks = text.split("\n\n");
    expect(blocks.at(-1)).toMatch(/^(?::[^\n]*\n)*$/);
    expect(blocks.slice(0, -1).filter((block) => !/^data: ./m.test(block))).toEqual([]);
    expect(blocks.map((block) => /^retry: \d{4}$/m.test(block))).toEqual([false, false, true, false]);
    close();
  });

  test("leaves nothing behind with a comment", async () => {
    const { read, asked, close } = open();
    for (let round = 0; round < 20; round += 1) {
      const comment = read();
      await vi.advanceTimersByTimeAsync(COMMENT_MS);
      await comment;
    }
    expect(asked()).toBe(1);
    close();
  });

  test("a reader that waits or pauses stays connected; one that does not read for long is disconnected", async () => {
    const { read, cut, close } = open();
    for (let waited = 0; waited < 10 * LONG_MS; waited += COMMENT_MS) {
      const comment = read();
      await vi.advanceTimersByTimeAsync(COMMENT_MS);
      await comment;
    }
    await vi.advanceTimersByTimeAsync(SHORT_MS);
    expect(cut).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(cut).toHaveBeenCalled();
    close();
  });

  test("a slow reader of a large event is not cut while it reads, and is cut within the event once it stops", async () => {
    const json = `{"text":"${"€".repeat(300_000)}"}`;
    const slow = async (most: number) => {
      const stream = open();
      const decoder = new TextDecoder();
      let text = "";
      for (let first = true; text.length < most && !text.endsWith("\n\n"); first = false) {
        const coming = stream.bytes();
        if (first) await stream.send({ id: "1-0", type: "X", json });
        const piece = await coming;
        text += decoder.decode(piece, { stream: true });
        // 10 KB/s.
        await vi.advanceTimersByTimeAsync(piece.length / 10);
      }
      return { ...stream, text };
    };
    const reader = await slow(Number.POSITIVE_INFINITY);
    expect(reader.text.replace(/^retry: \d{4}\n/, "")).toBe(`id: 1-0\nevent: X\ndata: ${json}\n\n`);
    expect(reader.cut).not.toHaveBeenCalled();
    reader.close();
    const stopped = await slow(100_000);
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(stopped.cut).toHaveBeenCalled();
    stopped.close();
  });
});

test("only events and a reset have frames", () => {
  const positions = ["2-0", "1-0"];
  expect(toFrame({ caught_up: true, positions })).toBeUndefined();
  expect(toFrame({ skipped: true, positions })).toBeUndefined();
  const json = '{"id":"2-0.1-0","type":"RESET"}';
  expect(toFrame({ reset: true, positions })).toEqual({ id: "2-0.1-0", type: "RESET", json });
});

const EVENTS = 3_000;
const EVENT_CHARS = 8_000;

/** A subscriber that reads nothing until the test says so. */
async function openStalled(url: string, token: string) {
  let finish = (_text: string) => {};
  const whole = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
    get(url, { headers }, resolve).on("error", reject);
  });
  return {
    /** Everything received when the connection ended. */
    read: () => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("error", () => {});
      response.once("close", () => finish(text));
      return whole;
    },
  };
}

test("a reader that does not read is disconnected, and resumes by its cursor without a gap", async () => {
  const { url, redis, gateway } = await startBroker();
  const alice = await as(url, "caller:alice");
  const note = `"note":"${"x".repeat(EVENT_CHARS)}"`;
  const batch = redis.pipeline();
  for (let n = 0; n < EVENTS; n += 1) {
    batch.xadd(
      "{errand:0}:feed:caller:alice",
      "*",
      ...entryFields({ seq: n, delegator: "caller:alice", more: note }),
    );
  }
  await batch.exec();
  const open = async () => {
    const [, count] = /^errand_event_streams (\d+)/m.exec(await gateway.broker.metrics.text()) ?? [];
    return Number(count);
  };

  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const reading = await openStream(`${url}/v1/events`, { token: alice.token });
  const stalled = await openStalled(`${url}/v1/events?after=0`, alice.token);
  await until(async () => (await open()) === 2);
  await until(
    async () => {
      vi.advanceTimersByTime(COMMENT_MS);
      return (await open()) === 1;
    },
    { timeoutMs: 1_000 * LONG_MS, what: "the cut" },
  );
  expect(reading.isOpen()).toBe(true);
  vi.useRealTimers();
  reading.close();

  const seen: { id: string; seq: number }[] = [];
  const parser = createParser({
    onEvent: ({ id = "", data }) => seen.push({ id, seq: JSON.parse(data).seq }),
  });
  parser.feed(await stalled.read());
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(EVENTS);
  const rest = await openStream(`${url}/v1/events`, {
    token: alice.token,
    lastEventId: seen.at(-1)?.id ?? "",
  });
  await until(() => seen.length + rest.events.length >= EVENTS);
  rest.close();
  const all = [...seen.map(({ seq }) => seq), ...rest.events.map(({ data }) => data.seq)];
  expect(all).toEqual(Array.from({ length: EVENTS }, (_, n) => n));
}, 120_000);

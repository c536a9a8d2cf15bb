/** A subscriber that resumes by Last-Event-ID whenever its stream ends. Limit: `/v1/events` only. */
import { onTestFinished } from "vitest";
import { openStream, type Stream } from "./sse.ts";
import { until } from "./until.ts";

export interface Subscriber {
  /** All events received, over all connections, in order. */
  readonly events: Stream["events"];
  /** The number of streams opened so far. */
  readonly opened: () => number;
  readonly isOpen: () => boolean;
  /** The newest cursor. */
  readonly cursor: () => string;
  /** Cuts the open stream. */
  readonly cut: () => void;
  readonly stop: () => Promise<void>;
}

/** Starts at the beginning; each new stream uses the next of `urls`. */
export function subscribe(urls: readonly string[], token: string): Subscriber {
  const events: Stream["events"] = [];
  let opened = 0;
  let stopped = false;
  let current: Stream | null = null;
  const last = () => events.findLast(({ id }) => id !== "")?.id ?? "0";

  const open = async (): Promise<Stream | "stopped" | null> => {
    if (stopped) return "stopped";
    const url = `${urls[opened % urls.length]}/v1/events`;
    opened += 1;
    const stream = await openStream(url, { token, lastEventId: last() });
    return stream.isOpen() || stream.events.length > 0 ? stream : null;
  };
  const run = async () => {
    for (;;) {
      const stream = await until(open, { what: "a stream" });
      if (stream === "stopped") return;
      current = stream;
      if (stopped) stream.close();
      await until(() => !stream.isOpen(), { timeoutMs: 600_000 });
      current = null;
      events.push(...stream.events);
    }
  };
  const done = run();
  const stop = async () => {
    stopped = true;
    current?.close();
    await done;
  };
  onTestFinished(stop);
  return {
    get events() {
      return current ? [...events, ...current.events] : events;
    },
    opened: () => opened,
    isOpen: () => current?.isOpen() === true,
    cursor: last,
    cut: () => current?.close(),
    stop,
  };
}

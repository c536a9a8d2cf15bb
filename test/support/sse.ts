/** Reads a stream of server-sent events with fetch. Limit: it does not reconnect; the library does. */
import { createParser } from "eventsource-parser";
import { OPERATOR } from "./broker.ts";
import { until } from "./until.ts";

export interface Stream {
  readonly status: number;
  readonly headers: Headers;
  readonly events: { id: string; event: string; data: ReturnType<typeof JSON.parse> }[];
  readonly isOpen: () => boolean;
  readonly ended: () => Promise<unknown>;
  readonly has: (type: string) => Promise<unknown>;
  readonly close: () => void;
}

export async function openStream(
  url: string,
  options: { token?: string; lastEventId?: string } = {},
): Promise<Stream> {
  const controller = new AbortController();
  const response = await fetch(url, {
    headers: {
      accept: "text/event-stream",
      authorization: `Bearer ${options.token ?? OPERATOR}`,
      ...(options.lastEventId !== undefined && { "last-event-id": options.lastEventId }),
    },
    signal: controller.signal,
  });
  const events: Stream["events"] = [];
  let open = response.ok;
  const parser = createParser({
    onEvent({ id = "", event = "", data }) {
      if (event !== "CURSOR") events.push({ id, event, data: JSON.parse(data) });
    },
  });
  const decoder = new TextDecoder();
  void (async () => {
    try {
      for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
    } catch {
      // Cut, by the test or by the broker.
    }
    open = false;
  })();
  return {
    status: response.status,
    headers: response.headers,
    events,
    isOpen: () => open,
    ended: () => until(() => !open, { what: "the stream's end" }),
    has: (type) => until(() => events.some((one) => one.event === type), { what: type }),
    close: () => controller.abort(),
  };
}

/**
 * Clients that wait and reconnect: event streams that resume by cursor after the broker's `retry:`, and polls that wait
 * before they repeat a failed one, as the library does. Limit: events are stored by id and compared at the end.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { backoffMs } from "../../src/util/timing.ts";
import { serve } from "../remote.ts";
import { StatusLine } from "../status-line.ts";
import { clock } from "../tally.ts";

const RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 5_000;
const AT_ONCE = 200;
const POLL = '{"wait_seconds":60}';

const crowdSchema = z.object({
  url: z.string(),
  /** One stream each. */
  streams: z.array(z.string()),
  /** One poll each, of an agent without work. */
  polls: z.array(z.object({ agent: z.string(), token: z.string() })),
});
const expectedSchema = z.record(z.string(), z.array(z.string()));

let stopping = false;
let clients: Client[] = [];
/** When connections were made, ms. */
let connectedAt: number[] = [];

/** A connection that sends one request, and sends it again whenever the connection ends. */
abstract class Client {
  open = false;
  readonly token: string;
  readonly #address: URL;
  #socket: Socket | undefined;

  constructor(url: string, token: string) {
    this.#address = new URL(url);
    this.token = token;
  }

  protected abstract request(): string;
  protected abstract read(text: string): void;
  /** How long to wait after the connection has ended. */
  protected abstract pauseMs(): number;

  start(): void {
    const { hostname, port, host } = this.#address;
    const socket = connect({ host: hostname, port: Number(port) });
    this.#socket = socket;
    socket.setEncoding("utf8");
    const [line, ...body] = this.request().split("\n");
    socket.write([line, `host: ${host}`, `authorization: Bearer ${this.token}`, ...body].join("\r\n"));
    socket.on("connect", () => connectedAt.push(clock()));
    socket.on("data", (chunk) => this.read(String(chunk)));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.open = false;
      if (!stopping) void sleep(this.pauseMs()).then(() => stopping || this.start());
    });
  }

  close(): void {
    this.#socket?.destroy();
  }
}

class Stream extends Client {
  readonly ids: string[] = [];
  #cursor = "0";
  #retryMs = RETRY_MS;
  #text = "";

  protected request(): string {
    this.#text = "";
    return `GET /v1/events HTTP/1.1\nlast-event-id: ${this.#cursor}\naccept: text/event-stream\n\n`;
  }

  protected read(text: string): void {
    const frames = (this.#text + text).split("\n\n");
    this.#text = frames.pop() ?? "";
    for (const frame of frames) {
      const retry = /^retry: (\d+)/m.exec(frame)?.[1];
      if (retry !== undefined) {
        this.#retryMs = Number(retry);
        this.open = true;
      }
      const id = /^id: ?(.+)$/m.exec(frame)?.[1];
      if (id !== undefined) this.#cursor = id;
      if (id !== undefined && frame.includes("\ndata:")) this.ids.push(id);
    }
  }

  protected pauseMs(): number {
    return this.#retryMs;
  }
}

class Poll extends Client {
  readonly #agent: string;
  #failures = 0;
  #status = new StatusLine();
  #askedAt = 0;

  constructor(url: string, token: string, agent: string) {
    super(url, token);
    this.#agent = agent;
  }

  protected request(): string {
    this.open = true;
    this.#status = new StatusLine();
    this.#askedAt = clock();
    const head = `POST /v1/agents/${this.#agent}/leases HTTP/1.1\nconnection: close\n`;
    return `${head}content-type: application/json\ncontent-length: ${POLL.length}\n\n${POLL}`;
  }

  // There is no work: the answer ends the connection, and the next one polls again.
  protected read(text: string): void {
    this.#status.add(text);
  }

  protected pauseMs(): number {
    if (!this.#status.isOk) return backoffMs(this.#failures++, 0, LONGEST_RETRY_MS);
    this.#failures = 0;
    return clock() - this.#askedAt < 1_000 ? backoffMs(1) : 0;
  }
}

serve({
  async start(args) {
    const { url, streams, polls } = crowdSchema.parse(args);
    clients = [
      ...streams.map((token) => new Stream(url, token)),
      ...polls.map(({ agent, token }) => new Poll(url, token, agent)),
    ];
    for (let at = 0; at < clients.length; at += AT_ONCE) {
      const some = clients.slice(at, at + AT_ONCE);
      for (const client of some) client.start();
      while (some.some(({ open }) => !open)) await sleep(5);
    }
  },
  countAgain() {
    connectedAt = [];
  },
  open: () => clients.filter(({ open }) => open).length,
  /** When connections were made since the last count. */
  connectedAt: () => connectedAt,
  /** The first stream that lacks one of its token's events, or has one too many; null if there is none. */
  wrong(args) {
    const expected = expectedSchema.parse(args);
    for (const client of clients) {
      if (!(client instanceof Stream)) continue;
      const wanted = expected[client.token] ?? [];
      if (client.ids.join() === wanted.join()) continue;
      return `${client.ids.length} events came, ${wanted.length} were expected`;
    }
    return null;
  },
  stop() {
    stopping = true;
    for (const client of clients) client.close();
    clients = [];
  },
});

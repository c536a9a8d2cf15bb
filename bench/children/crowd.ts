/**
 * Clients that wait and reconnect: event streams that resume by cursor after the broker's `retry:`, and polls that keep
 * their connection, and wait before they repeat a failed one, as the library does. Limit: events are stored by id and
 * compared at the end.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { backoffMs } from "../../src/util/timing.ts";
import { Lane } from "../lane.ts";
import { serve } from "../remote.ts";
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

interface Client {
  readonly open: boolean;
  start(): void;
  close(): void;
}

/** A stream, opened again whenever it ends. */
class Stream implements Client {
  open = false;
  readonly token: string;
  readonly ids: string[] = [];
  readonly #address: URL;
  #socket: Socket | undefined;
  #cursor = "0";
  #retryMs = RETRY_MS;
  #text = "";

  constructor(url: string, token: string) {
    this.#address = new URL(url);
    this.token = token;
  }

  start(): void {
    const { hostname, port, host } = this.#address;
    const socket = connect({ host: hostname, port: Number(port) });
    this.#socket = socket;
    this.#text = "";
    socket.setEncoding("utf8");
    const head = ["GET /v1/events HTTP/1.1", `host: ${host}`, `authorization: Bearer ${this.token}`];
    socket.write(
      [...head, `last-event-id: ${this.#cursor}`, "accept: text/event-stream", "", ""].join("\r\n"),
    );
    socket.on("connect", () => connectedAt.push(clock()));
    socket.on("data", (chunk) => this.#read(String(chunk)));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.open = false;
      if (!stopping) void sleep(this.#retryMs).then(() => stopping || this.start());
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #read(text: string): void {
    // A stream that resumes begins with its first event, so the head is the only sign that it is open.
    if (text.startsWith("HTTP/1.1 200")) this.open = true;
    const frames = (this.#text + text).split("\n\n");
    this.#text = frames.pop() ?? "";
    for (const frame of frames) {
      const retry = /^retry: (\d+)/m.exec(frame)?.[1];
      if (retry !== undefined) this.#retryMs = Number(retry);
      const id = /^id: ?(.+)$/m.exec(frame)?.[1];
      if (id !== undefined) this.#cursor = id;
      if (id !== undefined && frame.includes("\ndata:")) this.ids.push(id);
    }
  }
}

/** Polls for work that never comes, one after the other. */
class Poll implements Client {
  open = false;
  readonly #url: string;
  readonly #token: string;
  readonly #path: string;
  #lane: Lane | undefined;

  constructor(url: string, token: string, agent: string) {
    this.#url = url;
    this.#token = token;
    this.#path = `/v1/agents/${agent}/leases`;
  }

  start(): void {
    void this.#run();
  }

  close(): void {
    this.#lane?.close();
  }

  async #run(): Promise<void> {
    for (let failures = 0; !stopping; ) {
      const lane = new Lane(this.#url, this.#token);
      this.#lane = lane;
      await lane.opened();
      try {
        if (!lane.isOpen) throw new Error("the gateway refused the connection");
        connectedAt.push(clock());
        while (lane.isOpen) {
          await this.#poll(lane);
          failures = 0;
        }
      } catch {
        lane.close();
        if (!stopping) await sleep(backoffMs(failures++, 0, LONGEST_RETRY_MS));
      } finally {
        this.open = false;
      }
    }
  }

  async #poll(lane: Lane): Promise<void> {
    const askedAt = clock();
    this.open = true;
    const { status } = await lane.post(this.#path, POLL);
    if (status !== 200) throw new Error(`a poll was answered ${status}`);
    // A gateway that stops answers at once: pause, as the library does.
    if (clock() - askedAt < 1_000) await sleep(backoffMs(1));
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

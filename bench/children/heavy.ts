/**
 * One principal that sends as much as it may, in several kinds of heavy work, to measure the delay of another principal.
 * Refusals are expected and counted. Limit: closed loops; its own CPU is taken from the same cores.
 */
import { setMaxListeners } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { HEAVY, type Heavy } from "../heavy.ts";
import { filler } from "../payload.ts";
import { serve } from "../remote.ts";

const loadSchema = z.object({
  url: z.string(),
  /** The operator's, for bulk work. */
  operator: z.string(),
  caller: z.string(),
  agent: z.string(),
  /** Has no work. */
  idle: z.object({ agent: z.string(), token: z.string() }),
  kinds: z.array(z.enum(HEAVY)),
  /** Children of one parent. */
  children: z.number(),
  polls: z.number(),
});
type Load = z.infer<typeof loadSchema>;

const SMALL = filler(100);
const UNREAD = 80;
const BATCH = 100;
const RETRY_MS = 20;

let stopping = false;
let running: Promise<unknown> = Promise.resolve();
let leaving = new AbortController();
let statuses: Record<string, number> = {};

type Send = (method: string, path: string, body?: unknown, token?: string) => Promise<string>;

function sender({ url, caller }: Load): Send {
  return async (method, path, body, token = caller) => {
    const headers: Record<string, string> = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    };
    if (path.startsWith("/v1/events?stream")) headers.accept = "text/event-stream";
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        signal: leaving.signal,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      const text = await response.text();
      // A refused caller that repeats at once would only measure refusals.
      if (response.status === 429 || response.status === 503) await sleep(RETRY_MS);
      return text;
    } catch {
      statuses.failed = (statuses.failed ?? 0) + 1;
      await sleep(RETRY_MS);
      return "{}";
    }
  };
}

function lanes(count: number, work: (lane: number) => Promise<unknown>): Promise<unknown> {
  const loop = async (lane: number) => {
    while (!stopping) await work(lane);
  };
  return Promise.all(Array.from({ length: count }, (_, lane) => loop(lane)));
}

const idSchema = z.object({ id: z.string().optional() });

const WORK: Readonly<Record<Heavy, (load: Load, send: Send) => Promise<unknown>>> = {
  reads: (_load, send) => {
    const paths = [
      "/v1/delegations?limit=100",
      "/v1/delegations?limit=100&q=nothing-has-this",
      "/v1/results?limit=1000",
      "/v1/events?after=0&limit=1000",
      "/v1/agents?limit=100",
    ];
    return lanes(40, (lane) => send("GET", paths[lane % paths.length] ?? ""));
  },
  unread: ({ url, caller }) => {
    const { hostname, port, host } = new URL(url);
    const ask = async () => {
      const socket: Socket = connect({ host: hostname, port: Number(port) }).pause();
      socket.on("error", () => {});
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      const leave = () => socket.destroy();
      leaving.signal.addEventListener("abort", leave, { once: true });
      socket.write(
        `GET /v1/delegations?limit=100 HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${caller}\r\n\r\n`,
      );
      await closed;
      leaving.signal.removeEventListener("abort", leave);
      await sleep(RETRY_MS);
    };
    return lanes(UNREAD, ask);
  },
  submits: ({ agent }, send) => {
    const one = { target: agent, task: SMALL };
    const batch = { delegations: Array.from({ length: BATCH }, () => one) };
    return lanes(100, (lane) => {
      if (lane < 4) return send("POST", "/v1/delegations/batch", batch);
      return send("POST", "/v1/delegations", lane % 2 === 0 ? one : { ...one, target: "nobody" });
    });
  },
  cascades: ({ agent, children }, send) =>
    lanes(2, async () => {
      const one = { target: agent, task: SMALL };
      const { id } = idSchema.parse(JSON.parse(await send("POST", "/v1/delegations", one)));
      if (id === undefined) return;
      const child = { ...one, parent_id: id };
      for (let made = 0; made < children && !stopping; made += BATCH) {
        await send("POST", "/v1/delegations/batch", {
          delegations: Array.from({ length: BATCH }, () => child),
        });
      }
      await send("POST", `/v1/delegations/${id}/cancel`, {});
    }),
  polls: ({ idle, polls }, send) =>
    lanes(polls, () => send("POST", `/v1/agents/${idle.agent}/leases`, { wait_seconds: 2 }, idle.token)),
  bulk: ({ agent, operator }, send) =>
    lanes(4, async (lane) => {
      const batch = {
        delegations: Array.from({ length: BATCH }, () => ({ target: agent, task: SMALL })),
      };
      if (lane % 2 === 0) await send("POST", "/v1/delegations/batch", batch);
      await send("POST", "/v1/delegations/cancel", { target: agent, limit: 100 }, operator);
    }),
};

serve({
  start(args) {
    const load = loadSchema.parse(args);
    stopping = false;
    leaving = new AbortController();
    setMaxListeners(0, leaving.signal);
    statuses = {};
    const send = sender(load);
    running = Promise.all(load.kinds.map((kind) => WORK[kind](load, send)));
  },
  /** The number of answers of each kind. */
  async stop() {
    stopping = true;
    leaving.abort();
    await running;
    return statuses;
  },
});

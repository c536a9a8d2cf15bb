/**
 * A stub of the broker's API for client tests: real HTTP, with answers that the test chooses. It has no rules; it
 * exists for behavior that a real broker does not show on demand (cut, repeat, refuse).
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { CATEGORIES, Category } from "../../src/schema/errors.ts";
import { MEMBERS } from "../support/event.ts";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

/** The id of the stub, as in every answer of a broker. */
export const BROKER_ID = "brk_stub";

export class Answer {
  readonly #response: ServerResponse;
  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get raw(): ServerResponse {
    return this.#response;
  }

  json(value: unknown, status = 200, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, {
      "content-type": "application/json",
      "errand-broker": BROKER_ID,
      ...headers,
    });
    this.#response.end(JSON.stringify(value));
  }

  problem(status: number, code: string, category: Category, extra: Record<string, unknown> = {}): void {
    const headers = extra.retry_after === undefined ? {} : { "retry-after": String(extra.retry_after) };
    const body = {
      type: `urn:errand:error:${code}`,
      title: code,
      status,
      detail: `about ${code}`,
      code,
      category,
      broker_id: BROKER_ID,
    };
    this.json(
      { ...body, retryable: category === "TRANSPORT", recovery: "Do this.", request_id: "req_1", ...extra },
      status,
      { "content-type": "application/problem+json", ...headers },
    );
  }

  events(frames: readonly string[]): void {
    this.#response.writeHead(200, { "content-type": "text/event-stream", "errand-broker": BROKER_ID });
    this.#response.write(frames.join(""));
  }

  /** As a dying gateway does: cuts the connection without an answer. */
  cut(): void {
    this.#response.destroy();
  }
}

export interface Stub {
  readonly url: string;
  readonly seen: Seen[];
  /** The requests whose path ends with this text. */
  readonly to: (ending: string) => Seen[];
  readonly close: () => Promise<void>;
}

export async function stubBroker(answer: (request: Seen, answer: Answer) => void): Promise<Stub> {
  const seen: Seen[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://stub");
      const text = Buffer.concat(chunks).toString();
      const entry = {
        method: request.method ?? "",
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body: text === "" ? {} : JSON.parse(text),
      };
      seen.push(entry);
      answer(entry, new Answer(response));
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  onTestFinished(close);
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    to: (ending) => seen.filter(({ path }) => path.endsWith(ending)),
    close,
  };
}

export const ID = "dlg_0_01hzzzzzzzzzzzzzzzzzzzzzzz";
export const LEASE_ID = "lse_0_01hzzzzzzzzzzzzzzzzzzzzzzz_1";
const AT = "2026-01-01T00:00:00.000Z";

export function delegationLike(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: ID,
    state: "submitted",
    version: 1,
    target: "scout",
    delegator: "caller:alice",
    context_id: "ctx-1",
    parent_id: null,
    redrive_of: null,
    redriven_as: null,
    priority: 5,
    metadata: {},
    task_preview: "count",
    message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "count these words" }] },
    progress: null,
    interrupt: null,
    artifacts: [],
    reply: null,
    error: null,
    attempt: 1,
    max_attempts: 3,
    lease: null,
    history: [],
    created_at: AT,
    updated_at: AT,
    not_before_at: null,
    deadline_at: AT,
    finished_at: null,
    ...change,
  };
}

export function completedWith(text: string): Record<string, unknown> {
  const reply = { messageId: "r1", role: "ROLE_AGENT", parts: [{ text }] };
  return delegationLike({ state: "completed", reply, finished_at: AT });
}

export function failedWith(category: keyof typeof CATEGORIES, code: string): Record<string, unknown> {
  const error = { category, code, message: "it broke", retryable: false, recovery: "Mend it." };
  return delegationLike({ state: "failed", error, finished_at: AT });
}

export function leaseLike(seconds = 60, change: Record<string, unknown> = {}): Record<string, unknown> {
  const expires_at = new Date(Date.parse(AT) + seconds * 1000).toISOString();
  const delegation = delegationLike({
    state: "working",
    lease: { worker_id: "w", granted_at: AT, expires_at },
    ...change,
  });
  const request = {
    jsonrpc: "2.0",
    id: LEASE_ID,
    method: "SendMessage",
    params: { message: delegation.message },
  };
  return { lease_id: LEASE_ID, expires_at, attempt: 1, delegation, request };
}

export function eventLike(seq: number, type: string, change: Record<string, unknown> = {}) {
  const state =
    type === "DELEGATION_COMPLETE" ? "completed" : type === "DELEGATION_FAILED" ? "failed" : "working";
  return {
    id: `${seq}-0`,
    type,
    delegation_id: ID,
    seq,
    at: AT,
    state,
    target: "scout",
    delegator: "caller:alice",
    context_id: "ctx-1",
    ...MEMBERS[typeof change.status === "string" ? change.status : state],
    ...change,
  };
}

export function frame(event: { id: string; type: string }): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

export const AGENT = {
  name: "scout",
  description: "",
  skills: [],
  version: "1",
  delivery: { mode: "poll" },
  paused: false,
  created_at: AT,
  updated_at: AT,
  presence: { state: "offline", last_seen_at: null, pollers: 0 },
  counts: { waiting: 1, delayed: 0, working: 0, interrupted: 0, awaiting: 0 },
  a2a_card_url: "http://127.0.0.1:4180/a2a/scout/.well-known/agent-card.json",
};

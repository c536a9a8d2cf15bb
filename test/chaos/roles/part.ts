/** A process of the harness: its setup, history, orders and HTTP client. One role per process. */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { Random } from "../random.ts";
import { type Ending, Recorder } from "../recorder.ts";
import type { Facts } from "../rows.ts";
import { type Order, orderSchema, type Setup } from "../setup.ts";

const problemSchema = z.object({
  code: z.string(),
  details: z.looseObject({ reason: z.string().optional() }).optional(),
});

export interface Answer {
  readonly phase: "ok" | "fail" | "info";
  readonly status: number;
  readonly code?: string;
  readonly reason?: string;
  readonly body: unknown;
}

export interface Request {
  /** The principal; absent: nobody's token is sent. */
  readonly as?: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the broker may hold the request. */
  readonly holdSeconds?: number;
  readonly gateway?: string;
}

/** Time limit of a request beyond the broker's hold: longer than the broker's time limit for a command to Redis. */
const PATIENCE_MS = 8_000;

export class Part {
  readonly setup: Setup;
  readonly recorder: Recorder;
  readonly random: Random;
  /** From here on no new work is submitted. */
  quiet = false;
  /** Work that waits on the shelf is taken. */
  shelf = false;
  readonly #finish = new AbortController();

  constructor(setup: Setup) {
    this.setup = setup;
    this.recorder = new Recorder(setup.history, setup.proc);
    this.random = new Random(setup.seed, `${setup.proc}/${setup.life}`);
    // Every stream listens to this signal.
    setMaxListeners(0, this.finish);
    process.on("message", (message) => this.#obey(orderSchema.parse(message)));
    process.on("disconnect", () => process.exit(0));
    process.on("SIGTERM", () => this.#finish.abort());
  }

  #obey(order: Order): void {
    if (order === "quiet") this.quiet = true;
    else if (order === "shelf") this.shelf = true;
    else this.#finish.abort();
  }

  get finish(): AbortSignal {
    return this.#finish.signal;
  }

  get finished(): boolean {
    return this.#finish.signal.aborted;
  }

  /** Reports that every submit of this process was answered. */
  idle(): void {
    process.send?.("idle");
  }

  /** Ends early if the process must end. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.finish }).catch(() => undefined);
  }

  /**
   * Runs work that ends after this time, or when the process must end. (Node 20 may collect an AbortSignal.any
   * that waits for a timeout, and then it never aborts.)
   */
  async within(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController();
    const end = () => controller.abort();
    const timer = setTimeout(end, ms);
    this.finish.addEventListener("abort", end, { once: true });
    try {
      await work(controller.signal);
    } finally {
      clearTimeout(timer);
      this.finish.removeEventListener("abort", end);
    }
  }

  token(as: string): string {
    const token = this.setup.tokens[as];
    if (token === undefined) throw new Error(`no token for ${as}`);
    return token;
  }

  gateway(): string {
    return this.random.pick(this.setup.gateways);
  }

  async send(request: Request): Promise<Answer> {
    const { as, method = "POST", path, body, headers = {}, holdSeconds = 0 } = request;
    try {
      const response = await fetch(`${request.gateway ?? this.gateway()}${path}`, {
        method,
        headers: {
          ...(as !== undefined && { authorization: `Bearer ${this.token(as)}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(holdSeconds * 1000 + PATIENCE_MS),
      });
      const text = await response.text();
      const answer: unknown = text === "" ? null : JSON.parse(text);
      const { status } = response;
      if (response.ok) return { phase: "ok", status, body: answer };
      const problem = problemSchema.safeParse(answer).data;
      // An internal error may have occurred after the change was made.
      const phase = status >= 500 ? "info" : "fail";
      return {
        phase,
        status,
        body: answer,
        ...(problem && { code: problem.code }),
        ...(problem?.details?.reason !== undefined && { reason: problem.details.reason }),
      };
    } catch (error) {
      return { phase: "info", status: 0, code: error instanceof Error ? error.name : "unknown", body: null };
    }
  }

  /** Sends the request between two rows of the history; `read` selects the recorded parts of the answer. */
  async call(
    op: string,
    facts: Facts,
    request: Request,
    read: (body: unknown) => Facts = () => ({}),
  ): Promise<Answer> {
    let answer: Answer | undefined;
    await this.recorder.call(op, { as: request.as, ...facts }, async (): Promise<Ending> => {
      answer = await this.send(request);
      const { phase, status, code, reason, body } = answer;
      return {
        phase,
        status,
        ...(code !== undefined && { code }),
        ...(reason !== undefined && { reason }),
        ...(phase === "ok" && read(body)),
      };
    });
    if (answer === undefined) throw new Error("not sent");
    return answer;
  }

  /** Like `call`, repeated while the outcome is unknown; each repeat is a call of its own. */
  async insist(
    op: string,
    facts: Facts,
    request: Request,
    read?: (body: unknown) => Facts,
    forMs = 20_000,
  ): Promise<Answer> {
    const until = performance.now() + forMs;
    for (;;) {
      const answer = await this.call(op, facts, request, read);
      const passing = answer.phase === "info" || answer.status === 429;
      if (!passing || this.finished || performance.now() > until) return answer;
      await this.sleep(this.random.between(100, 600));
    }
  }
}

/** The recorded parts of a delegation. */
export const shownSchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  version: z.number(),
  interrupt: z
    .looseObject({ id: z.string(), requests: z.array(z.looseObject({ request_id: z.string() })) })
    .nullable()
    .optional(),
});

export function shown(body: unknown): Facts {
  const { id, state, version } = shownSchema.parse(body);
  return { id, state, version };
}

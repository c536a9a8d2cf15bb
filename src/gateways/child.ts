/** One gateway, as its supervisor knows it. */
import type { Log } from "../telemetry/log.ts";
import { type Order, type Report, reportSchema, type Setup, type Sibling } from "./messages.ts";

/** The process of a gateway. */
export interface Forked {
  readonly pid: number;
  readonly send: (order: Order) => void;
  readonly kill: () => void;
  readonly onMessage: (receive: (message: unknown) => void) => void;
  /** Called once, when the process has ended and its output has been read. */
  readonly onEnd: (callback: (end: ChildEnd) => void) => void;
}
export type Fork = () => Forked;

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** How often a gateway reports that its event loop runs, and how often the supervisor checks. */
export const BEAT_MS = 5_000;
/** Half a minute: a gateway that only stalls, for example on a machine that swaps, continues by itself before. */
const MOST_MISSED = 6;
/** A process that has not reported anything for this many checks since it was forked hangs, too: one minute. */
const MOST_MISSED_AT_START = 12;

type Answer = Extract<Report, { readonly type: "measured" | "signed_in" }>;

interface ChildOptions {
  readonly setup: Setup;
  readonly log: Log;
  readonly onReport: (report: Report) => void;
}

export class GatewayChild {
  readonly number: number;
  /** Resolves to the port that the gateway listens on; never settles if the gateway ends before. */
  readonly ready: Promise<number>;
  /** Resolves to the number of its connections in use, once it stops. */
  readonly stopping: Promise<number>;
  readonly ended: Promise<ChildEnd>;
  readonly #process: Forked;
  readonly #log: Log;
  readonly #startedAt = Date.now();
  readonly #since = performance.now();
  #state: Sibling["state"] = "starting";
  #isGone = false;
  #dismissed = false;
  #gateway: string | null = null;
  #readyMs = 0;
  /** Checks without a report since the last one. */
  #missed = 0;
  #hasReported = false;
  /** Questions that are not answered yet. */
  readonly #asked = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  constructor(number: number, process: Forked, { setup, log, onReport }: ChildOptions) {
    this.number = number;
    this.#process = process;
    this.#log = log;
    let isReady: (port: number) => void = () => {};
    let stops: (busy: number) => void = () => {};
    this.ready = new Promise((resolve) => {
      isReady = resolve;
    });
    this.stopping = new Promise((resolve) => {
      stops = resolve;
    });
    this.ended = new Promise((resolve) => {
      process.onEnd((end) => {
        this.#isGone = true;
        resolve(end);
      });
    });
    process.onMessage((message) => {
      const { data: report } = reportSchema.safeParse(message);
      if (!report) return;
      this.#missed = 0;
      this.#hasReported = true;
      if (report.type === "hello") this.send(setup);
      else if (report.type === "measured" || report.type === "signed_in") {
        this.#asked.get(report.id)?.(report);
        this.#asked.delete(report.id);
      } else if (report.type === "ready") {
        this.#gateway = report.gateway;
        this.#readyMs = performance.now() - this.#since;
        if (this.#state === "starting") this.#state = "ready";
        isReady(report.port);
      } else if (report.type === "stopping") {
        this.#state = "stopping";
        stops(report.busy);
      }
      onReport(report);
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get state(): Sibling["state"] {
    return this.#state;
  }

  /** Its random name; null until it is ready. */
  get gateway(): string | null {
    return this.#gateway;
  }

  get hasListened(): boolean {
    return this.#gateway !== null;
  }

  get livedMs(): number {
    return performance.now() - this.#since;
  }

  /** How long its start took; 0 until it is ready. */
  get startedMs(): number {
    return Math.round(this.#readyMs);
  }

  /** Whether its end was requested. */
  get isDismissed(): boolean {
    return this.#dismissed;
  }

  /**
   * Call it every {@link BEAT_MS}. It counts checks without a report instead of time, so that the supervisor does not take a
   * stall of its own process for silence of the gateway.
   */
  isHanging(): boolean {
    this.#missed += 1;
    if (this.#missed <= (this.#hasReported ? MOST_MISSED : MOST_MISSED_AT_START)) return false;
    this.#missed = 0;
    return true;
  }

  dismiss(): void {
    this.#dismissed = true;
    this.#state = "stopping";
  }

  toSibling(restarts: number): Sibling {
    return {
      number: this.number,
      pid: this.pid,
      state: this.#state,
      started_at: this.#startedAt,
      restarts,
      gateway: this.#gateway,
    };
  }

  send(order: Order): void {
    if (!this.#isGone) this.#process.send(order);
  }

  /** Sends a question; resolves when the gateway answers, and never if it ends before. */
  ask(type: "measure" | "sign_in"): Promise<Answer> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.send({ type, id });
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
    });
  }

  kill(): void {
    if (!this.#isGone) this.#process.kill();
  }

  /** Resolves when it has ended; kills it if that takes longer. */
  async endsWithin(ms: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#log.warn({ gateway: this.number, pid: this.pid }, "a gateway did not stop in time and is killed");
      this.kill();
    }, ms);
    await this.ended;
    clearTimeout(timer);
  }
}

/** The answers that arrive in time. */
export async function collect<T>(
  children: readonly GatewayChild[],
  ms: number,
  ask: (child: GatewayChild) => Promise<T>,
): Promise<T[]> {
  const answers: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  const all = children.map((child) =>
    Promise.race([ask(child).then((answer) => void answers.push(answer)), child.ended]),
  );
  await Promise.race([Promise.all(all), late]);
  clearTimeout(timer);
  return answers;
}

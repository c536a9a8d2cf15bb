/** One gateway, as its supervisor knows it. */
import type { Log } from "../telemetry/log.ts";
import { type Order, type Report, reportSchema, type Setup, type Sibling } from "./messages.ts";
import { SignOfLife } from "./sign-of-life.ts";

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
  readonly #signOfLife = new SignOfLife();

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
      this.#signOfLife.received(report);
      if (report.type === "hello") this.send(setup);
      else if (report.type === "ready") {
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

  /** Call it at regular intervals. */
  isHanging(): boolean {
    return this.#signOfLife.isMissing();
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

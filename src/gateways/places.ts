/**
 * The places of a supervisor's gateways. Starts a gateway for each, starts it again after it ended, and kills one that
 * does not respond. Limit: a place whose gateway is being replaced has two processes (replacement.ts).
 */
import type { Log } from "../telemetry/log.ts";
import { doublingMs } from "../util/timing.ts";
import { BEAT_MS, type ChildEnd, type Fork, GatewayChild } from "./child.ts";
import type { Report, Setup } from "./messages.ts";

interface PlacesOptions {
  readonly count: number;
  readonly setup: Pick<Setup, "port" | "redis" | "operator_token">;
  readonly fork: Fork;
  readonly log: Log;
  readonly onReport: (child: GatewayChild, report: Report) => void;
  readonly onReady: (child: GatewayChild) => void;
  readonly onEnd: (child: GatewayChild) => void;
}

/** A gateway cannot start, and another start would fail, too. */
export class GatewayStartError extends Error {
  override readonly name = "GatewayStartError";
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`a gateway could not start (exit code ${exitCode})`);
    this.exitCode = exitCode;
  }
}

const EXIT_CONFIG = 78;
/** The pause before a gateway is started again: longer after each one that did not last. */
const FIRST_MS = 100;
const LONGEST_MS = 30_000;
/** A gateway that lived for this long did not fail at its start. */
const STABLE_MS = 10_000;

/** The number of a gateway, which its successors keep, and the process that has it now. */
export interface Place {
  readonly number: number;
  current: GatewayChild | undefined;
  /** How many gateways in a row did not last. */
  failures: number;
  restarts: number;
  timer: NodeJS.Timeout | undefined;
  /** Whether its first gateway is not ready yet. */
  isStarting: boolean;
}

export class Places {
  readonly all: readonly Place[];
  readonly children = new Set<GatewayChild>();
  readonly #options: PlacesOptions;
  /** Where clients connect. */
  #port = 0;
  /** The port that new gateways listen on. It stays 0 while a gateway that asked for a free port is alive. */
  #listenPort: number;
  #checks: NodeJS.Timeout | undefined;
  #isClosing = false;
  #close: () => void = () => {};
  readonly #closing: Promise<void>;
  #fail: (error: GatewayStartError) => void = () => {};
  /** Rejects when no gateway is left and none can start. */
  readonly failed: Promise<never>;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#listenPort = options.setup.port;
    this.all = Array.from({ length: options.count }, (_, at) => ({
      number: at + 1,
      current: undefined,
      failures: 0,
      restarts: 0,
      timer: undefined,
      isStarting: false,
    }));
    this.#closing = new Promise((resolve) => {
      this.#close = resolve;
    });
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => {});
  }

  /** Whether a stop has begun: nothing is started any more. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Resolves to the port when all gateways are ready; null if a stop came first. Throws {@link GatewayStartError}. */
  async start(): Promise<number | null> {
    this.#checks = setInterval(() => this.#killHanging(), BEAT_MS).unref();
    const [first, ...others] = this.all;
    // The first alone, so that a mistake is reported once.
    if (first) await this.#startFirst(first, () => true);
    // One gateway already serves, so only a wrong setting ends the start; after anything else the gateway is started again.
    const isFatal = (code: number) => code === EXIT_CONFIG;
    await Promise.race([this.failed, Promise.all(others.map((place) => this.#startFirst(place, isFatal)))]);
    return this.#isClosing ? null : this.#port;
  }

  close(): void {
    this.#isClosing = true;
    this.#close();
    clearInterval(this.#checks);
    for (const { timer } of this.all) clearTimeout(timer);
  }

  ready(except?: GatewayChild): GatewayChild[] {
    return [...this.children].filter((child) => child !== except && child.state === "ready");
  }

  /** Starts a gateway for the place. The caller decides when it becomes the current one. */
  spawn({ number }: Place): GatewayChild {
    const { fork, setup, count, log, onReport, onReady } = this.#options;
    // While a gateway listens, node:cluster knows the port by the number that was asked for, which may be 0.
    const isOpen = [...this.children].some(({ hasListened }) => hasListened);
    if (!isOpen && this.#port !== 0) this.#listenPort = this.#port;
    const child = new GatewayChild(number, fork(), {
      setup: { ...setup, type: "setup", number, count, port: this.#listenPort },
      log,
      onReport: (report) => onReport(child, report),
    });
    this.children.add(child);
    void child.ready.then((port) => {
      this.#port = port;
      onReady(child);
      this.announce();
    });
    void child.ended.then((end) => this.#ended(child, end));
    this.announce();
    return child;
  }

  /** Starts a gateway for a place that has none. */
  fill(place: Place): void {
    if (this.#isClosing || place.current) return;
    const child = this.spawn(place);
    place.current = child;
    void child.ready.then(() => {
      const { number, pid, startedMs } = child;
      this.#options.log.info({ gateway: number, pid, ms: startedMs }, "gateway started again");
    });
  }

  /** Tells every gateway about all of them. */
  announce(): void {
    const siblings = [...this.children].map((child) =>
      child.toSibling(this.all.find(({ number }) => number === child.number)?.restarts ?? 0),
    );
    siblings.sort((a, b) => a.number - b.number || a.started_at - b.started_at);
    for (const child of this.children) child.send({ type: "siblings", siblings });
  }

  async #startFirst(place: Place, isFatal: (code: number) => boolean): Promise<void> {
    place.isStarting = true;
    while (!this.#isClosing) {
      const child = this.spawn(place);
      place.current = child;
      const end = await Promise.race([child.ready.then(() => null), child.ended]);
      if (end === null) place.isStarting = false;
      if (end === null || this.#isClosing) return;
      if (end.code !== null && isFatal(end.code)) throw new GatewayStartError(end.code === 0 ? 1 : end.code);
      const delay = nextDelay(place, 0);
      this.#logEnd(child, end, delay);
      const pause = new Promise<void>((resolve) => {
        place.timer = setTimeout(resolve, delay);
      });
      await Promise.race([pause, this.#closing]);
    }
  }

  #ended(child: GatewayChild, end: ChildEnd): void {
    const wasReady = child.state !== "starting";
    this.children.delete(child);
    this.#options.onEnd(child);
    this.announce();
    const place = this.all.find(({ current }) => current === child);
    if (this.#isClosing || child.isDismissed) return;
    if (wasReady && child.gateway !== null) this.ready()[0]?.send({ type: "died", gateway: child.gateway });
    // `#startFirst` starts it again, or ends the start.
    if (!place || (!wasReady && place.isStarting)) return;
    place.current = undefined;
    place.restarts += 1;
    const cannotStart = !wasReady && end.code === EXIT_CONFIG;
    if (cannotStart && this.children.size === 0) {
      this.close();
      this.#fail(new GatewayStartError(EXIT_CONFIG));
      return;
    }
    const delay = cannotStart ? LONGEST_MS : nextDelay(place, child.livedMs);
    this.#logEnd(child, end, delay);
    clearTimeout(place.timer);
    place.timer = setTimeout(() => this.fill(place), delay);
  }

  #logEnd({ number, pid, livedMs }: GatewayChild, { code, signal }: ChildEnd, delay: number): void {
    const fields = { gateway: number, pid, code, signal, lived_ms: Math.round(livedMs), again_in_ms: delay };
    this.#options.log.error(fields, "gateway ended unexpectedly and is started again");
  }

  #killHanging(): void {
    for (const child of this.children) {
      if (!child.isHanging()) continue;
      const { number, pid } = child;
      this.#options.log.error({ gateway: number, pid }, "gateway does not respond and is killed");
      child.kill();
    }
  }
}

function nextDelay(place: Place, livedMs: number): number {
  place.failures = livedMs >= STABLE_MS ? 1 : place.failures + 1;
  return doublingMs(place.failures - 1, FIRST_MS, LONGEST_MS);
}

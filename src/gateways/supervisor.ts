/**
 * Runs several gateways on one port: starts them, replaces one that ended, replaces all of them one after the other
 * (SIGHUP), and sums their metrics and quotas. It takes no requests, but accepts the connections and deals them out in
 * turn (node:cluster), so that parked polls spread evenly. Limit: the gateways die with their supervisor. Starts,
 * replacements and stops change the same places, so it is long.
 */
import { randomBytes } from "node:crypto";
import type { Log } from "../telemetry/log.ts";
import type { MetricValues } from "../telemetry/summed-metrics.ts";
import { SummedMetrics } from "../telemetry/summed-metrics.ts";
import { type ChildEnd, type Fork, GatewayChild } from "./child.ts";
import { HeldSums } from "./held-counts.ts";
import type { PassedSession, Report, Setup } from "./messages.ts";
import { ownMetrics } from "./own-metrics.ts";
import { LONGEST_MS, RestartDelays } from "./restart-delays.ts";

export interface SupervisorOptions {
  readonly count: number;
  readonly setup: Pick<Setup, "port" | "redis" | "operator_token">;
  readonly fork: Fork;
  readonly log: Log;
  /** Called when a gateway lost its connection to Redis. */
  readonly onRedisLost: () => void;
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
/** How long a successor may take until it is ready. */
const START_MS = 60_000;
/** How long a gateway that is replaced may take to finish its requests. */
const RETIRE_MS = 45_000;
/** How long a scrape waits for each gateway. The last values of a late one are used. */
const MEASURE_MS = 2_000;

/** The number of a gateway, which its successors keep, and the process that has it now. */
interface Place {
  readonly number: number;
  current: GatewayChild | undefined;
  readonly delays: RestartDelays;
  restarts: number;
  timer: NodeJS.Timeout | undefined;
  /** Whether its first gateway is not ready yet. */
  isStarting: boolean;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #places: readonly Place[];
  readonly #children = new Set<GatewayChild>();
  readonly #innerSecret = randomBytes(32).toString("hex");
  readonly #sums = new SummedMetrics<GatewayChild>();
  readonly #held = new HeldSums<GatewayChild>((child, held) => child.send({ type: "held_elsewhere", held }));
  /** Requests to gateways that are not answered yet, by id. */
  readonly #waiting = new Map<number, (child: GatewayChild, report: Report) => void>();
  #asked = 0;
  /** Where clients connect. */
  #port = 0;
  /** The port that new gateways listen on. It stays 0 while a gateway that asked for a free port is alive. */
  #listenPort: number;
  #isClosing = false;
  #close: () => void = () => {};
  /** Resolves when a stop begins. */
  readonly #closing: Promise<void>;
  #rolling: Promise<void> = Promise.resolve();
  #rollsWaiting = 0;
  /** Gateways that asked to be replaced. */
  readonly #replacing = new Set<GatewayChild>();
  #fail: (error: GatewayStartError) => void = () => {};
  /** Rejects when no gateway is left and none can start. */
  readonly failed: Promise<never>;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#listenPort = options.setup.port;
    this.#places = Array.from({ length: options.count }, (_, at) => ({
      number: at + 1,
      current: undefined,
      delays: new RestartDelays(),
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

  /** Resolves to the port when all gateways are ready; null if a stop came first. Throws {@link GatewayStartError}. */
  async start(): Promise<number | null> {
    const [first, ...others] = this.#places;
    // The first alone, so that a mistake is reported once.
    if (first) await this.#startFirst(first, () => true);
    // One gateway already serves, so only a wrong setting ends the start; after anything else the gateway is started again.
    const isFatal = (code: number) => code === EXIT_CONFIG;
    await Promise.all(others.map((place) => this.#startFirst(place, isFatal)));
    if (this.#isClosing) return null;
    return this.#port;
  }

  /** Replaces all gateways. Resolves when all are replaced, or when it gave up and the old ones stay. */
  roll(numbers?: readonly number[]): Promise<void> {
    // A roll that waits will start gateways from the newest files anyway.
    if (numbers === undefined && this.#rollsWaiting > 0) return this.#rolling;
    if (numbers === undefined) this.#rollsWaiting += 1;
    this.#rolling = this.#rolling.then(async () => {
      if (numbers === undefined) this.#rollsWaiting -= 1;
      if (!this.#isClosing) await this.#roll(numbers ?? this.#places.map(({ number }) => number));
    });
    return this.#rolling;
  }

  /** Stops all gateways. Resolves to the number of connections in use as soon as it is known. */
  stop(graceMs: number): { readonly busy: Promise<number>; readonly stopped: Promise<void> } {
    this.#isClosing = true;
    this.#close();
    for (const place of this.#places) clearTimeout(place.timer);
    const children = [...this.#children];
    // They serve nothing yet.
    for (const child of children) if (child.state === "starting") child.kill();
    const busy = this.#collect(children, 500, (child) => {
      child.send({ type: "stop", handover: false });
      return child.stopping;
    }).then((counts) => counts.reduce((sum, count) => sum + count, 0));
    const stopped = Promise.all(children.map((child) => child.endsWithin(graceMs))).then(() => {});
    return { busy, stopped };
  }

  killAll(): void {
    for (const child of this.#children) child.kill();
  }

  /** A line with a link to sign in, made by a gateway. */
  async signIn(): Promise<string | undefined> {
    const child = this.#anyReady();
    if (!child) return undefined;
    const [line] = await this.#collect([child], MEASURE_MS, () =>
      this.#ask<string | null>(
        child,
        (id) => child.send({ type: "sign_in", id }),
        (report) => (report.type === "signed_in" ? report.line : undefined),
      ),
    );
    return line ?? undefined;
  }

  async #startFirst(place: Place, isFatal: (code: number) => boolean): Promise<void> {
    place.isStarting = true;
    while (!this.#isClosing) {
      const child = this.#spawn(place);
      place.current = child;
      const end = await Promise.race([child.ready.then(() => null), child.ended]);
      if (end === null) place.isStarting = false;
      if (end === null || this.#isClosing) return;
      if (end.code !== null && isFatal(end.code)) throw new GatewayStartError(end.code === 0 ? 1 : end.code);
      const delay = place.delays.next(0);
      this.#logEnd(child, end, delay);
      const pause = new Promise<void>((resolve) => {
        place.timer = setTimeout(resolve, delay);
      });
      await Promise.race([pause, this.#closing]);
    }
  }

  #spawn({ number }: Place): GatewayChild {
    const { fork, setup, count, log } = this.#options;
    // While a gateway listens, node:cluster knows the port by the number that was asked for, which may be 0.
    const isOpen = [...this.#children].some(({ hasListened }) => hasListened);
    if (!isOpen && this.#port !== 0) this.#listenPort = this.#port;
    const child = new GatewayChild(number, fork(), {
      setup: {
        ...setup,
        ...{ type: "setup", number, count, port: this.#listenPort, inner_secret: this.#innerSecret },
      },
      log,
      onReport: (report) => this.#receive(child, report),
    });
    this.#children.add(child);
    void child.ready.then((port) => {
      this.#port = port;
      this.#held.join(child);
      this.#announce();
    });
    void child.ended.then((end) => this.#ended(child, end));
    this.#announce();
    return child;
  }

  #ended(child: GatewayChild, end: ChildEnd): void {
    const wasReady = child.state !== "starting";
    this.#children.delete(child);
    this.#held.leave(child);
    this.#sums.end(child);
    this.#announce();
    const place = this.#places.find(({ current }) => current === child);
    if (this.#isClosing || child.isDismissed) return;
    if (wasReady && child.gateway !== null) this.#anyReady()?.send({ type: "died", gateway: child.gateway });
    // `#startFirst` starts it again, or ends the start.
    if (!place || (!wasReady && place.isStarting)) return;
    place.current = undefined;
    place.restarts += 1;
    const cannotStart = !wasReady && end.code === EXIT_CONFIG;
    if (cannotStart && this.#children.size === 0) {
      this.#isClosing = true;
      for (const { timer } of this.#places) clearTimeout(timer);
      this.#fail(new GatewayStartError(EXIT_CONFIG));
      return;
    }
    const delay = cannotStart ? LONGEST_MS : place.delays.next(child.livedMs);
    this.#logEnd(child, end, delay);
    clearTimeout(place.timer);
    place.timer = setTimeout(() => this.#fill(place), delay);
  }

  #fill(place: Place): void {
    if (this.#isClosing || place.current) return;
    const child = this.#spawn(place);
    place.current = child;
    void child.ready.then(() => {
      const { number, pid, startedMs } = child;
      this.#options.log.info({ gateway: number, pid, ms: startedMs }, "gateway started again");
    });
  }

  #logEnd({ number, pid, livedMs }: GatewayChild, { code, signal }: ChildEnd, delay: number): void {
    const fields = { gateway: number, pid, code, signal, lived_ms: Math.round(livedMs), again_in_ms: delay };
    this.#options.log.error(fields, "gateway ended unexpectedly and is started again");
  }

  async #roll(numbers: readonly number[]): Promise<void> {
    const { log } = this.#options;
    const since = performance.now();
    const places = this.#places.filter(({ number }) => numbers.includes(number));
    log.info({ gateways: numbers }, "replacing gateways: their successors start");
    // All successors first: connections of the old ones then spread evenly among them.
    const successors = new Map<Place, GatewayChild>();
    for (const place of places) {
      const child = this.#spawn(place);
      successors.set(place, child);
      const late = new Promise<"late">((resolve) => setTimeout(resolve, START_MS, "late").unref());
      const end = await Promise.race([child.ready.then(() => null), child.ended, late]);
      if (this.#isClosing) return;
      if (end === null) continue;
      const reason = end === "late" ? { seconds: START_MS / 1000 } : { code: end.code, signal: end.signal };
      log.error(
        { gateway: place.number, ...reason },
        "the successor did not start, so the gateways are not replaced",
      );
      await Promise.all([...successors.values()].map((one) => this.#retire(one)));
      return;
    }
    const old: GatewayChild[] = [];
    for (const [place, child] of successors) {
      if (place.current) old.push(place.current);
      clearTimeout(place.timer);
      place.current = this.#children.has(child) ? child : undefined;
      // It ended after it was ready.
      if (!place.current) this.#fill(place);
    }
    for (const child of old) {
      await this.#retire(child);
      if (this.#isClosing) return;
    }
    const ms = Math.round(performance.now() - since);
    log.info({ gateways: numbers, ms }, "gateways replaced");
  }

  /** Ends a gateway while the others go on. */
  async #retire(child: GatewayChild): Promise<void> {
    // It serves nothing yet.
    if (child.state === "starting") child.kill();
    else child.send({ type: "stop", handover: true });
    child.dismiss();
    this.#announce();
    await child.endsWithin(RETIRE_MS);
  }

  #receive(child: GatewayChild, report: Report): void {
    switch (report.type) {
      case "held":
        this.#held.report(child, report.held);
        break;
      case "sum":
        this.#sums.update(child, report.snapshot);
        void this.#sum(child, report.id, report.of_broker);
        break;
      case "measured":
        this.#sums.update(child, report.snapshot);
        this.#waiting.get(report.id)?.(child, report);
        break;
      case "signed_in":
        this.#waiting.get(report.id)?.(child, report);
        break;
      case "last":
        this.#sums.update(child, report.snapshot);
        break;
      case "pass_on":
        this.#passOn(child, report.sessions);
        break;
      case "took_over":
        child.tookOver(report.gateways);
        this.#announce();
        break;
      case "redis_lost":
        this.#options.onRedisLost();
        break;
      case "replace_me":
        this.#replace(child);
        break;
      case "hello":
      case "ready":
      case "stopping":
        break;
    }
  }

  /** Replaces it once, however often it asks. */
  #replace(child: GatewayChild): void {
    if (this.#isClosing || child.isDismissed || this.#replacing.has(child)) return;
    this.#replacing.add(child);
    void this.roll([child.number]).then(() => this.#replacing.delete(child));
  }

  /** Passes MCP sessions to the gateway's successor, or to another gateway. */
  #passOn(from: GatewayChild, sessions: PassedSession[]): void {
    const successor = this.#places.find(({ number }) => number === from.number)?.current;
    const receiver = successor?.state === "ready" && successor !== from ? successor : this.#anyReady(from);
    receiver?.send({ type: "take_over", sessions });
  }

  async #sum(asking: GatewayChild, id: number, ofBroker: readonly MetricValues[]): Promise<void> {
    const others = [...this.#children].filter((child) => child !== asking && child.state !== "starting");
    await this.#collect(others, MEASURE_MS, (child) =>
      this.#ask(
        child,
        (measure) => child.send({ type: "measure", id: measure }),
        () => true,
      ),
    );
    asking.send({
      type: "metrics_text",
      id,
      text: await this.#sums.text([...ofBroker, ...this.#ownMetrics()]),
    });
  }

  #ownMetrics(): MetricValues[] {
    const ready = [...this.#children].filter(({ state }) => state === "ready").length;
    return ownMetrics(
      ready,
      this.#places.reduce((sum, { restarts }) => sum + restarts, 0),
    );
  }

  #announce(): void {
    const siblings = [...this.#children].map((child) =>
      child.toSibling(this.#places.find(({ number }) => number === child.number)?.restarts ?? 0),
    );
    siblings.sort((a, b) => a.number - b.number || a.started_at - b.started_at);
    for (const child of this.#children) child.send({ type: "siblings", siblings });
  }

  #anyReady(except?: GatewayChild): GatewayChild | undefined {
    return [...this.#children].find((child) => child !== except && child.state === "ready");
  }

  /** Sends a question; resolves when the gateway answers. */
  #ask<T>(
    child: GatewayChild,
    send: (id: number) => void,
    read: (report: Report) => T | undefined,
  ): Promise<T> {
    this.#asked += 1;
    const id = this.#asked;
    const answer = new Promise<T>((resolve) => {
      this.#waiting.set(id, (from, report) => {
        const value = from === child ? read(report) : undefined;
        if (value !== undefined) resolve(value);
      });
    });
    send(id);
    const done = () => this.#waiting.delete(id);
    void Promise.race([answer, child.ended]).then(done);
    return answer;
  }

  /** The answers that arrive in time. */
  async #collect<T>(
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
}

/**
 * Runs several gateways on one port: starts them (places.ts), replaces them (replacement.ts), and sums their metrics
 * (scrapes.ts) and quotas. It takes no requests, but accepts the connections and deals them out in turn (node:cluster), so
 * that parked polls spread evenly. Limit: the gateways end with their supervisor.
 */
import type { Log } from "../telemetry/log.ts";
import { collect, type Fork, type GatewayChild } from "./child.ts";
import type { Report, Setup } from "./messages.ts";
import { Places } from "./places.ts";
import { QuotaSums } from "./quota-counts.ts";
import { Replacement } from "./replacement.ts";
import { Scrapes } from "./scrapes.ts";

export { GatewayStartError } from "./places.ts";

export interface SupervisorOptions {
  readonly count: number;
  readonly setup: Pick<Setup, "port" | "redis" | "operator_token">;
  readonly fork: Fork;
  readonly log: Log;
  /** Called when a gateway lost its connection to Redis. */
  readonly onRedisLost: () => void;
}

/** How long a gateway may take to make a link to sign in. */
const SIGN_IN_MS = 2_000;
/** How long a stop waits for the numbers of connections in use. */
const BUSY_MS = 500;

export class Supervisor {
  readonly #onRedisLost: () => void;
  readonly #places: Places;
  readonly #replacement: Replacement;
  readonly #scrapes: Scrapes;
  readonly #quotaSums = new QuotaSums<GatewayChild>((child, held) =>
    child.send({ type: "held_elsewhere", held }),
  );

  constructor({ onRedisLost, ...options }: SupervisorOptions) {
    this.#onRedisLost = onRedisLost;
    this.#places = new Places({
      ...options,
      onReport: (child, report) => this.#receive(child, report),
      onReady: (child) => this.#quotaSums.add(child),
      onEnd: (child) => {
        this.#quotaSums.remove(child);
        this.#scrapes.sums.end(child);
      },
    });
    this.#replacement = new Replacement(this.#places, options.log);
    this.#scrapes = new Scrapes(this.#places);
  }

  /** Rejects when no gateway is left and none can start. */
  get failed(): Promise<never> {
    return this.#places.failed;
  }

  /** Resolves to the port when all gateways are ready; null if a stop came first. Throws {@link GatewayStartError}. */
  start(): Promise<number | null> {
    return this.#places.start();
  }

  /** Replaces all gateways. Resolves when they are replaced, or when it gave up and the old ones stay. */
  roll(): Promise<void> {
    return this.#replacement.replaceAll();
  }

  /** Stops all gateways. Resolves to the number of connections in use as soon as it is known. */
  stop(graceMs: number): { readonly busy: Promise<number>; readonly stopped: Promise<void> } {
    this.#places.close();
    const children = [...this.#places.children];
    // They serve nothing yet.
    for (const child of children) if (child.state === "starting") child.kill();
    const busy = collect(children, BUSY_MS, (child) => {
      child.send({ type: "stop", handover: false });
      return child.stopping;
    }).then((counts) => counts.reduce((sum, count) => sum + count, 0));
    const stopped = Promise.all(children.map((child) => child.endsWithin(graceMs))).then(() => {});
    return { busy, stopped };
  }

  killAll(): void {
    for (const child of this.#places.children) child.kill();
  }

  /** A line with a link to sign in, made by a gateway. */
  async signIn(): Promise<string | undefined> {
    const [child] = this.#places.ready();
    if (!child) return undefined;
    const [answer] = await collect([child], SIGN_IN_MS, () => child.ask("sign_in"));
    return answer?.type === "signed_in" ? (answer.line ?? undefined) : undefined;
  }

  #receive(child: GatewayChild, report: Report): void {
    switch (report.type) {
      case "held":
        this.#quotaSums.update(child, report.held);
        break;
      case "sum":
        this.#scrapes.sums.update(child, report.snapshot);
        void this.#scrapes.answer(child, report);
        break;
      case "measured":
      case "last":
        this.#scrapes.sums.update(child, report.snapshot);
        break;
      case "redis_lost":
        this.#onRedisLost();
        break;
      case "replace_me":
        this.#replacement.replaceOne(child);
        break;
      // The rest is for the child itself (child.ts).
    }
  }
}

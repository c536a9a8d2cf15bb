/**
 * The other gateways of the same supervisor, as one gateway sees them. The gateway talks only to the supervisor, which
 * keeps the list, and sums the metrics and the quotas.
 */
import type { Metrics } from "../telemetry/metrics.ts";
import { BEAT_MS } from "./child.ts";
import { type Order, orderSchema, type Report, type Setup, type Sibling } from "./messages.ts";
import { GatewayCounts } from "./quota-counts.ts";

/** The connection to the supervisor. */
export interface Channel {
  readonly send: (report: Report) => void;
  readonly onMessage: (receive: (message: unknown) => void) => void;
  /** Resolves when everything that was sent to the supervisor, or by it, has arrived, and the channel is closed. */
  readonly close: () => Promise<void>;
  /** Calls back when the supervisor is gone. */
  readonly onClose: (callback: () => void) => void;
}

/** The gateway's handlers for orders of the supervisor. The gateway sets each once it can serve it. */
interface OrderHandlers {
  stop: (handover: boolean) => void;
  signIn: () => Promise<string | undefined>;
  /** Another gateway died without withdrawing its presence. */
  siblingDied: (gateway: string) => void;
}

const METRICS_MS = 5_000;

export class Siblings {
  readonly setup: Setup;
  readonly quotaCounts: GatewayCounts;
  readonly handlers: OrderHandlers = {
    stop: () => {},
    signIn: async () => undefined,
    siblingDied: () => {},
  };
  readonly #channel: Channel;
  #metrics: Metrics | undefined;
  #all: readonly Sibling[] = [];
  #asked = 0;
  readonly #texts = new Map<number, (text: string) => void>();

  private constructor(channel: Channel, setup: Setup) {
    this.#channel = channel;
    this.setup = setup;
    this.quotaCounts = new GatewayCounts(setup.count, (held) => channel.send({ type: "held", held }));
  }

  /** Asks the supervisor for the setup. Never resolves when there is no supervisor any more; the process then ends. */
  static join(channel: Channel): Promise<Siblings> {
    return new Promise((resolve) => {
      let siblings: Siblings | undefined;
      channel.onMessage((message) => {
        const { data: order } = orderSchema.safeParse(message);
        if (order?.type === "setup") {
          if (!siblings) beat(channel);
          siblings ??= new Siblings(channel, order);
          resolve(siblings);
        } else if (order && siblings) siblings.#obey(order);
      });
      channel.send({ type: "hello" });
    });
  }

  /** All gateways of the supervisor, this one included. */
  get all(): readonly Sibling[] {
    return this.#all;
  }

  /** Sends this gateway's metrics whenever they are asked for, and gets the sum of all for a scrape. */
  share(metrics: Metrics): void {
    this.#metrics = metrics;
    metrics.combineWith((snapshot, ofBroker) => {
      this.#asked += 1;
      const id = this.#asked;
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          this.#texts.delete(id);
          reject(new Error("the supervisor did not sum the metrics in time"));
        }, METRICS_MS);
        this.#texts.set(id, (text) => {
          clearTimeout(late);
          resolve(text);
        });
        this.#channel.send({ type: "sum", id, snapshot: [...snapshot], of_broker: [...ofBroker] });
      });
    });
  }

  ready(port: number, gateway: string): void {
    this.#channel.send({ type: "ready", port, gateway });
  }

  redisLost(): void {
    this.#channel.send({ type: "redis_lost" });
  }

  askToBeReplaced(): void {
    this.#channel.send({ type: "replace_me" });
  }

  stopping(busy: number): void {
    this.#channel.send({ type: "stopping", busy });
  }

  /** Sends the last metrics. Call it last, because later counts are lost. */
  async leave(): Promise<void> {
    if (this.#metrics) this.#channel.send({ type: "last", snapshot: await this.#metrics.snapshot() });
    await this.#channel.close();
  }

  #obey(order: Order): void {
    switch (order.type) {
      case "siblings":
        this.#all = order.siblings;
        break;
      case "held_elsewhere":
        this.quotaCounts.update(order.held);
        break;
      case "measure":
        void this.#metrics
          ?.snapshot()
          .then((snapshot) => this.#channel.send({ type: "measured", id: order.id, snapshot }));
        break;
      case "metrics_text":
        this.#texts.get(order.id)?.(order.text);
        this.#texts.delete(order.id);
        break;
      case "sign_in":
        void this.handlers
          .signIn()
          .then((line) => this.#channel.send({ type: "signed_in", id: order.id, line: line ?? null }));
        break;
      case "died":
        this.handlers.siblingDied(order.gateway);
        break;
      case "stop":
        this.handlers.stop(order.handover);
        break;
      case "setup":
        break;
    }
  }
}

/** Until the process ends. */
function beat(channel: Channel): void {
  const report = () => channel.send({ type: "alive" });
  report();
  setInterval(report, BEAT_MS).unref();
}

/**
 * The other gateways of the same supervisor, as one gateway sees them. The gateway talks only to the supervisor, which
 * keeps the list, sums the metrics and the quotas, and passes MCP sessions on.
 */
import type { Metrics } from "../telemetry/metrics.ts";
import {
  type Order,
  orderSchema,
  type PassedSession,
  type Report,
  type Setup,
  type Sibling,
} from "./messages.ts";
import { GatewayCounts } from "./quota-counts.ts";
import { BEAT_MS } from "./sign-of-life.ts";

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
  takeOver: (sessions: readonly PassedSession[]) => Promise<void>;
}

const METRICS_MS = 5_000;

export class Siblings {
  readonly setup: Setup;
  readonly quotaCounts: GatewayCounts;
  readonly handlers: OrderHandlers = {
    stop: () => {},
    signIn: async () => undefined,
    siblingDied: () => {},
    takeOver: async () => {},
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

  ready(port: number, gateway: string, inner_port: number): void {
    this.#channel.send({ type: "ready", port, gateway, inner_port });
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

  passOn(sessions: PassedSession[]): void {
    if (sessions.length > 0) this.#channel.send({ type: "pass_on", sessions });
  }

  /** Sends the last metrics. Call it last, because later counts are lost. */
  async leave(): Promise<void> {
    if (this.#metrics) this.#channel.send({ type: "last", snapshot: await this.#metrics.snapshot() });
    await this.#channel.close();
  }

  /**
   * The inner port of the gateway that has the MCP sessions of `gateway`; null if that is `own`, or if there is none.
   */
  innerPortOf(gateway: string, own: string): number | null {
    const owner =
      this.#all.find(({ took_over, state }) => state === "ready" && took_over.includes(gateway)) ??
      this.#all.find((sibling) => sibling.gateway === gateway);
    return owner === undefined || owner.gateway === own ? null : owner.inner_port;
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
      case "take_over":
        void this.handlers.takeOver(order.sessions).then(() =>
          this.#channel.send({
            type: "took_over",
            gateways: [...new Set(order.sessions.flatMap(({ id }) => ownerOf(id) ?? []))],
          }),
        );
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

/** An MCP session's id names the gateway that has it. */
export const sessionIdOf = (gateway: string, random: string): string => `mcp_${gateway}_${random}`;

/** The gateway in the id of a session; undefined for the id of a gateway without siblings. */
export const ownerOf = (sessionId: string): string | undefined => /^mcp_([0-9a-z]+)_/.exec(sessionId)?.[1];

/**
 * Prometheus metrics. Limit: labels are bounded: states, moves, outcomes, routes, and the names of AGENT_CAP agents.
 * Several gateways on one port answer a scrape with one text (summed-metrics.ts): counters and histograms are summed, each
 * gauge says how it is combined.
 */
import {
  type Aggregator,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type PrometheusContentType,
  Registry,
} from "prom-client";
import type { MetricValues } from "./summed-metrics.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/** Agents whose queues are shown by name; those with the most waiting come first. */
const AGENT_CAP = 100;

export interface QueueDepth {
  readonly agent: string;
  readonly waiting: number;
  readonly working: number;
  readonly oldest_seconds: number;
}

/**
 * How the metrics of Node and of the process are combined, where prom-client would choose a sum, a mean of percentiles,
 * or nothing: the worst delay of the event loop counts, the lowest limit, the first start.
 */
const DEFAULTS: readonly (readonly [name: string, how: Aggregator])[] = [
  ["process_start_time_seconds", "min"],
  ["process_max_fds", "min"],
  ["nodejs_eventloop_lag_seconds", "max"],
  ...["mean", "stddev", "p50", "p90", "p99"].map(
    (what) => [`nodejs_eventloop_lag_${what}_seconds`, "max"] as const,
  ),
];

/** Combines the metrics of this gateway with those of the others; `ofBroker` are those of the whole broker. */
export type Combine = (own: readonly MetricValues[], ofBroker: readonly MetricValues[]) => Promise<string>;

export class Metrics {
  readonly #registry = new Registry<PrometheusContentType>();
  /** Runs before each scrape. */
  #onScrape: () => Promise<readonly QueueDepth[]> = async () => [];
  /** Runs before each use of this gateway's metrics. */
  #onRead: () => void = () => {};
  #combine: Combine | undefined;

  readonly moves = this.#counter("errand_moves_total", "Moves made, by move", ["move"]);
  readonly finished = this.#counter("errand_delegations_finished_total", "Delegations ended, by state", [
    "state",
  ]);
  readonly replies = this.#counter("errand_replies_total", "Replies, by outcome", ["outcome"]);
  readonly swept = this.#counter("errand_sweep_moves_total", "Moves made by the sweep, by move", ["move"]);
  readonly ticketsRemade = this.#counter("errand_tickets_remade_total", "Lost tickets replaced", []);
  readonly handedBack = this.#counter(
    "errand_leases_handed_back_total",
    "Leases returned because their reader was gone",
    [],
  );
  readonly cutAnswers = this.#counter(
    "errand_answers_cut_total",
    "Responses cut because their readers left too much unread",
    [],
  );
  readonly notifications = this.#counter(
    "errand_notifications_total",
    "Notifications of subscriptions, by channel and outcome",
    ["channel", "outcome"],
  );
  readonly links = this.#counter("errand_links_total", "Answer links that were used, by outcome", [
    "outcome",
  ]);
  readonly callbacks = this.#counter("errand_callbacks_total", "Callbacks to delegators, by outcome", [
    "outcome",
  ]);
  readonly pushes = this.#counter("errand_pushes_total", "Push notifications, by outcome", ["outcome"]);
  readonly requests = this.#counter(
    "errand_http_requests_total",
    "HTTP requests, by method, route and status",
    ["method", "route", "status"],
  );
  readonly parkedPolls = this.#gauge("errand_parked_polls", "Polls parked at this gateway", [], "sum");
  readonly streams = this.#gauge("errand_event_streams", "Event streams open at this gateway", [], "sum");

  readonly accept = this.#histogram(
    "errand_accept_seconds",
    "From the request of a delegation to its record",
  );
  readonly timeToLease = this.#histogram("errand_time_to_lease_seconds", "From a ready ticket to its lease");
  readonly timeToAnswer = this.#histogram(
    "errand_time_to_answer_seconds",
    "From accepting a delegation to its completion",
  );
  readonly wake = this.#histogram("errand_wake_seconds", "From a parked poll's wake to its ticket");

  // Metrics of the whole broker: only the gateway that is scraped reads them.
  readonly #redisUp = this.#gauge(
    "errand_redis_up",
    "1 if this scrape could read the queues from Redis",
    [],
    "first",
  );
  readonly #waiting = this.#gauge(
    "errand_queue_waiting",
    "Delegations waiting, by agent",
    ["agent"],
    "first",
  );
  readonly #working = this.#gauge("errand_queue_working", "Live leases, by agent", ["agent"], "first");
  readonly #oldest = this.#gauge(
    "errand_queue_oldest_seconds",
    "Age of the oldest waiting delegation, by agent",
    ["agent"],
    "first",
  );
  readonly #ofBroker: ReadonlySet<string> = new Set([
    "errand_redis_up",
    "errand_queue_waiting",
    "errand_queue_working",
    "errand_queue_oldest_seconds",
  ]);

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
    for (const [name, how] of DEFAULTS) {
      const metric = this.#registry.getSingleMetric(name);
      if (metric) Object.assign(metric, { aggregator: how });
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  onScrape(depths: () => Promise<readonly QueueDepth[]>): void {
    this.#onScrape = depths;
  }

  onRead(update: () => void): void {
    this.#onRead = update;
  }

  /** For one of several gateways on a port: a scrape at any of them gets the metrics of all. */
  combineWith(combine: Combine): void {
    this.#combine = combine;
  }

  /** When the queues cannot be read, their gauges are left out; the other metrics still count. */
  async text(): Promise<string> {
    const depths = await this.#onScrape().catch(() => null);
    this.#redisUp.set(depths === null ? 0 : 1);
    for (const gauge of [this.#waiting, this.#working, this.#oldest]) gauge.reset();
    const fullest = [...(depths ?? [])].sort((a, b) => b.waiting - a.waiting || b.working - a.working);
    for (const { agent, waiting, working, oldest_seconds } of fullest.slice(0, AGENT_CAP)) {
      this.#waiting.set({ agent }, waiting);
      this.#working.set({ agent }, working);
      this.#oldest.set({ agent }, oldest_seconds);
    }
    this.#onRead();
    if (!this.#combine) return this.#registry.metrics();
    const all = await this.#values();
    const isOfBroker = ({ name }: MetricValues) => this.#ofBroker.has(name);
    return this.#combine(
      all.filter((one) => !isOfBroker(one)),
      all.filter(isOfBroker),
    );
  }

  /** This gateway's part of the text of another one. */
  async snapshot(): Promise<MetricValues[]> {
    this.#onRead();
    return (await this.#values()).filter(({ name }) => !this.#ofBroker.has(name));
  }

  async #values(): Promise<MetricValues[]> {
    const values = await this.#registry.getMetricsAsJSON();
    return values.map((one) => ({ ...one, type: String(one.type) }));
  }

  #counter<T extends string>(name: string, help: string, labelNames: T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge<T extends string>(name: string, help: string, labelNames: T[], aggregator: Aggregator): Gauge<T> {
    return new Gauge({ name, help, labelNames, aggregator, registers: [this.#registry] });
  }

  #histogram(name: string, help: string): Histogram {
    return new Histogram({ name, help, buckets: SECONDS, registers: [this.#registry] });
  }
}

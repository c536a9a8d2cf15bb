/** Prometheus metrics. Limit: labels are bounded: states, moves, outcomes, routes, and the names of AGENT_CAP agents. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/** Agents whose queues are shown by name; those with the most waiting come first. */
export const AGENT_CAP = 100;

export interface QueueDepth {
  readonly agent: string;
  readonly waiting: number;
  readonly working: number;
  readonly oldest_seconds: number;
}

export class Metrics {
  readonly #registry = new Registry();
  /** Runs before each scrape. */
  #onScrape: () => Promise<readonly QueueDepth[]> = async () => [];

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
  readonly callbacks = this.#counter("errand_callbacks_total", "Callbacks to delegators, by outcome", [
    "outcome",
  ]);
  readonly pushes = this.#counter("errand_pushes_total", "Push notifications, by outcome", ["outcome"]);
  readonly requests = this.#counter(
    "errand_http_requests_total",
    "HTTP requests, by method, route and status",
    ["method", "route", "status"],
  );
  readonly parkedPolls = this.#gauge("errand_parked_polls", "Polls parked at this gateway", []);
  readonly streams = this.#gauge("errand_event_streams", "Event streams open at this gateway", []);

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

  readonly #redisUp = this.#gauge("errand_redis_up", "1 if this scrape could read the queues from Redis", []);
  readonly #waiting = this.#gauge("errand_queue_waiting", "Delegations waiting, by agent", ["agent"]);
  readonly #working = this.#gauge("errand_queue_working", "Live leases, by agent", ["agent"]);
  readonly #oldest = this.#gauge(
    "errand_queue_oldest_seconds",
    "Age of the oldest waiting delegation, by agent",
    ["agent"],
  );

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  onScrape(depths: () => Promise<readonly QueueDepth[]>): void {
    this.#onScrape = depths;
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
    return this.#registry.metrics();
  }

  #counter<T extends string>(name: string, help: string, labelNames: T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge<T extends string>(name: string, help: string, labelNames: T[]): Gauge<T> {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string): Histogram {
    return new Histogram({ name, help, buckets: SECONDS, registers: [this.#registry] });
  }
}

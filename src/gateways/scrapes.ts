/** Scrapes of a supervisor's gateways: the sum of all metrics, with those of gateways that ended and its own. */
import { type MetricValues, SummedMetrics } from "../telemetry/summed-metrics.ts";
import { collect, type GatewayChild } from "./child.ts";
import type { Report } from "./messages.ts";
import type { Places } from "./places.ts";

/** How long a scrape waits for each gateway. The last values of a late one are used. */
const MEASURE_MS = 2_000;

export class Scrapes {
  readonly sums = new SummedMetrics<GatewayChild>();
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  /** Answers the gateway that was scraped. */
  async answer(asking: GatewayChild, { id, of_broker }: Report & { readonly type: "sum" }): Promise<void> {
    const { all, children } = this.#places;
    const others = [...children].filter((child) => child !== asking && child.state !== "starting");
    await collect(others, MEASURE_MS, (child) => child.ask("measure"));
    const restarts = all.reduce((sum, place) => sum + place.restarts, 0);
    const own = supervisorMetrics(this.#places.ready().length, restarts);
    asking.send({ type: "metrics_text", id, text: await this.sums.text([...of_broker, ...own]) });
  }
}

/** The state of the gateways, and what the supervisor's own process uses. */
export function supervisorMetrics(ready: number, restarts: number): MetricValues[] {
  const { user, system } = process.cpuUsage();
  const seconds = (micros: number) => micros / 1e6;
  return [
    metric("errand_gateways_ready", "gauge", ready, "Gateways of this supervisor that are ready"),
    metric(
      "errand_gateway_restarts_total",
      "counter",
      restarts,
      "Gateways of this supervisor that ended unexpectedly",
    ),
    metric("process_cpu_user_seconds_total", "counter", seconds(user)),
    metric("process_cpu_system_seconds_total", "counter", seconds(system)),
    metric("process_cpu_seconds_total", "counter", seconds(user + system)),
    metric("process_resident_memory_bytes", "gauge", process.memoryUsage.rss()),
  ];
}

/** A metric as prom-client exports it. A metric that the gateways export as well has their help text, so none here. */
function metric(name: string, type: "counter" | "gauge", value: number, help = ""): MetricValues {
  const exported = { name, help, type, aggregator: "sum", values: [{ value, labels: {} }] };
  return exported;
}

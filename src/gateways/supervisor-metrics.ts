/** The metrics of the supervisor itself: the state of its gateways, and what its own process uses. */
import type { MetricValues } from "../telemetry/summed-metrics.ts";

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

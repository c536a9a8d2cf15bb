/** The metrics of a supervisor: what it alone knows, and its part of the cost. */
import type { MetricValues } from "../telemetry/summed-metrics.ts";

export function ownMetrics(ready: number, restarts: number): MetricValues[] {
  const { user, system } = process.cpuUsage();
  const seconds = (micros: number) => micros / 1e6;
  return [
    value("errand_gateways_ready", "gauge", ready, "Gateways of this supervisor that are ready"),
    value(
      "errand_gateway_restarts_total",
      "counter",
      restarts,
      "Gateways of this supervisor that ended unexpectedly",
    ),
    value("process_cpu_user_seconds_total", "counter", seconds(user)),
    value("process_cpu_system_seconds_total", "counter", seconds(system)),
    value("process_cpu_seconds_total", "counter", seconds(user + system)),
    value("process_resident_memory_bytes", "gauge", process.memoryUsage.rss()),
  ];
}

/** A metric as prom-client exports it. `help` is empty for a metric that the gateways export, too: theirs is used. */
function value(name: string, type: "counter" | "gauge", of: number, help = ""): MetricValues {
  const values = [{ value: of, labels: {} }];
  const metric = { name, help, type, aggregator: "sum", values };
  return metric;
}

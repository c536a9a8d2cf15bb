/** Benchmark results: named figures with their unit, their range over the rounds, and their target. */
import { median } from "./numbers.ts";

/** Targets of the project; a figure with such a name says whether it meets its target. */
const AIMS: Readonly<Record<string, { readonly at: "least" | "most"; readonly value: number }>> = {
  cycle_ratio_vs_bullmq: { at: "least", value: 0.7 },
  cycle_p50_ms_at_100_per_s: { at: "most", value: 3 },
  broker_cpu_us_per_delegation: { at: "most", value: 750 },
  wake_p99_ms: { at: "most", value: 10 },
  redis_connections: { at: "most", value: 6 },
  cycle_ratio_1m_kept: { at: "least", value: 0.9 },
  cycle_ratio_10k_agents: { at: "least", value: 0.9 },
  poller_bytes: { at: "most", value: 12_000 },
  sse_bytes: { at: "most", value: 25_000 },
  crowd_cpu_percent: { at: "most", value: 7 },
  crowd_get_p99_ms: { at: "most", value: 45 },
  crowd_back_s: { at: "most", value: 9 },
  many_rss_mb: { at: "most", value: 600 },
  many_cpu_percent: { at: "most", value: 5 },
  many_get_p99_ms: { at: "most", value: 20 },
  many_back_s: { at: "most", value: 30 },
  start_version_ratio: { at: "most", value: 2 },
  start_list_ratio: { at: "most", value: 2 },
};

/** Names in the order of the report; one scenario makes each. */
export const SCENARIOS = {
  cycle: [
    "cycle_per_s",
    "bullmq_direct_per_s",
    "cycle_ratio_vs_bullmq",
    "cycle_p50_ms",
    "cycle_p99_ms",
    "bullmq_direct_p50_ms",
    "redis_commands_per_delegation",
    "redis_us_per_delegation",
    "gateway_cpu_us_per_delegation",
    "broker_cpu_us_per_delegation",
    "client_cpu_us_per_delegation",
    "bullmq_direct_redis_us_per_job",
    "bullmq_direct_client_cpu_us_per_job",
  ],
  paced: ["cycle_p50_ms_at_100_per_s", "bullmq_direct_p50_ms_at_100_per_s"],
  wake: ["wake_p50_ms", "wake_p99_ms", "redis_connections"],
  idle: ["poller_bytes", "sse_bytes"],
  crowd: ["crowd_cpu_percent", "crowd_get_p99_ms", "crowd_back_s"],
  many: [
    "many_rss_mb",
    "many_cpu_percent",
    "many_get_p99_ms",
    "many_back_s",
    "many_busiest_second",
    "many_back_get_p99_ms",
  ],
  fair: ["fair_cycle_p99_ms", "fair_get_p99_ms", "fair_expiry_p99_ms"],
  turns: [
    "turns_cycle_per_s",
    "turns_ratio_vs_bullmq",
    "turns_gateway_cpu_us_per_delegation",
    "turns_redis_us_per_delegation",
    "turns_bullmq_per_s",
  ],
  workers: [
    "workers_cycle_per_s",
    "workers_p50_ms",
    "workers_p99_ms",
    "workers_gateway_cpu_us_per_delegation",
    "workers_redis_us_per_delegation",
    "workers_rss_mib",
  ],
  shards: [
    "shards_cycle_per_s",
    "shards_p50_ms",
    "shards_gateway_cpu_us_per_delegation",
    "shards_redis_us_per_delegation",
  ],
  replay: ["replay_events_per_s", "replay_get_p99_ms", "replay_grown_mib"],
  agents: ["cycle_ratio_10k_agents"],
  kept: ["cycle_ratio_1m_kept"],
  start: ["start_version_ratio", "start_list_ratio"],
} as const;
export type Scenario = keyof typeof SCENARIOS;
export type FigureName = (typeof SCENARIOS)[Scenario][number];

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly [more: string]: string | number | boolean;
}

const rounded = (value: number): number => Number(value.toPrecision(4));

/** The median of the rounds, with their range; `more` names the conditions. */
export function figure(
  name: FigureName,
  unit: string,
  rounds: readonly number[],
  more: Readonly<Record<string, string | number>> = {},
): Figure {
  const value = rounded(median(rounds));
  const aim = AIMS[name];
  return {
    name,
    value,
    unit,
    min: rounded(Math.min(...rounds)),
    max: rounded(Math.max(...rounds)),
    rounds: rounds.length,
    ...more,
    ...(aim && {
      aim: `at ${aim.at} ${aim.value}`,
      met: aim.at === "least" ? value >= aim.value : value <= aim.value,
    }),
  };
}

/** As text for people. */
export function line({ name, value, unit, min, max, rounds, aim, met, ...more }: Figure): string {
  const range = rounds === undefined || rounds === 1 ? "" : `${min} to ${max}`;
  const conditions = Object.entries(more).map(([key, text]) => `${key}=${text}`);
  const verdict = aim === undefined ? "" : `aim: ${aim}, ${met ? "met" : "missed"}`;
  return [
    name.padEnd(36),
    `${value} ${unit}`.padStart(18),
    range.padEnd(22),
    [...conditions, verdict].join("  "),
  ]
    .join("  ")
    .trimEnd();
}

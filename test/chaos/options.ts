/** What a run is asked for. Limit: durations in minutes, as on the command line. */
import { parseArgs } from "node:util";

export interface Options {
  readonly seed: number;
  readonly minutes: number;
  readonly fsync: "always" | "everysec";
  readonly shards: number;
  readonly gateways: number;
  readonly delegators: number;
  readonly agents: number;
  readonly subscribers: number;
  /** Delegations a second, all delegators together. */
  readonly rate: number;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseSeconds: number;
  /** How long what is finished is kept. */
  readonly retentionSeconds: number;
  /** Seconds between two faults, about. */
  readonly every: number;
  /** Faults to draw from; all of them when empty. */
  readonly faults: readonly string[];
  /** What the workers over plain HTTP do with all their work, instead of drawing it. */
  readonly deed: string | null;
  /** How long everything may take to end by itself, once it can. */
  readonly patienceSeconds: number;
  /** No history and no idempotency keys, which would only grow. */
  readonly soak: boolean;
  /** A broken broker by its name, to see the checker find it. */
  readonly defect: string | null;
  readonly report: string | null;
  /** Where the history is kept; otherwise it is deleted when the run is clean. */
  readonly keep: boolean;
}

export const DEFAULTS: Options = {
  seed: 1,
  minutes: 1,
  fsync: "always",
  shards: 1,
  gateways: 3,
  delegators: 2,
  agents: 2,
  subscribers: 2,
  rate: 25,
  leaseSeconds: 3,
  retentionSeconds: 86_400,
  every: 3,
  faults: [],
  deed: null,
  patienceSeconds: 90,
  soak: false,
  defect: null,
  report: null,
  keep: false,
};

export class UsageError extends Error {}

const number = (name: string, text: string, low: number, high: number): number => {
  const value = Number(text);
  if (!(value >= low && value <= high)) {
    throw new UsageError(`--${name} ${text}: give a number from ${low} to ${high}.`);
  }
  return value;
};

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string" },
      minutes: { type: "string" },
      fsync: { type: "string" },
      shards: { type: "string" },
      gateways: { type: "string" },
      delegators: { type: "string" },
      agents: { type: "string" },
      subscribers: { type: "string" },
      rate: { type: "string" },
      lease: { type: "string" },
      every: { type: "string" },
      faults: { type: "string" },
      defect: { type: "string" },
      report: { type: "string" },
      keep: { type: "boolean" },
    },
  });
  const get = (name: keyof typeof values, known: number, low: number, high: number): number => {
    const value = values[name];
    return typeof value === "string" ? number(name, value, low, high) : known;
  };
  const { fsync = DEFAULTS.fsync } = values;
  if (fsync !== "always" && fsync !== "everysec") {
    throw new UsageError(`--fsync ${fsync}: give always or everysec.`);
  }
  return {
    ...DEFAULTS,
    // Not drawn, a seed is printed all the same, and the run can be repeated.
    seed: get("seed", Math.floor(Date.now() / 1000) % 1_000_000, 0, 2 ** 32),
    minutes: get("minutes", DEFAULTS.minutes, 0.05, 600),
    fsync,
    shards: get("shards", DEFAULTS.shards, 1, 256),
    gateways: get("gateways", DEFAULTS.gateways, 1, 8),
    delegators: get("delegators", DEFAULTS.delegators, 1, 16),
    agents: get("agents", DEFAULTS.agents, 1, 16),
    subscribers: get("subscribers", DEFAULTS.subscribers, 1, 16),
    rate: get("rate", DEFAULTS.rate, 0.1, 1_000),
    leaseSeconds: get("lease", DEFAULTS.leaseSeconds, 1, 60),
    every: get("every", DEFAULTS.every, 0.2, 600),
    faults: values.faults?.split(",") ?? [],
    defect: values.defect ?? null,
    report: values.report ?? null,
    keep: values.keep ?? false,
  };
}

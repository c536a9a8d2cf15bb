/** The options of a run, and the command line that sets them. */
import { FAULT_NAMES } from "./faults.ts";
import { type Flag, parseFlags, UsageError } from "./flags.ts";

export interface Options {
  readonly seed: number;
  readonly minutes: number;
  readonly fsync: "always" | "everysec";
  /** A Redis Cluster of three masters and three replicas instead of one Redis. */
  readonly cluster: boolean;
  readonly shards: number;
  readonly gateways: number;
  /** The processes of each gateway: more than one run under a supervisor (ERRAND_WORKERS). */
  readonly workers: number;
  readonly delegators: number;
  readonly agents: number;
  readonly subscribers: number;
  /** Delegations a second, all delegators together. */
  readonly rate: number;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseSeconds: number;
  /** How long finished work is kept. */
  readonly retentionSeconds: number;
  /** Seconds between two faults, roughly. */
  readonly every: number;
  /** Faults to choose from; empty: all. */
  readonly faults: readonly string[];
  /** What the workers over plain HTTP do with every task; null: the seed decides. */
  readonly behavior: string | null;
  /** How long the work may take to end after all faults are removed. */
  readonly patienceSeconds: number;
  /** Records no history and uses no idempotency keys, because both would only grow. */
  readonly soak: boolean;
  /** The name of a broken broker that the checker must find. */
  readonly defect: string | null;
  readonly report: string | null;
  /** Keeps the history; otherwise it is deleted when the run is clean. */
  readonly keep: boolean;
}

export const DEFAULTS: Options = {
  seed: 1,
  minutes: 1,
  fsync: "always",
  cluster: false,
  shards: 1,
  gateways: 3,
  workers: 1,
  delegators: 2,
  agents: 2,
  subscribers: 2,
  rate: 25,
  leaseSeconds: 3,
  retentionSeconds: 86_400,
  every: 3,
  faults: [],
  behavior: null,
  patienceSeconds: 90,
  soak: false,
  defect: null,
  report: null,
  keep: false,
};

export const FLAGS = {
  seed: { value: "N", range: [0, 2 ** 32], help: "seed of the run (default: from the clock, and printed)" },
  minutes: { value: "M", range: [0.05, 600], help: `how long faults are injected (${DEFAULTS.minutes})` },
  fsync: { value: "F", help: `always or everysec (${DEFAULTS.fsync})` },
  cluster: { help: "a Redis Cluster of three masters and three replicas, whose slots and masters change" },
  shards: { value: "N", range: [1, 256], help: `number of shards (${DEFAULTS.shards})` },
  gateways: { value: "N", range: [1, 8], help: `gateway processes (${DEFAULTS.gateways})` },
  workers: {
    value: "N",
    range: [1, 8],
    help: `processes of each gateway, under a supervisor if more than one (${DEFAULTS.workers})`,
  },
  delegators: {
    value: "N",
    range: [1, 16],
    help: `delegator processes, with two callers each (${DEFAULTS.delegators})`,
  },
  agents: { value: "N", range: [1, 16], help: `worker processes over plain HTTP (${DEFAULTS.agents})` },
  subscribers: { value: "N", range: [1, 16], help: `subscriber processes (${DEFAULTS.subscribers})` },
  rate: { value: "R", range: [0.1, 1_000], help: `delegations a second (${DEFAULTS.rate})` },
  lease: { value: "S", range: [1, 60], help: `seconds of a lease (${DEFAULTS.leaseSeconds})` },
  every: { value: "S", range: [0.2, 600], help: `seconds between two faults, roughly (${DEFAULTS.every})` },
  faults: { value: "A,B", help: `inject only these, separated by commas: ${FAULT_NAMES.join(", ")}` },
  defect: {
    value: "NAME",
    help: "run a broker with the defect that the rule of this name must find; all: one run per rule",
  },
  report: {
    value: "FILE",
    help: "write the report into that Markdown file, between <!-- chaos:begin --> and <!-- chaos:end -->",
  },
  keep: { help: "keep the history; it is always kept when the checker found something" },
} as const satisfies Record<string, Flag>;

export function readOptions(args: readonly string[]): Options {
  const { text, number, isSet } = parseFlags(FLAGS, args);
  const fsync = text("fsync") ?? DEFAULTS.fsync;
  if (fsync !== "always" && fsync !== "everysec") {
    throw new UsageError(`--fsync ${fsync}: give always or everysec.`);
  }
  return {
    ...DEFAULTS,
    // Always printed, so that the run can be repeated.
    seed: number("seed") ?? Math.floor(Date.now() / 1000) % 1_000_000,
    minutes: number("minutes") ?? DEFAULTS.minutes,
    fsync,
    cluster: isSet("cluster"),
    // With one, all work would be on one master.
    shards: number("shards") ?? (isSet("cluster") ? 6 : DEFAULTS.shards),
    gateways: number("gateways") ?? DEFAULTS.gateways,
    workers: number("workers") ?? DEFAULTS.workers,
    delegators: number("delegators") ?? DEFAULTS.delegators,
    agents: number("agents") ?? DEFAULTS.agents,
    subscribers: number("subscribers") ?? DEFAULTS.subscribers,
    rate: number("rate") ?? DEFAULTS.rate,
    leaseSeconds: number("lease") ?? DEFAULTS.leaseSeconds,
    every: number("every") ?? DEFAULTS.every,
    faults: text("faults")?.split(",") ?? [],
    defect: text("defect") ?? null,
    report: text("report") ?? null,
    keep: isSet("keep"),
  };
}

/** The command line of the benchmarks. Limit: numbers are not checked for sense. */
import { parseArguments, unknownName, WrongArguments } from "../scripts/arguments.mjs";
import { CLIENTS, type ClientName } from "./clients.ts";
import { SCENARIOS, type Scenario } from "./figures.ts";

export const HELP = `npm run bench -- [options]      (npm run -s bench -- --json for clean JSON)

Figures go to standard output, progress to standard error.

  --json              print one JSON object per line: {name, value, unit, min, max, rounds, ...}
  --only NAMES        run only these, separated by commas: scenarios (${Object.keys(SCENARIOS).join(", ")}) or figures;
                      without it, all but 'many', which npm run prove -- many measures
  --quick             use small numbers: takes a minute and checks that everything works, but gives no useful figures
  --rounds N          number of rounds, interleaved; the median is reported          (5)
  --seconds S         length of each measured round                                  (4)
  --lanes N           number of concurrent callers, and of concurrent polls          (50)
  --bytes N           size of a task, and of a reply                                 (1024)
  --clients A,B       HTTP clients of the cycle: ${CLIENTS.join(", ")}                   (all)
  --pollers A,B       idle polls beside the load of the wake-up figures              (1000,5000)
  --streams N         idle event streams                                             (2000)
  --crowd N           polls at the gateway that is killed, and as many streams       (5000)
  --many N            polls at the gateway that is restarted, and as many streams    (10000)
  --workers A,B       gateways on one port (ERRAND_WORKERS) that share the cycle     (1,2,4)
  --shards A,B        shards (ERRAND_SHARDS) over which one gateway's work is spread (1,4,16)
  --agents N          agents that the load is spread over                            (10000)
  --replayed N        finished delegations of one principal whose events are replayed (100000)
  --kept N            finished delegations that are stored                           (1000000)
  --profile FILE      write a CPU profile of the gateway under the cycle load, and print where its time goes
  --help              print this help
`;

export interface Options {
  readonly json: boolean;
  readonly only: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup: number;
  readonly lanes: number;
  readonly bytes: number;
  readonly clients: readonly ClientName[];
  readonly pollers: readonly number[];
  readonly streams: number;
  readonly crowd: number;
  readonly many: number;
  readonly workers: readonly number[];
  readonly shards: readonly number[];
  readonly agents: number;
  readonly replayed: number;
  readonly kept: number;
  readonly profile: string | null;
}

const FULL = {
  rounds: "5",
  seconds: "4",
  pollers: "1000,5000",
  streams: "2000",
  crowd: "5000",
  many: "10000",
  workers: "1,2,4",
  shards: "1,4,16",
  agents: "10000",
  replayed: "100000",
  kept: "1000000",
};
const QUICK = {
  rounds: "2",
  seconds: "1",
  pollers: "200",
  streams: "200",
  crowd: "200",
  many: "200",
  workers: "1,2,4",
  shards: "1,4,16",
  agents: "500",
  replayed: "2000",
  kept: "5000",
};

export class UsageError extends Error {}

/** Null if help was requested. */
export function readOptions(args: readonly string[]): Options | null {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  let values: ReturnType<typeof parse>["values"];
  const parse = () =>
    parseArguments(args, {
      json: flag,
      quick: flag,
      only: text,
      rounds: text,
      seconds: text,
      lanes: text,
      bytes: text,
      clients: text,
      pollers: text,
      streams: text,
      crowd: text,
      many: text,
      workers: text,
      shards: text,
      agents: text,
      replayed: text,
      kept: text,
      profile: text,
    });
  try {
    values = parse().values;
  } catch (error) {
    throw error instanceof WrongArguments ? new UsageError(error.message) : error;
  }
  if (values.help) return null;
  const given = { ...(values.quick ? QUICK : FULL), lanes: "50", bytes: "1024", ...values };
  const number = (name: string, value: string, least = 1): number => {
    const read = Number(value);
    if (!(read >= least)) throw new UsageError(`--${name}: a number from ${least} on, not '${value}'`);
    return read;
  };
  const only =
    given.only?.split(",").map((name) => name.trim()) ??
    Object.keys(SCENARIOS).filter((name) => name !== "many");
  const known = new Set<string>([...Object.keys(SCENARIOS), ...Object.values(SCENARIOS).flat()]);
  for (const name of only)
    if (!known.has(name)) throw new UsageError(unknownName("scenario or figure", name, [...known]).message);
  const clients = given.clients?.split(",").map((name) => {
    const client = CLIENTS.find((one) => one === name.trim());
    if (!client) throw new UsageError(unknownName("client", name, CLIENTS).message);
    return client;
  });
  const seconds = number("seconds", given.seconds, 0.1);
  return {
    json: given.json,
    only,
    rounds: number("rounds", given.rounds),
    seconds,
    warmup: Math.min(1.5, seconds),
    lanes: number("lanes", given.lanes),
    bytes: number("bytes", given.bytes, 64),
    clients: clients ?? CLIENTS,
    pollers: given.pollers.split(",").map((count) => number("pollers", count)),
    streams: number("streams", given.streams),
    crowd: number("crowd", given.crowd),
    many: number("many", given.many),
    workers: given.workers.split(",").map((count) => number("workers", count)),
    shards: given.shards.split(",").map((count) => number("shards", count)),
    agents: number("agents", given.agents),
    replayed: number("replayed", given.replayed),
    kept: number("kept", given.kept),
    profile: given.profile ?? null,
  };
}

/** Whether a scenario makes any requested figure. */
export function wants({ only }: Options, scenario: Scenario): boolean {
  return only.includes(scenario) || SCENARIOS[scenario].some((name) => only.includes(name));
}

/** Whether a figure is requested, by its own name or its scenario's. */
export function wantsFigure({ only }: Options, scenario: Scenario, name: string): boolean {
  return only.includes(scenario) || only.includes(name);
}

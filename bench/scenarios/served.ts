/**
 * The cycle at full speed against `errand serve`, with several gateways on one port or several shards: one delegation must
 * not cost more. Limit: the settings follow one after the other, not in turn, because gateways without load read every
 * event, too. The clients run on the same machine, so that with few cores they set the pace.
 */
import { type Figure, figure } from "../figures.ts";
import { ErrandLoad, perSecond, type Window } from "../load.ts";
import { median } from "../numbers.ts";
import type { Options } from "../options.ts";
import { ServedGateways } from "../served.ts";
import type { Stage } from "../stage.ts";

interface Round {
  readonly window: Window;
  readonly rss: number;
}

type Say = (line: string) => void;

/** All work is of one agent, so that every gateway needs every other one's polls. */
export async function workers(stage: Stage, options: Options, say: Say): Promise<Figure[]> {
  const all: Figure[] = [];
  await stage.fsync("always");
  for (const count of options.workers) {
    const served = { workers: count, shards: 1, agents: 1 };
    const rounds = await measure(stage, options, served, (line) => say(`workers=${count} ${line}`));
    all.push(...workersFigures(rounds, { workers: count, ...conditions(options) }));
  }
  return all;
}

/** One gateway; each poll is of an agent of its own, which decides the shard. */
export async function shards(stage: Stage, options: Options, say: Say): Promise<Figure[]> {
  const all: Figure[] = [];
  await stage.fsync("always");
  for (const count of options.shards) {
    const served = { workers: 1, shards: count, agents: options.lanes };
    const rounds = await measure(stage, options, served, (line) => say(`shards=${count} ${line}`));
    all.push(...commonFigures("shards", rounds, { shards: count, ...conditions(options) }));
  }
  return all;
}

const clientOf = ({ clients: [client = "bare"] }: Options) => client;
const conditions = (options: Options) => ({ client: clientOf(options), lanes: options.lanes });

async function measure(
  stage: Stage,
  options: Options,
  served: { readonly workers: number; readonly shards: number; readonly agents: number },
  say: Say,
): Promise<Round[]> {
  const { lanes, bytes } = options;
  const shape = { client: clientOf(options), lanes, bytes, rate: null, wait: true };
  const gateways = await ServedGateways.start(stage, served);
  let load: ErrandLoad | undefined;
  try {
    const agents = await gateways.agents(served.agents, "served");
    const polls = Array.from({ length: lanes }, (_, at) => agents[at % agents.length] ?? fail());
    load = await ErrandLoad.start(stage, gateways, polls);
    // Each gateway compiles its code under load.
    for (let n = 0; n < served.workers; n += 1) await load.window(shape, options);
    const rounds: Round[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      const window = await load.window(shape, options);
      rounds.push({ window, rss: (await gateways.usage()).rss });
      say(`${round}/${options.rounds}: ${perSecond(window).toFixed(0)}/s`);
    }
    return rounds;
  } finally {
    await load?.end();
    await gateways.stop();
    await stage.redis.flushall("ASYNC");
  }
}

function fail(): never {
  throw new Error("no agent");
}

type More = Readonly<Record<string, string | number>>;
const each = (rounds: readonly Round[], of: (window: Window) => number) =>
  rounds.map(({ window }) => of(window));
const p50 = ({ asked }: Window) => asked.p50_ms;
const p99 = ({ asked }: Window) => asked.p99_ms;
const gatewayCpu = ({ gateway_cpu_us, asked }: Window) => gateway_cpu_us / asked.count;
const redisCpu = ({ redis, asked }: Window) => redis.cpu_us / asked.count;

/** How many scripts of Redis a delegation takes. */
function scriptsOf(rounds: readonly Round[]): { readonly scripts: number } {
  const scripts = each(rounds, ({ redis, asked }) => redis.scripts / asked.count);
  return { scripts: Number(median(scripts).toFixed(1)) };
}

const commonFigures = (of: "workers" | "shards", rounds: readonly Round[], more: More): Figure[] => [
  figure(`${of}_cycle_per_s`, "1/s", each(rounds, perSecond), more),
  figure(`${of}_p50_ms`, "ms", each(rounds, p50), more),
  figure(`${of}_gateway_cpu_us_per_delegation`, "us", each(rounds, gatewayCpu), more),
  figure(`${of}_redis_us_per_delegation`, "us", each(rounds, redisCpu), { ...more, ...scriptsOf(rounds) }),
];

const workersFigures = (rounds: readonly Round[], more: More): Figure[] => [
  ...commonFigures("workers", rounds, more),
  figure("workers_p99_ms", "ms", each(rounds, p99), more),
  figure(
    "workers_rss_mib",
    "MiB",
    rounds.map(({ rss }) => rss / 2 ** 20),
    more,
  ),
];

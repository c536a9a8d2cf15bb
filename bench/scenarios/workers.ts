/**
 * The cycle at full speed with several gateways on one port: more must be done in a second, and one delegation must not
 * cost more. Limit: the numbers of gateways follow one after the other, not in turn, because gateways without load read
 * every event, too. The clients run on the same machine, so that with few cores they set the pace.
 */
import { type Figure, figure } from "../figures.ts";
import { ErrandLoad, perSecond, type Window } from "../load.ts";
import { median } from "../numbers.ts";
import type { Options } from "../options.ts";
import { ServedGateways } from "../served.ts";
import type { Stage } from "../stage.ts";

interface Rounds {
  readonly workers: number;
  readonly rounds: { readonly window: Window; readonly rss: number }[];
}

export async function workers(
  stage: Stage,
  options: Options,
  say: (line: string) => void,
): Promise<Figure[]> {
  await stage.fsync("always");
  const all: Rounds[] = [];
  for (const count of options.workers) all.push(await measure(stage, options, count, say));
  const [client = "bare"] = options.clients;
  return all.flatMap((one) => figuresOf(one, { workers: one.workers, client, lanes: options.lanes }));
}

async function measure(
  stage: Stage,
  options: Options,
  count: number,
  say: (line: string) => void,
): Promise<Rounds> {
  const [client = "bare"] = options.clients;
  const shape = { client, lanes: options.lanes, bytes: options.bytes, rate: null, wait: true };
  const gateways = await ServedGateways.start(stage, count);
  let load: ErrandLoad | undefined;
  try {
    const [agent] = await gateways.agents(1, "workers");
    if (!agent) throw new Error("no agent");
    const polls = Array.from({ length: options.lanes }, () => agent);
    load = await ErrandLoad.start(stage, gateways, polls);
    // Each gateway compiles its code under load.
    for (let n = 0; n < count; n += 1) await load.window(shape, options);
    const rounds: Rounds["rounds"] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      const window = await load.window(shape, options);
      rounds.push({ window, rss: (await gateways.usage()).rss });
      say(`workers=${count} ${round}/${options.rounds}: ${perSecond(window).toFixed(0)}/s`);
    }
    return { workers: count, rounds };
  } finally {
    await load?.end();
    await gateways.stop();
    await stage.redis.flushall("ASYNC");
  }
}

function figuresOf({ rounds }: Rounds, more: Readonly<Record<string, string | number>>): Figure[] {
  const each = (of: (window: Window) => number) => rounds.map(({ window }) => of(window));
  const scripts = Number(median(each(({ redis, asked }) => redis.scripts / asked.count)).toFixed(1));
  return [
    figure("workers_cycle_per_s", "1/s", each(perSecond), more),
    figure(
      "workers_p50_ms",
      "ms",
      each(({ asked }) => asked.p50_ms),
      more,
    ),
    figure(
      "workers_p99_ms",
      "ms",
      each(({ asked }) => asked.p99_ms),
      more,
    ),
    figure(
      "workers_gateway_cpu_us_per_delegation",
      "us",
      each(({ gateway_cpu_us, asked }) => gateway_cpu_us / asked.count),
      more,
    ),
    figure(
      "workers_redis_us_per_delegation",
      "us",
      each(({ redis, asked }) => redis.cpu_us / asked.count),
      { ...more, scripts },
    ),
    figure(
      "workers_rss_mib",
      "MiB",
      rounds.map(({ rss }) => rss / 2 ** 20),
      more,
    ),
  ];
}

/**
 * The whole cycle at full speed with each HTTP client, and the same on BullMQ directly: alternating rounds, at both
 * fsync settings. Limit: one agent, one gateway.
 */
import type { ClientName } from "../clients.ts";
import { type Figure, figure } from "../figures.ts";
import { Gateway } from "../gateway.ts";
import { BullLoad, ErrandLoad, perSecond, type Window } from "../load.ts";
import type { Options } from "../options.ts";
import { commandTable, describeProfile } from "../profile.ts";
import { FSYNCS, type Fsync, type Stage } from "../stage.ts";

interface Rounds {
  readonly errand: Map<ClientName, Window[]>;
  readonly bull: Window[];
}

const noRounds = (clients: readonly ClientName[]): Rounds => ({
  errand: new Map(clients.map((client) => [client, []])),
  bull: [],
});

export async function cycle(stage: Stage, options: Options, say: (line: string) => void): Promise<Figure[]> {
  const gateway = await Gateway.start(stage);
  const [agent] = await gateway.agents(1, "cycle");
  if (!agent) throw new Error("no agent");
  const errand = await ErrandLoad.start(
    stage,
    gateway,
    Array.from({ length: options.lanes }, () => agent),
  );
  const bull = new BullLoad(stage);
  const shape = { lanes: options.lanes, bytes: options.bytes, rate: null, wait: true };
  const rounds: Record<Fsync, Rounds> = {
    always: noRounds(options.clients),
    everysec: noRounds(options.clients),
  };
  try {
    // Compiled and grown before the count starts.
    for (const client of options.clients) await errand.window({ ...shape, client }, options);
    await bull.window(shape, options);
    if (options.profile !== null) {
      await stage.watchSlow();
      await gateway.profile();
    }
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const fsync of FSYNCS) {
        await stage.fsync(fsync);
        const said: string[] = [];
        for (const client of options.clients) {
          const ours = await errand.window({ ...shape, client }, options);
          rounds[fsync].errand.get(client)?.push(ours);
          said.push(`${client} ${perSecond(ours).toFixed(0)}/s`);
        }
        const theirs = await bull.window(shape, options);
        rounds[fsync].bull.push(theirs);
        said.push(`bullmq ${perSecond(theirs).toFixed(0)}/s`);
        say(`cycle ${round}/${options.rounds} ${fsync}: ${said.join(", ")}`);
      }
    }
    if (options.profile !== null) {
      await gateway.profiled(options.profile);
      const all = FSYNCS.flatMap((fsync) => [...rounds[fsync].errand.values()].flat());
      say([commandTable(all), await stage.slow(), await describeProfile(options.profile, all)].join("\n\n"));
    }
  } finally {
    await Promise.all([errand.end(), bull.end()]);
    await gateway.stop();
    await stage.redis.flushall("ASYNC");
  }
  return FSYNCS.flatMap((fsync) => {
    const conditions = { fsync, lanes: options.lanes, bytes: options.bytes };
    const { errand: byClient, bull: theirs } = rounds[fsync];
    return [
      ...[...byClient].flatMap(([client, ours]) => ourFigures(ours, theirs, { client, ...conditions })),
      ...bullFigures(theirs, conditions),
    ];
  });
}

type Conditions = Readonly<Record<string, string | number>>;

const each = (windows: readonly Window[], of: (window: Window) => number) =>
  windows.map((window) => of(window) / window.asked.count);
const clientCpu = ({ asked, worked }: Window) => asked.cpu_us + worked.cpu_us;

function ourFigures(errand: readonly Window[], bull: readonly Window[], more: Conditions): Figure[] {
  const ratios = errand.map((window, round) => {
    const rival = bull[round];
    return rival ? perSecond(window) / perSecond(rival) : 0;
  });
  const scripts = Math.round(
    errand.reduce((sum, { redis, asked }) => sum + redis.scripts / asked.count, 0) / errand.length,
  );
  return [
    figure("cycle_per_s", "1/s", errand.map(perSecond), more),
    figure("cycle_ratio_vs_bullmq", "ratio", ratios, more),
    figure(
      "cycle_p50_ms",
      "ms",
      errand.map(({ asked }) => asked.p50_ms),
      more,
    ),
    figure(
      "cycle_p99_ms",
      "ms",
      errand.map(({ asked }) => asked.p99_ms),
      more,
    ),
    figure(
      "redis_commands_per_delegation",
      "commands",
      each(errand, ({ redis }) => redis.commands),
      { ...more, scripts },
    ),
    figure(
      "redis_us_per_delegation",
      "us",
      each(errand, ({ redis }) => redis.cpu_us),
      more,
    ),
    figure(
      "gateway_cpu_us_per_delegation",
      "us",
      each(errand, (window) => window.gateway_cpu_us),
      more,
    ),
    figure(
      "broker_cpu_us_per_delegation",
      "us",
      each(errand, (window) => window.gateway_cpu_us + window.redis.cpu_us),
      more,
    ),
    figure("client_cpu_us_per_delegation", "us", each(errand, clientCpu), more),
  ];
}

function bullFigures(bull: readonly Window[], more: Conditions): Figure[] {
  return [
    figure("bullmq_direct_per_s", "1/s", bull.map(perSecond), more),
    figure(
      "bullmq_direct_p50_ms",
      "ms",
      bull.map(({ asked }) => asked.p50_ms),
      more,
    ),
    figure(
      "bullmq_direct_redis_us_per_job",
      "us",
      each(bull, ({ redis }) => redis.cpu_us),
      more,
    ),
    figure("bullmq_direct_client_cpu_us_per_job", "us", each(bull, clientCpu), more),
  ];
}

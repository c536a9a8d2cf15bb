/**
 * `npm run prove -- soak`: a steady load for a long time, without faults. Once finished work is deleted as fast as new work
 * arrives, memory, keys and descriptors must stay flat. Exits 0 if they do, 1 if not, 64 for a wrong option. Limit:
 * Linux only; submits carry no idempotency key, because keys live for a day and would distort the count.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Flag, helpOf, parseFlags, UsageError } from "./flags.ts";
import { DEFAULTS, type Options } from "./options.ts";
import { Stage } from "./stage.ts";
import { quantile } from "./summary.ts";

const FLAGS = {
  minutes: { value: "M", range: [0.05, 6_000], help: "how long the run takes, warm-up included (45)" },
  rate: { value: "R", range: [0.1, 1_000], help: "delegations a second (100)" },
  gateways: { value: "N", range: [1, 8], help: "gateway processes (2)" },
  retention: { value: "S", range: [1, 86_400], help: "seconds that finished work is kept (60)" },
  warmup: {
    value: "M",
    range: [0, 6_000],
    help: "minutes that do not count (a fifth of all, at least 3 retentions)",
  },
  report: { value: "FILE", help: "write the report to this Markdown file, the samples beside it as .json" },
} as const satisfies Record<string, Flag>;

const HELP = `npm run prove -- soak [options]\n\n${helpOf(FLAGS)}`;

interface Sample {
  readonly minute: number;
  readonly finished: number;
  readonly [series: string]: number;
}

/** How much a series may grow from the first to the last quarter after the warm-up. */
const ALLOWED: Record<string, { readonly share: number; readonly plus: number }> = {
  rss_mb: { share: 0.05, plus: 8 },
  // These include the connections of clients, which come and go.
  fds: { share: 0.25, plus: 40 },
  redis_mb: { share: 0.05, plus: 4 },
  keys: { share: 0.05, plus: 500 },
  redis_clients: { share: 0, plus: 2 },
};

interface Trend {
  readonly series: string;
  readonly first: number;
  readonly last: number;
  /** Slope by least squares, for ten minutes. */
  readonly slope: number;
  readonly flat: boolean;
}

function trendOf(series: string, samples: readonly Sample[]): Trend {
  const points = samples.map((sample) => [sample.minute, sample[series] ?? 0] as const);
  const quarter = Math.max(1, Math.floor(points.length / 4));
  const median = (some: readonly (readonly [number, number])[]) =>
    quantile(
      some.map(([, value]) => value),
      0.5,
    );
  const [first, last] = [median(points.slice(0, quarter)), median(points.slice(-quarter))];
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / Math.max(1, points.length);
  const [x, y] = [mean(0), mean(1)];
  const over = points.reduce((sum, [minute, value]) => sum + (minute - x) * (value - y), 0);
  const under = points.reduce((sum, [minute]) => sum + (minute - x) ** 2, 0);
  const name = Object.keys(ALLOWED).find((known) => series === known || series.startsWith(`${known}_`));
  const { share, plus } = (name !== undefined && ALLOWED[name]) || {
    share: Number.POSITIVE_INFINITY,
    plus: 0,
  };
  const slope = under === 0 ? 0 : Math.round((over / under) * 1_000) / 100;
  return { series, first, last, slope, flat: last <= first * (1 + share) + plus };
}

const MB = 1024 * 1024;
const round = (value: number): number => Math.round(value * 10) / 10;

async function sample(stage: Stage, minute: number): Promise<Sample> {
  const { client } = stage.redis;
  const [memory, clients, keys] = await Promise.all([
    client.info("memory"),
    client.info("clients"),
    client.dbsize(),
  ]);
  const field = (text: string, name: string) =>
    Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1] ?? 0);
  const numbers: Record<string, number> = {
    redis_mb: round(field(memory, "used_memory") / MB),
    redis_clients: field(clients, "connected_clients"),
    keys: keys - (await stage.redis.scan("errand:idempotency:*")).size,
  };
  let finished = 0;
  let waiting = 0;
  for (const [n, { url, child }] of stage.gateways.entries()) {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    numbers[`rss_mb_${n}`] = round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    numbers[`fds_${n}`] = readdirSync(`/proc/${child.pid}/fd`).length;
    const headers = { authorization: `Bearer ${stage.operatorToken}` };
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
    for (const [, count] of metrics.matchAll(/^errand_delegations_finished_total\{[^}]*\} (\d+)/gm)) {
      finished += Number(count);
    }
    // Each gateway counts all queues.
    const queues = metrics.matchAll(/^errand_queue_waiting\{[^}]*\} (\d+)/gm);
    waiting = [...queues].reduce((sum, [, count]) => sum + Number(count), 0);
    numbers[`loop_p99_ms_${n}`] = round(
      1000 * Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(metrics)?.[1] ?? 0),
    );
  }
  return { minute: round(minute), finished, ...numbers, waiting };
}

interface Soak {
  readonly minutes: number;
  readonly warmup: number;
  readonly options: Options;
  readonly report: string | undefined;
}

function readArgs(args: readonly string[]): Soak {
  const { text, number } = parseFlags(FLAGS, args);
  const minutes = number("minutes") ?? 45;
  const retentionSeconds = number("retention") ?? 60;
  const options = {
    ...DEFAULTS,
    minutes,
    retentionSeconds,
    gateways: number("gateways") ?? 2,
    rate: number("rate") ?? 100,
    faults: ["none"],
    leaseSeconds: 10,
    soak: true,
  };
  const warmup = number("warmup") ?? Math.max(minutes / 5, (3 * retentionSeconds) / 60);
  return { minutes, warmup, options, report: text("report") };
}

const print = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(HELP);
    return 0;
  }
  const { minutes, warmup, options, report } = readArgs(args);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
  const stage = await Stage.open(options);
  const samples: Sample[] = [];
  try {
    for (const { child } of stage.workers) child.send("shelf");
    const begin = performance.now();
    const passed = () => (performance.now() - begin) / 60_000;
    const every = Math.max(1_000, Math.min(15_000, (minutes * 60_000) / 60));
    while (passed() < minutes && !stop.signal.aborted) {
      await sleep(every, undefined, { signal: stop.signal }).catch(() => undefined);
      const now = await sample(stage, passed());
      samples.push(now);
      if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${JSON.stringify(now)}`);
    }
    const text = render(options, samples, warmup);
    process.stdout.write(text.page);
    if (report !== undefined) {
      writeFileSync(report, text.page);
      writeFileSync(`${report.replace(/\.md$/, "")}.json`, `${JSON.stringify(samples)}\n`);
    }
    const deaths = stage.gateways.flatMap(({ child }) => child.deaths);
    for (const death of deaths) print(death);
    return text.flat && deaths.length === 0 ? 0 : 1;
  } finally {
    await stage.close(false);
  }
}

function render(
  options: Options,
  samples: readonly Sample[],
  warmup: number,
): { page: string; flat: boolean } {
  const counted = samples.filter(({ minute }) => minute >= warmup);
  const [first] = counted;
  const last = counted.at(-1);
  if (first === undefined || last === undefined || counted.length < 4) {
    return { page: "too short: nothing was measured after the warm-up\n", flat: false };
  }
  const series = Object.keys(last).filter((name) => name !== "minute" && name !== "finished");
  const trends = series.map((name) => trendOf(name, counted));
  const seconds = (last.minute - first.minute) * 60;
  const rate = round((last.finished - first.finished) / Math.max(1, seconds));
  const flat = trends.every((trend) => trend.flat);
  const grew = (name: string) =>
    trends.some((trend) => trend.series === name && trend.last > trend.first * 1.5 + 50);
  const lines = [
    `Soak: ${options.rate} delegations/s requested, ${rate}/s finished, ${options.gateways} gateways, ${round(last.minute)} minutes, of which the first ${round(warmup)} do not count; finished work kept for ${options.retentionSeconds} s; ${last.finished} delegations in all.`,
    "",
    "| series | first quarter | last quarter | slope, per 10 min | flat |",
    "| --- | --- | --- | --- | --- |",
    ...trends.map(
      ({ series: name, first: a, last: b, slope, flat: ok }) =>
        `| ${name} | ${a} | ${b} | ${slope} | ${ALLOWED[name.replace(/_\d+$/, "")] === undefined ? "–" : ok ? "yes" : "NO"} |`,
    ),
    "",
    flat ? "Flat." : "NOT FLAT.",
    ...(grew("waiting")
      ? ["More work arrived than the workers finished, so keys and memory grew with the queues."]
      : []),
    "",
  ];
  return { page: lines.join("\n"), flat };
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  print(error.message);
  process.exitCode = 64;
}
process.stdout.write("", () => process.exit());

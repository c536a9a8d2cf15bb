/**
 * Attacks on a gateway, each from a token of its own, beside a victim that lists its delegations: `npm run prove --
 * limits attacks [--seconds N] [--rounds N] [--together] [--write] [NAME ...]`. Each round measures the victim alone, then beside
 * each attack, then beside all at once (`--together`: only that), on a gateway of its own. Prints the median of the rounds:
 * the victim's p99, that against its quiet value, and the gateway's highest memory; `--write` also writes them to
 * measured.json. Fails if a gateway dies. The attackers run in a process of their own (attackers.ts), so that their work
 * does not count as the victim's waiting. Limit: they share the cores.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Gateway } from "../../bench/gateway.ts";
import { closeStages, Stage } from "../../bench/stage.ts";
import { checkNames, orExit, parseArguments, positive } from "../../scripts/arguments.mjs";
import { NAMES, type Order, type Orders } from "./attack-names.ts";
import { update } from "./measured.ts";

const MIB = 1024 * 1024;
const PAUSE_MS = 50;
const SETTLE_MS = 1_000;

const percentile = (values: readonly number[], part: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ??
  Number.NaN;

/** How long the lists of the victim take, ms. */
async function victim(gateway: Gateway, token: string, until: number): Promise<number[]> {
  const took: number[] = [];
  while (performance.now() < until) {
    const began = performance.now();
    await gateway.call("GET", "/v1/delegations?limit=1", undefined, token).catch((error: unknown) => {
      process.stderr.write(`victim: ${String(error).slice(0, 120)}\n`);
    });
    took.push(performance.now() - began);
    await sleep(PAUSE_MS);
  }
  return took;
}

/** Starts the attackers; resolves when their connections are opened. */
async function begin(orders: Orders): Promise<ChildProcess> {
  const child = fork(new URL("./attackers.ts", import.meta.url), { execArgv: ["--import", "tsx"] });
  child.send(orders);
  await Promise.race([
    once(child, "message"),
    once(child, "exit").then(() => {
      throw new Error("The attackers ended early.");
    }),
  ]);
  return child;
}

async function stop(child: ChildProcess | null): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

interface Result {
  readonly p99: number;
  readonly mib: number;
}

async function round(names: readonly string[], seconds: number): Promise<Result> {
  const stage = await Stage.open();
  await stage.fsync("everysec");
  const gateway = await Gateway.start(stage);
  let attackers: ChildProcess | null = null;
  try {
    const token = await gateway.token("caller:victim");
    const workers = await gateway.agents(Math.max(1, names.length), "attacked");
    const orders: Order[] = [];
    for (const [at, name] of names.entries()) {
      const worker = workers[at];
      if (worker) orders.push({ name, worker, token: await gateway.token(`caller:attacker-${at}`) });
    }
    attackers = orders.length > 0 ? await begin({ url: gateway.url, orders }) : null;
    await sleep(SETTLE_MS);
    let most = 0;
    const look = setInterval(
      () =>
        void gateway
          .usage()
          .then(({ rss }) => {
            most = Math.max(most, rss);
          })
          .catch(() => {}),
      200,
    );
    const took = await victim(gateway, token, performance.now() + seconds * 1_000);
    clearInterval(look);
    await stop(attackers);
    most = Math.max(most, (await gateway.usage()).rss);
    return { p99: percentile(took, 0.99), mib: most / MIB };
  } finally {
    await stop(attackers);
    await gateway.stop();
    await stage.close();
  }
}

const HELP = `npm run prove -- limits attacks [options] [NAME ...]

Measures how long a victim waits beside attacks, each alone and all at once, in comparison to a quiet broker.

  --seconds N  how long each takes                    (5)
  --rounds N   how often; the medians count           (5)
  --together   only all at once
  --write      update docs/settings.md
  --help       print this help

  NAME         ${NAMES.map((name) => `"${name}"`).join("\n               ")}
`;
const OPTIONS = {
  seconds: { type: "string", default: "5" },
  rounds: { type: "string", default: "5" },
  write: { type: "boolean", default: false },
  together: { type: "boolean", default: false },
} as const;

async function main(): Promise<void> {
  const { values, seconds, rounds, names } = orExit(HELP, () => {
    const { values, positionals: names } = parseArguments(process.argv.slice(2), OPTIONS, { names: true });
    checkNames("attack", names, NAMES);
    const [seconds, rounds] = [positive("seconds", values.seconds), positive("rounds", values.rounds)];
    return { values, seconds, rounds, names };
  });
  const { write: isWritten, together: isTogether } = values;
  const all = names.length > 0 ? names : NAMES;
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["quiet", []],
    ...(isTogether ? [] : all.map((name): [string, string[]] => [name, [name]])),
    ["all at once", all],
  ];
  const results = new Map<string, { readonly result: Result; readonly ratio: number }[]>();
  for (let n = 0; n < rounds; n += 1) {
    let quiet = Number.NaN;
    for (const [name, names] of rows) {
      const result = await round(names, seconds);
      if (names.length === 0) quiet = result.p99;
      results.set(name, [...(results.get(name) ?? []), { result, ratio: result.p99 / quiet }]);
    }
  }
  process.stdout.write("victim's p99, ms | of its quiet value | gateway, MiB at most | attack\n");
  const found = [...results].map(([name, of]) => {
    const median = (value: (one: (typeof of)[number]) => number) => percentile(of.map(value), 0.5);
    return {
      name,
      p99_ms: Math.round(median(({ result }) => result.p99)),
      times_quiet: Number(median(({ ratio }) => ratio).toFixed(1)),
      mib: Math.round(Math.max(...of.map(({ result }) => result.mib))),
    };
  });
  for (const { name, p99_ms, times_quiet, mib } of found)
    process.stdout.write(`${[p99_ms, times_quiet, mib].map((n) => `${n}`.padStart(8)).join("")}  ${name}\n`);
  const part = { seconds, rounds, rows: found };
  if (isWritten) update(() => (isTogether ? { together: part } : { attacks: part }));
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void closeStages().finally(() => process.exit(130)));
}
await main();

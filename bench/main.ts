/**
 * The benchmarks: docs/benchmarks.md explains each figure. Exits with 0 if all ran, whatever the figures.
 * Limit: on a busy machine, the figures also measure the other load.
 */
import { constants, cpus, totalmem } from "node:os";
import { type Figure, line, SCENARIOS, type Scenario } from "./figures.ts";
import { HELP, type Options, readOptions, UsageError, wants, wantsFigure } from "./options.ts";
import { crowd, many } from "./scenarios/crowd.ts";
import { cycle } from "./scenarios/cycle.ts";
import { fair } from "./scenarios/fair.ts";
import { agents, kept } from "./scenarios/growth.ts";
import { idle } from "./scenarios/idle.ts";
import { paced } from "./scenarios/paced.ts";
import { replay } from "./scenarios/replay.ts";
import { shards, workers } from "./scenarios/served.ts";
import { start } from "./scenarios/start.ts";
import { turns } from "./scenarios/turns.ts";
import { wake } from "./scenarios/wake.ts";
import { closeStages, Stage } from "./stage.ts";

const RUN: Record<
  Scenario,
  (stage: Stage, options: Options, say: (line: string) => void) => Promise<Figure[]>
> = {
  cycle,
  paced,
  wake,
  idle,
  crowd,
  many,
  fair,
  turns,
  workers,
  shards,
  replay,
  agents,
  kept,
  start,
};

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

async function main(options: Options): Promise<void> {
  const tell = (figure: Figure) => print(options.json ? JSON.stringify(figure) : line(figure));
  const scenarios = Object.keys(SCENARIOS).filter(isScenario);
  const stage = await Stage.open();
  try {
    tell(await machine(stage));
    for (const scenario of scenarios) {
      if (!wants(options, scenario)) continue;
      for (const figure of await RUN[scenario](stage, options, say)) {
        if (wantsFigure(options, scenario, figure.name)) tell(figure);
      }
    }
  } finally {
    await stage.close();
  }
}

async function machine(stage: Stage): Promise<Figure> {
  return {
    name: "machine",
    value: cpus().length,
    unit: "cores",
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    memory_gib: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform}-${process.arch}`,
    node: process.version,
    redis: await stage.version(),
  };
}

function isScenario(name: string): name is Scenario {
  return Object.hasOwn(SCENARIOS, name);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    // The other processes exit when their parent does.
    void closeStages().finally(() => process.exit(128 + constants.signals[signal]));
  });
}
try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) process.stdout.write(HELP);
  else await main(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(error.message);
  process.exitCode = 64;
}

/**
 * `npm run prove -- agents`: the coding agents that `errand work --preset` knows, each run against a broker and a scripted model on
 * loopback. Nothing reaches a real provider.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { checkNames, orExit, parseArguments, WrongArguments } from "../../scripts/arguments.mjs";
import type { PresetName } from "../../src/cli/work/presets/programs.ts";
import { Bench, Subject } from "./bench.ts";
import { CELLS, type Result } from "./cells.ts";
import { cacheFolder } from "./install.ts";
import { CELL_NAMES, type CellName } from "./names.ts";
import { REAL } from "./programs.ts";
import { type ProgramResult, tableOf, writeResults } from "./results.ts";
import { playScene } from "./scene-play.ts";

const HELP = `npm run prove -- agents [options]

Installs coding agents into a cache, runs each as 'errand work --preset' against a scripted model on loopback, prints what
works, and exits with 1 if something does not that should.

  --only NAMES    of the programs: ${Object.keys(REAL).join(", ")}
  --cells NAMES   of the rows: ${CELL_NAMES.join(", ")}
  --limit N       seconds for each row                       (300)
  --cache FOLDER  where the programs are installed           (${cacheFolder()})
  --scene         only the scene of two Claude Codes, a killed worker, an hour and the console (needs Chromium)
  --picture FILE  with --scene: writes the question in the console into this PNG file
  --write         update the table in docs/recipes.md
  --help          print this help
`;

const isPreset = (name: string): name is PresetName => Object.hasOwn(REAL, name);
const isCell = (name: string): name is CellName => CELL_NAMES.some((one) => one === name);
const listed = (text: string | undefined): string[] | undefined => text?.split(",").filter(Boolean);

const { only, cells, limitMs, cache, writes, isScene, picture } = orExit(HELP, () => {
  const parsed = parseArguments(process.argv.slice(2), {
    only: { type: "string" },
    cells: { type: "string" },
    limit: { type: "string", default: "300" },
    cache: { type: "string", default: cacheFolder() },
    write: { type: "boolean", default: false },
    scene: { type: "boolean", default: false },
    picture: { type: "string" },
  });
  const { values } = parsed;
  const names = listed(values.only) ?? Object.keys(REAL);
  const rows = listed(values.cells) ?? CELL_NAMES;
  checkNames("program", names, Object.keys(REAL));
  checkNames("row", rows, CELL_NAMES);
  if (values.picture !== undefined && values.scene !== true)
    throw new WrongArguments("--picture is of the scene: add --scene.");
  return {
    values,
    only: names.filter(isPreset),
    cells: rows.filter(isCell),
    limitMs: Number(values.limit) * 1000,
    cache: String(values.cache),
    writes: values.write === true,
    isScene: values.scene === true,
    picture: values.picture,
  };
});

const results: Record<string, ProgramResult> = {};
let hasFailed = false;
const bench = new Bench();
const stop = async (status: number) => {
  await bench.close();
  process.exit(status);
};
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void stop(130));
try {
  if (isScene) hasFailed = !(await playScene({ bench, cache, picture, writes, say }));
  else {
    await bench.start();
    for (const preset of only) results[preset] = await column(preset);
  }
} finally {
  await bench.close();
}
if (!isScene) {
  process.stdout.write(`\n${tableOf(results)}\n`);
  if (writes) await writeResults(results);
}
process.exit(hasFailed ? 1 : 0);

async function column(preset: PresetName): Promise<ProgramResult> {
  const program = REAL[preset];
  const subject = new Subject(bench, preset, program);
  say(`${program.name}: ${program.packages.join(", ")}`);
  await subject.prepare(cache);
  const worker = subject.work(preset);
  const seen: Record<string, Result> = {};
  for (const name of cells) {
    const why = program.cannot?.[name];
    if (why !== undefined) {
      seen[name] = `no: ${why}`;
      say(`  ${name}: no (${why})`);
      continue;
    }
    seen[name] = await cell(subject, preset, name);
  }
  await subject.stop(worker);
  await subject.stopAll();
  const date = new Date().toISOString().slice(0, 10);
  return { name: program.name, packages: [...program.packages], date, cells: seen };
}

async function cell(subject: Subject, preset: PresetName, name: CellName): Promise<Result> {
  const began = performance.now();
  const timer = new AbortController();
  let id: string | undefined;
  const late = sleep(limitMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`it took longer than ${limitMs / 1000} s`);
  });
  late.catch(() => undefined);
  const took = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  try {
    const running = CELLS[name].run(subject, preset, (one) => {
      id = one;
    });
    running.catch(() => undefined);
    const result = await Promise.race([running, late]);
    say(`  ${name}: ${result === true ? "yes" : result} (${took()})`);
    return result;
  } catch (error) {
    hasFailed = true;
    const why = error instanceof Error ? error.message : String(error);
    say(`  ${name}: FAILED after ${took()}: ${why}\n${indented(await subject.seen(id))}`);
    // The next row must not wait for what this one left.
    if (id !== undefined) await subject.delegator.cancel(id).catch(() => undefined);
    return `failed: ${why.split("\n")[0]}`;
  } finally {
    timer.abort();
  }
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

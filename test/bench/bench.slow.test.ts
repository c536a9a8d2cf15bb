import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
import { CLIENTS } from "../../bench/clients.ts";
import { SCENARIOS } from "../../bench/figures.ts";
import { bundled } from "../support/bundled.ts";
import { freshDir } from "../support/program.ts";

const GATEWAY = new URL("./gateway.mjs", import.meta.url);
const MAIN = fileURLToPath(new URL("../../bench/main.ts", import.meta.url));
const TINY =
  "--many 4 --rounds 1 --seconds 0.1 --lanes 2 --pollers 2 --streams 3 --crowd 4 --workers 2 --shards 2 --agents 3 --replayed 20 --kept 40 --bytes 128".split(
    " ",
  );

const figureSchema = z.looseObject({
  name: z.string(),
  value: z.number().refine(Number.isFinite),
  unit: z.string(),
});

async function bench(args: readonly string[]) {
  // A temporary directory of its own, to see what remains.
  const directory = freshDir();
  const env = { ...process.env, TMPDIR: directory, ERRAND_BENCH_GATEWAY: await bundled(GATEWAY) };
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", MAIN, "--json", ...args],
    { env },
  );
  const figures = stdout
    .trim()
    .split("\n")
    .map((line) => figureSchema.parse(JSON.parse(line)));
  const left = readdirSync(directory).filter((name) => name.startsWith("errand-bench-"));
  return { figures, stderr, left };
}

test("every figure is printed, as one JSON object per line, and nothing remains", async () => {
  const { figures, left } = await bench([...TINY, "--only", Object.keys(SCENARIOS).join(",")]);
  const printed = new Set(figures.map(({ name }) => name));
  expect([...printed].sort()).toEqual(["machine", ...Object.values(SCENARIOS).flat()].sort());
  const conditions = (name: string) =>
    figures.filter((figure) => figure.name === name).map(({ fsync, client }) => [fsync, client]);
  const everyClient = ["always", "everysec"].flatMap((fsync) => CLIENTS.map((client) => [fsync, client]));
  expect(conditions("cycle_per_s")).toEqual(everyClient);
  expect(conditions("cycle_ratio_vs_bullmq")).toEqual(everyClient);
  expect(conditions("cycle_p50_ms_at_100_per_s")).toEqual([
    ["always", CLIENTS[0]],
    ["everysec", CLIENTS[0]],
  ]);
  for (const { name, value } of figures) {
    // After so few delegations the resident size may have moved either way.
    if (!/_bytes$|_mib$/.test(name)) expect(value, name).toBeGreaterThan(0);
  }
  const ratio = figures.find(({ name }) => name === "cycle_ratio_1m_kept");
  expect(ratio).toMatchObject({ unit: "ratio", kept: 40, rounds: 1 });
  expect(left).toEqual([]);
}, 900_000);

test("an unknown name is refused before anything runs", async () => {
  await expect(bench(["--only", "speed"])).rejects.toMatchObject({
    code: 64,
    stdout: "",
    stderr: expect.stringMatching(/^There is no scenario or figure 'speed'; known: cycle, [^\n]+\.\n$/),
  });
});

#!/usr/bin/env node
/**
 * Puts one defect at a time into a copy of the sources, and runs the tests that must fail.
 * Limit: in-process tests only; dist and build are copied as they are.
 */
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { orExit, parseArguments, WrongArguments } from "./arguments.mjs";

const HELP = `npm run prove -- mutants [options] [part of a name...]

  --list         print the mutants and exit
  --no-baseline  skip the run on the unchanged sources
  --json FILE    write the outcome to a file

Exit code 0: every mutant was killed. 1: one survived, is stale, or its tests did not run. 2: the tests fail on the
unchanged sources.
`;
const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const TIMEOUT_MS = 300_000;

/** The defects: `from` in `file` becomes `to`, and a test in `tests` whose name contains `only` must fail. */
const MUTANTS = JSON.parse(readFileSync(join(ROOT, "scripts/mutants.json"), "utf8"));

const OPTIONS = { list: { type: "boolean" }, "no-baseline": { type: "boolean" }, json: { type: "string" } };
const { values, positionals } = orExit(HELP, () => {
  const parsed = parseArguments(process.argv.slice(2), OPTIONS, { names: true });
  for (const part of parsed.positionals)
    if (!MUTANTS.some(({ name }) => name.includes(part)))
      throw new WrongArguments(`No mutant's name contains '${part}'; --list prints the names.`);
  return parsed;
});
const chosen = MUTANTS.filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
if (values.list) for (const { name, file, tests } of chosen) say(`${name}  (${file}; ${tests.join(", ")})`);
else process.exitCode = await main();

async function main() {
  const copy = await copyTree();
  const end = () => rmSync(copy, { recursive: true, force: true });
  process.once("exit", end);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  if (!values["no-baseline"]) {
    const seconds = watch();
    const { outcome, output } = await runTests(copy, {
      tests: [...new Set(chosen.flatMap(({ tests }) => tests))],
    });
    if (outcome !== "green") {
      say(output);
      say("The tests fail on the unchanged sources: fix them first.");
      return 2;
    }
    say(`baseline green (${seconds()} s)`);
  }
  const results = [];
  for (const mutant of chosen) {
    const seconds = watch();
    const result = { name: mutant.name, is: await judge(copy, mutant), seconds: seconds() };
    results.push(result);
    say(`${result.is.padEnd(9)} ${String(result.seconds).padStart(4)} s  ${mutant.name}`);
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
  const left = results.filter(({ is }) => is !== "killed");
  say(`${results.length - left.length} of ${results.length} killed`);
  return left.length === 0 ? 0 : 1;
}

/** killed or survived; stale: the text is not in the file exactly once; broken: no test ran. */
async function judge(copy, mutant) {
  const path = join(copy, mutant.file);
  const text = readFileSync(path, "utf8");
  if (text.split(mutant.from).length !== 2) return "stale";
  writeFileSync(
    path,
    text.replace(mutant.from, () => mutant.to),
  );
  try {
    const { outcome } = await runTests(copy, mutant);
    return { red: "killed", green: "survived", none: "broken" }[outcome];
  } finally {
    writeFileSync(path, text);
  }
}

/** red: a test failed; green: all passed; none: none ran. A run that hangs is red. */
async function runTests(copy, { tests, only }) {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const args = ["run", ...tests, "--reporter=json", `--outputFile=${report}`, "--bail=1"];
  if (only) args.push("-t", only.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const { output, late } = await run(join(ROOT, "node_modules/.bin/vitest"), args, copy);
  if (late) return { outcome: "red", output };
  const { numPassedTests = 0, numFailedTests = 0 } = existsSync(report)
    ? JSON.parse(readFileSync(report, "utf8"))
    : {};
  const outcome = numFailedTests > 0 ? "red" : numPassedTests > 0 ? "green" : "none";
  return { outcome, output };
}

/** Copies the files, committed or not; dependencies and the build are shared. */
async function copyTree() {
  const copy = mkdtempSync(join(tmpdir(), "errand-mutants-"));
  const { output } = await run("git", ["ls-files", "-co", "--exclude-standard"], ROOT);
  for (const file of output.split("\n").filter(Boolean)) {
    if (!existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(ROOT, file), join(copy, file));
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  for (const name of ["dist", "build"])
    if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  return copy;
}

function run(command, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      // Its workers, too.
      process.kill(-child.pid, "SIGKILL");
    }, TIMEOUT_MS);
    const stop = () => process.kill(-child.pid, "SIGKILL");
    process.once("exit", stop);
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.once("error", reject);
    child.once("close", () => {
      clearTimeout(timer);
      process.off("exit", stop);
      resolve({ output, late });
    });
  });
}

function watch() {
  const began = Date.now();
  return () => Math.round((Date.now() - began) / 1000);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

#!/usr/bin/env node
/**
 * The npm scripts call this: it installs and builds what is missing, then runs one task. Needs only Node and npm.
 * Limit: POSIX, like the embedded Redis.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const DIST = join(ROOT, "dist");
/** Its sources are bundled for browsers, not compiled. */
const CONSOLE = join(ROOT, "src/console/");
/** npm does not pack files whose names start like this. */
const STAMP = join(DIST, "._stamp");
const MAIN = join(DIST, "errand.js");

const HELP = `node scripts/run.mjs <task> [args...]   (or: npm run <task> -- [args...])

  start   run the broker: errand serve [args...]
  dev     the same from the sources, restarted when they change; the console is bundled again, reload the page
  demo    run examples/demo.ts
  bench   run the benchmarks (--help lists them)
  test    run the tests: vitest run [args...]
  model   walk further than the tests do: [--runs 5000] [--seed N] [--path P] [--replay R]
  nodes   run the tests on each supported version of Node: [--node 20,22] [args...]
  mutants put one defect at a time into the sources: a test must fail each time (--help says more)
  chaos   break Redis, its network and every process under load, then check every observation (--help says more)
  fuzz    send more mutated requests than the tests do: [--runs 20000] [--seed N] [--path P]
  soak    run a steady load for long: memory, keys and descriptors must stay flat (--help says more)
  limits  drive bounds to their limit and measure memory: [--write] [NAME ...]; --write updates docs/reliability.md
  check   all that CI checks: format and lint, types, build, tests, package
  fix     format, fix what the linter can, write the generated docs
  build   compile src to dist, and bundle the program

Each installs the dependencies and builds first, if they are missing or out of date.
`;

const FUZZ_HELP = `npm run fuzz -- [options]

Sends valid, almost valid and hostile requests to every API. A failure prints the shortest request that fails, and the
seed and path that send it again.

  --runs N   number of requests          (20000)
  --seed N   chooses the requests        (random; printed)
  --path P   send only the request that failed, as printed
  --help     print this help`;

const TASKS = {
  async start(args) {
    await build();
    // In this process, so that signals and the exit code need no forwarding.
    process.argv = [process.execPath, MAIN, "serve", ...args];
    await import(pathToFileURL(MAIN).href);
  },
  async dev(args) {
    const { watchConsole } = await import("./bundle-console.mjs");
    await watchConsole();
    await run(bin("tsx"), ["watch", "src/main.ts", "serve", ...args]);
    process.exit(0);
  },
  async demo(args) {
    await build();
    await run(process.execPath, ["--import", "tsx", "examples/demo.ts", ...args]);
  },
  async bench(args) {
    await build();
    await run(process.execPath, ["--import", "tsx", "bench/main.ts", ...args]);
  },
  async test(args) {
    await build();
    await run(bin("vitest"), ["run", ...args]);
  },
  async model(args) {
    const { values } = parseArgs({
      args,
      options: {
        runs: { type: "string", default: "5000" },
        seed: { type: "string" },
        path: { type: "string" },
        replay: { type: "string" },
      },
    });
    for (const [name, value] of Object.entries(values)) process.env[`MODEL_${name.toUpperCase()}`] = value;
    await build();
    await run(bin("vitest"), ["run", "test/model"]);
  },
  async nodes(args) {
    await build();
    await run(process.execPath, ["scripts/nodes.mjs", ...args]);
  },
  async mutants(args) {
    await build();
    await run(process.execPath, ["scripts/mutants.mjs", ...args]);
  },
  async chaos(args) {
    await build();
    await run(process.execPath, ["--import", "tsx", "test/chaos/main.ts", ...args]);
  },
  async fuzz(args) {
    const options = {
      runs: { type: "string", default: "20000" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      path: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    };
    const { help, ...values } = parseArgs({ args, options }).values;
    if (help) return say(FUZZ_HELP);
    for (const [name, value] of Object.entries(values)) process.env[`FUZZ_${name.toUpperCase()}`] = value;
    say(`fuzz: seed ${values.seed}`);
    await build();
    await run(bin("vitest"), ["run", "test/fuzz"]);
  },
  async soak(args) {
    await build();
    await run(process.execPath, ["--import", "tsx", "test/chaos/soak.ts", ...args]);
  },
  async limits(args) {
    await build();
    await run(process.execPath, ["--import", "tsx", "test/limits/measure.ts", ...args]);
  },
  check,
  async fix() {
    await run(bin("biome"), ["check", "--write", "."]);
    await build();
    await run(process.execPath, ["scripts/generate.mjs"]);
  },
  build: () => build(),
};

async function check() {
  const steps = [
    ["biome ci", () => run(bin("biome"), ["ci", "."])],
    ["types", () => run(bin("tsc"), ["-p", "tsconfig.json"])],
    ["build", () => build()],
    ["generated docs", () => run(process.execPath, ["scripts/generate.mjs", "--check"])],
    ["tests", () => run(bin("vitest"), ["run"])],
    ["package", () => npm(["pack", "--dry-run"])],
  ];
  for (const [index, [name, step]] of steps.entries()) {
    try {
      await step();
    } catch (error) {
      const open = steps.slice(index + 1).map(([later]) => later);
      say(`check: ${name} FAILED${open.length > 0 ? `; not run: ${open.join(", ")}` : ""}`);
      throw error;
    }
  }
  say(`check: ok (${steps.map(([name]) => name).join(", ")})`);
}

/**
 * Installs the versions of package-lock.json, unless they are installed. `npm ci` would refuse a lock file that lacks the
 * optional packages of another platform; this installs the same versions and does not change the lock file.
 */
async function install() {
  if (installed()) return;
  await alone(async () => {
    if (installed()) return;
    say("Installing the dependencies ...");
    // Stdout belongs to the task, for example to `npm pack --json`.
    await npm(
      ["install", "--no-save", "--include=dev", "--no-audit", "--no-fund"],
      ["inherit", 2, "inherit"],
    );
  });
}

/** Compares with the hidden lock file, which npm writes last; it is missing after an interrupted install. */
function installed() {
  try {
    const wanted = JSON.parse(fs.readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
    const found = JSON.parse(fs.readFileSync(join(ROOT, "node_modules/.package-lock.json"), "utf8")).packages;
    return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
      if (path === "") return true;
      const there = found[path];
      // Optional packages of other platforms are not installed.
      if (there === undefined) return optional === true;
      return there.version === version && there.integrity === integrity;
    });
  } catch {
    return false;
  }
}

async function build() {
  if (built()) return;
  await alone(async () => {
    if (built()) return;
    say("Building ...");
    // Taken before the compiler reads the files, so that an edit during the build makes the build stale.
    const stamp = fingerprint();
    fs.rmSync(DIST, { recursive: true, force: true });
    // Several checkers would each read the types of the libraries again. `check` also checks those.
    await run(bin("tsc"), ["-p", "tsconfig.build.json", "--checkers", "1"], ["inherit", 2, "inherit"]);
    for (const file of files(join(ROOT, "src"))) {
      if (file.endsWith(".ts") || file.startsWith(CONSOLE)) continue;
      const target = join(DIST, relative(join(ROOT, "src"), file));
      fs.mkdirSync(dirname(target), { recursive: true });
      fs.copyFileSync(file, target);
    }
    const { bundle } = await import("./bundle.mjs");
    await bundle();
    fs.chmodSync(MAIN, 0o755);
    fs.writeFileSync(STAMP, stamp);
  });
}

function built() {
  try {
    return fs.readFileSync(STAMP, "utf8") === fingerprint();
  } catch {
    return false;
  }
}

/** Of every input of the build. */
function fingerprint() {
  const hash = createHash("sha256");
  const settings = [
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "scripts/bundle.mjs",
    "scripts/bundle-console.mjs",
  ].map((name) => join(ROOT, name));
  for (const file of [...files(join(ROOT, "src")), ...settings]) {
    const { mtimeMs, size } = fs.statSync(file);
    hash.update(`${relative(ROOT, file)}\n${mtimeMs}\n${size}\n`);
  }
  return hash.digest("hex");
}

function files(directory) {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Holds a lock, so that only one task installs or builds at a time; the lock of a dead owner is ignored. */
async function alone(work) {
  const place = createHash("sha256").update(ROOT).digest("hex").slice(0, 16);
  const lock = join(tmpdir(), `errand-setup-${process.getuid?.()}-${place}`);
  for (let waiting = false; !claimed(lock); waiting = true) {
    if (!waiting) say("Waiting for another task to finish its set-up ...");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    await work();
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

function claimed(lock) {
  try {
    fs.writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  try {
    process.kill(Number(fs.readFileSync(lock, "utf8")) || process.pid, 0);
  } catch (error) {
    if (error.code === "ENOENT") return claimed(lock);
    if (error.code === "ESRCH") {
      fs.rmSync(lock, { force: true });
      return claimed(lock);
    }
  }
  return false;
}

function npm(args, stdio) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith("npm-cli.js") ? run(process.execPath, [cli, ...args], stdio) : run("npm", args, stdio);
}

function bin(name) {
  return join(ROOT, "node_modules/.bin", name);
}

/** Runs a child that receives our signals; its failure is ours. */
function run(command, args, stdio = "inherit") {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, stdio });
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    // Ctrl-C reaches the child directly, and many tools take a second one as an order to quit at once.
    const forward = (signal) => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal);
    for (const signal of signals) process.on(signal, forward);
    const finish = (outcome) => {
      for (const signal of signals) process.off(signal, forward);
      outcome();
    };
    child.once("error", (error) => finish(() => reject(error)));
    child.once("exit", (code, signal) => {
      if (code === 0) return finish(resolve);
      const status = signal === null ? code : 128 + constants.signals[signal];
      finish(() => reject(new Failed(`${relative(ROOT, command)} ${args[0]}: exit code ${status}`, status)));
    });
  });
}

class Failed extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

/** npm may be killed, or its shell may die of a signal without passing it on. */
function followParent() {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 200);
  watch.unref();
}

const [name, ...rest] = process.argv.slice(2);
const task = Object.hasOwn(TASKS, name ?? "") ? TASKS[name] : undefined;
if (name === "--help" || name === "-h") {
  process.stdout.write(HELP);
} else if (task === undefined) {
  process.stderr.write(HELP);
  process.exitCode = 64;
} else {
  if (process.env.npm_lifecycle_event !== undefined) followParent();
  try {
    await install();
    await task(rest);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    say(error.message);
    process.exit(error.status);
  }
}

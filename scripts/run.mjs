#!/usr/bin/env node
/**
 * The npm scripts call this: it installs and builds what is missing, then runs one task. Needs only Node and npm.
 * Limit: POSIX, like the embedded Redis.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { EXIT_USAGE, readArguments } from "./arguments.mjs";
import { build, buildProgram } from "./build.mjs";
import { install } from "./install.mjs";
import { replace, restore, restoreAbandoned } from "./package.mjs";
import { bin, Failed, npm, ROOT, run, say } from "./steps.mjs";

const MAIN = join(ROOT, "dist/errand.js");

const HELP = `node scripts/run.mjs <task> [args...]   (or: npm run <task> -- [args...])

  start   run the broker: errand serve [args...]
  dev     the same from the sources, restarted when they change; the console is bundled again and its page reloads
  demo    run examples/demo.ts
  bench   run the benchmarks (--help lists them)
  many    one gateway with 10 000 parked polls and 10 000 event streams, restarted: three minutes [--many N] [--json]
  test    run the quick tests, or those in the files that are named, slow ones too: vitest run [args...]
  slow    run the slow tests, in files named *.slow.test.ts: vitest run [args...]
  cluster start a Redis Cluster and two gateways on loopback, to try them (--help says more)
  test:cluster  run the tests of doors, flows, lifecycle and faults on a Redis Cluster: [test/flows ...]
  failover  kill a master of a Cluster under load, again and again, and account for every acknowledgment: [--kills 10] [--wait 1]
  model   run more random walks through the lifecycle than the tests do: [--runs 5000] [--seed N] [--path P] [--replay R]
  nodes   run the tests on each supported version of Node: [--node 20,22] [args...]
  python-sdks  check a broker with clients of the official Python A2A SDKs, where Python is installed (--help says more)
  mutants put one defect at a time into the sources: a test must fail each time (--help says more)
  chaos   break Redis, its network and every process under load, then check every observation (--help says more)
  acp-kills  kill workers of an ACP agent while people approve its calls: none is handed over twice (--help says more)
  fuzz    send more mutated requests than the tests do: [--runs 20000] [--seed N] [--path P]
  soak    run a steady load for long: memory, keys and descriptors must stay flat (--help says more)
  limits  drive bounds to their limit and measure memory: [--write] [NAME ...]; --write updates docs/settings.md
          limits attacks [--seconds N] [--rounds N] [--together] [--write] [NAME ...]: a victim beside attacks
          limits bodies [--write] [VALUES] [NAME ...]: the CPU time of one request of each shape
  agents  run the coding agents of 'errand work --preset' against a scripted model: [--only gemini,...] (--help says more)
  golden  update the outputs that test/cli/golden compares: read the difference before you commit it
  check   all that CI checks: format and lint, types, build, tests, package
  fix     format, fix what the linter can, write the generated docs
  build   build the program, the console and the library into dist, and check types
  program build only what ./errand runs

Each installs the dependencies and builds first, if they are missing or out of date; start installs and builds only what
the broker needs.
`;

const MODEL_HELP = `npm run model -- [options]

Runs random walks through the lifecycle, on a broker and on its model. A failure prints the shortest walk that fails, and
the seed and path that repeat it.

  --runs N     number of walks                       (5000)
  --seed N     chooses the walks                     (random; printed)
  --path P     only the walk that failed, as printed
  --replay R   the steps of that walk, as printed
  --help       print this help`;

const FUZZ_HELP = `npm run fuzz -- [options]

Sends valid, almost valid and hostile requests to every API. A failure prints the shortest request that fails, and the
seed and path that send it again.

  --runs N   number of requests          (20000)
  --seed N   chooses the requests        (random; printed)
  --path P   send only the request that failed, as printed
  --help     print this help`;

const isHelp = (args) => args.includes("--help") || args.includes("-h");

/** Help needs no build. */
const buildFor = (args) => (isHelp(args) ? undefined : build());

/** `which`: quick or slow; without it, both. */
function tests(which, args = []) {
  if (which !== undefined) process.env.ERRAND_TESTS = which;
  return run(bin("vitest"), ["run", ...args]);
}

/** Whether one of vitest's arguments is a path. A word without a slash after an option may be the option's value. */
const namesFiles = (args) =>
  args.some((one, at) => !one.startsWith("-") && (one.includes("/") || !args[at - 1]?.startsWith("-")));

/** For tasks that take no arguments: those of HELP say what they do. */
function noArguments(name, args) {
  const line = HELP.split("\n").find((one) => one.startsWith(`  ${name} `));
  readArguments(`npm run ${name}\n\n${line}\n`, {}, { args });
}

const TASKS = {
  async start(args) {
    await buildProgram();
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
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "examples/demo.ts", ...args]);
  },
  async bench(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "bench/main.ts", ...args]);
  },
  async many(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "bench/main.ts", "--only", "many", ...args]);
  },
  async test(args) {
    await buildFor(args);
    await tests(namesFiles(args) ? undefined : "quick", args);
  },
  async slow(args) {
    await buildFor(args);
    await tests("slow", args);
  },
  async cluster(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/cluster/start.ts", ...args]);
  },
  async failover(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/cluster/kill-masters.ts", ...args]);
  },
  async "test:cluster"(args) {
    process.env.ERRAND_TEST_CLUSTER = "1";
    await buildFor(args);
    const suites = ["test/cluster", "test/doors", "test/flows", "test/lifecycle", "test/faults"];
    // These break the link between a gateway and the run's one Redis, on which they put a proxy.
    const linked = ["redis-away", "redis-away-answers", "redis-away-batch", "feed-gap"];
    const excludes = linked.flatMap((name) => ["--exclude", `test/faults/${name}.{test,slow.test}.ts`]);
    // One worker, because a Cluster has one database.
    await run(bin("vitest"), ["run", "--maxWorkers", "1", ...excludes, ...(args.length > 0 ? args : suites)]);
  },
  async model(args) {
    const options = {
      runs: { type: "string", default: "5000" },
      seed: { type: "string" },
      path: { type: "string" },
      replay: { type: "string" },
    };
    const { help: _help, ...values } = readArguments(MODEL_HELP, options, { args }).values;
    for (const [name, value] of Object.entries(values)) process.env[`MODEL_${name.toUpperCase()}`] = value;
    await buildFor(args);
    await run(bin("vitest"), ["run", "test/model"]);
  },
  async nodes(args) {
    await buildFor(args);
    await run(process.execPath, ["scripts/nodes.mjs", ...args]);
  },
  async "python-sdks"(args) {
    await buildFor(args);
    await run(process.execPath, ["scripts/python-sdks.mjs", ...args]);
  },
  async mutants(args) {
    await buildFor(args);
    await run(process.execPath, ["scripts/mutants.mjs", ...args]);
  },
  async chaos(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/chaos/main.ts", ...args]);
  },
  async "acp-kills"(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/acp-kills/main.ts", ...args]);
  },
  async fuzz(args) {
    const options = {
      runs: { type: "string", default: "20000" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      path: { type: "string" },
    };
    const { help: _help, ...values } = readArguments(FUZZ_HELP, options, { args }).values;
    for (const [name, value] of Object.entries(values)) process.env[`FUZZ_${name.toUpperCase()}`] = value;
    say(`fuzz: seed ${values.seed}`);
    await buildFor(args);
    await run(bin("vitest"), ["run", "test/fuzz"]);
  },
  async soak(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/chaos/soak.ts", ...args]);
  },
  async limits(args) {
    await buildFor(args);
    const [first, ...rest] = args;
    if (first === "attacks")
      await run(process.execPath, ["--import", "tsx", "test/limits/attacks.ts", ...rest]);
    else if (first === "bodies")
      await run(process.execPath, ["--import", "tsx", "test/limits/body-cost.ts", ...rest]);
    else await run(process.execPath, ["--import", "tsx", "test/limits/measure.ts", ...args]);
    if (!args.includes("--write") || isHelp(args)) return;
    await run(bin("biome"), ["format", "--write", "test/limits/measured.json"]);
    await run(process.execPath, ["scripts/generate.mjs"]);
  },
  async agents(args) {
    await buildFor(args);
    await run(process.execPath, ["--import", "tsx", "test/agents-real/main.ts", ...args]);
  },
  async golden(args) {
    await buildFor(args);
    await run(bin("vitest"), ["run", "test/cli/golden", "--update", ...args]);
  },
  check(args) {
    noArguments("check", args);
    return check();
  },
  async fix(args) {
    noArguments("fix", args);
    await run(bin("biome"), ["check", "--write", "."]);
    await buildFor(args);
    await run(process.execPath, ["scripts/generate.mjs"]);
  },
  build(args) {
    noArguments("build", args);
    return build();
  },
  program: buildProgram,
  // npm calls these three.
  prepack: replace,
  postpack: restore,
  prepublishOnly() {
    throw new Failed("Publish the tarball: 'npm pack', and then 'npm publish' with its name.", 1);
  },
};

async function check() {
  const steps = [
    ["biome ci", () => run(bin("biome"), ["ci", "."])],
    ["types", () => run(bin("tsc"), ["-p", "tsconfig.json"])],
    ["build", () => build()],
    ["generated docs", () => run(process.execPath, ["scripts/generate.mjs", "--check"])],
    ["tests", () => tests("quick")],
    ["slow tests", () => tests("slow")],
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

/** Why nothing can run here; the broker's Redis and its lock need POSIX. */
function unsupported() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    return `Errand needs Node 20.19 or newer, and this is ${process.versions.node}. Install one from https://nodejs.org.`;
  }
  if (process.platform !== "win32") return undefined;
  return "Errand's broker runs on Linux and macOS. On Windows, run it in WSL: https://learn.microsoft.com/windows/wsl";
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
} else if (unsupported() !== undefined) {
  say(unsupported());
  process.exitCode = 78;
} else {
  if (process.env.npm_lifecycle_event !== undefined) followParent();
  try {
    restoreAbandoned();
    await install({ dev: name !== "start" && name !== "program" });
    await task(rest);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    // The program has said which argument is wrong.
    if (error.status !== EXIT_USAGE) say(error.message);
    process.exit(error.status);
  }
}

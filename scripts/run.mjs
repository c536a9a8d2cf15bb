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
import { buildFor, node, prove, tsx, vitest } from "./proofs.mjs";
import { bin, Failed, npm, ROOT, run, say } from "./steps.mjs";

const MAIN = join(ROOT, "dist/errand.js");

/** What a developer calls, and CONTRIBUTING.md lists: what each does, in a line, and how it runs. */
const TASKS = {
  start: {
    says: "the broker: errand serve",
    async run(args) {
      await buildProgram();
      // In this process, so that signals and the exit code need no forwarding.
      process.argv = [process.execPath, MAIN, "serve", ...args];
      await import(pathToFileURL(MAIN).href);
    },
  },
  dev: {
    says: "the broker from the sources, restarted when they change; the console is bundled again and its page reloads",
    async run(args) {
      const { watchConsole } = await import("./bundle-console.mjs");
      await watchConsole();
      await run(bin("tsx"), ["watch", "src/main.ts", "serve", ...args]);
      process.exit(0);
    },
  },
  test: {
    says: "the quick tests, on a real Redis that the run starts for itself; with paths, all tests there: test/flows",
    async run(args) {
      await buildFor(args);
      await tests(namesFiles(args) ? undefined : "quick", args);
    },
  },
  slow: {
    says: "the slow tests, in files named *.slow.test.ts: kills, processes, packages, browsers",
    async run(args) {
      await buildFor(args);
      await tests("slow", args);
    },
  },
  check: {
    says: "everything that must pass: format, lint, types, generated docs, tests, slow tests, package",
    async run(args) {
      noArguments("check", args);
      await check();
    },
  },
  fix: {
    says: "format, fix what the linter can, write the generated docs",
    async run(args) {
      noArguments("fix", args);
      await run(bin("biome"), ["check", "--write", "."]);
      await build();
      await node("scripts/generate.mjs", []);
    },
  },
  build: {
    says: "build dist/ and check types; the others build what is missing or old",
    async run(args) {
      noArguments("build", args);
      await build();
    },
  },
  bench: {
    says: "figures: throughput, latency, idle cost, growth (docs/benchmarks.md)",
    async run(args) {
      await buildFor(args);
      await tsx("bench/main.ts", args);
    },
  },
  demo: {
    says: "a broker, an agent, several delegations; demo cluster: a Redis Cluster and two gateways, until Ctrl-C",
    async run(args) {
      if (args[0] === "cluster") {
        await buildFor(args);
        return tsx("test/cluster/start.ts", args.slice(1));
      }
      await buildProgram();
      // tsx is a development package.
      return run(process.execPath, ["--import", "./scripts/typescript.mjs", "examples/demo.ts", ...args]);
    },
  },
  prove: {
    says: "longer checks, and checks that need other programs; alone, it lists them",
    run: prove,
  },
};

/** npm calls these, and `./errand` the first. */
const INTERNAL = {
  program: buildProgram,
  prepack: replace,
  postpack: restore,
  prepublishOnly() {
    throw new Failed("Publish the tarball: 'npm pack', and then 'npm publish' with its name.", 1);
  },
};

const command = (name) => (["start", "test"].includes(name) ? `npm ${name}` : `npm run ${name}`);
const WIDTH = Math.max(...Object.keys(TASKS).map((name) => command(name).length));
const HELP = `${Object.entries(TASKS)
  .map(([name, { says }]) => `${command(name).padEnd(WIDTH)}  # ${says}\n`)
  .join("")}
Arguments follow --, as in 'npm test -- test/flows'. Each command first installs and builds what is missing or out of date;
npm start and npm run demo install and build only what the broker needs.
`;

/** Whether a task needs the development packages, too. */
const needsDev = (name, [first]) =>
  name === "demo" ? first === "cluster" : name !== "start" && name !== "program";

/** `which`: quick or slow; without it, both. */
function tests(which, args = []) {
  if (which !== undefined) process.env.ERRAND_TESTS = which;
  return vitest(args);
}

/** Whether one of vitest's arguments is a path. A word without a slash after an option may be the option's value. */
const namesFiles = (args) =>
  args.some((one, at) => !one.startsWith("-") && (one.includes("/") || !args[at - 1]?.startsWith("-")));

/** For tasks that take no arguments. */
function noArguments(name, args) {
  readArguments(`${command(name)}\n\n${TASKS[name].says}\n`, {}, { args });
}

async function check() {
  const steps = [
    ["biome ci", () => run(bin("biome"), ["ci", "."])],
    ["types", () => run(bin("tsc"), ["-p", "tsconfig.json"])],
    ["build", () => build()],
    ["generated docs", () => node("scripts/generate.mjs", ["--check"])],
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
const own = (table) => (Object.hasOwn(table, name ?? "") ? table[name] : undefined);
const task = own(TASKS)?.run ?? own(INTERNAL);
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
    await install({ dev: needsDev(name, rest) });
    await task(rest);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    // The program has said which argument is wrong.
    if (error.status !== EXIT_USAGE) say(error.message);
    process.exit(error.status);
  }
}

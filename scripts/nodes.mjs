#!/usr/bin/env node
/**
 * Runs the tests on each supported version of Node, from the npm package `node`. Limit: all use the dependencies that this
 * Node installed; none of them is compiled.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { orExit, WrongArguments } from "./arguments.mjs";

const VERSIONS = ["20", "22", "24"];
const HELP = `npm run prove -- nodes [--node 20,22] [arguments of vitest...]

Runs the tests on the newest Node ${VERSIONS.join(", ")}, one after the other. They are installed into
~/.cache/errand/node-<version>; delete a folder to get a newer one.
`;
const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** All other arguments are those of vitest. */
const args = process.argv.slice(2);
const { versions } = orExit(HELP, () => {
  const at = args.indexOf("--node");
  const versions = at === -1 ? VERSIONS : (args.splice(at, 2)[1] ?? "").split(",");
  for (const one of versions)
    if (!/^\d+(?:\.\d+){0,2}$/.test(one))
      throw new WrongArguments(`--node needs versions, such as 20,22, not '${one}'.`);
  return { versions, values: { help: args.includes("--help") || args.includes("-h") } };
});
process.exitCode = await main();

async function main() {
  const rows = [];
  for (const wanted of versions) {
    const bin = await install(wanted);
    const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` };
    const node = join(bin, "node");
    const version = (await run(node, ["--version"], { env, quiet: true })).output.trim();
    process.stdout.write(`\n== Node ${version}\n`);
    const began = Date.now();
    const { code } = await run(node, [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", ...args], { env });
    rows.push({ version, outcome: code === 0 ? "passed" : "FAILED", seconds: (Date.now() - began) / 1000 });
  }
  process.stdout.write("\nNode        tests     seconds\n");
  for (const { version, outcome, seconds } of rows) {
    process.stdout.write(`${version.padEnd(11)} ${outcome.padEnd(9)} ${seconds.toFixed(0).padStart(7)}\n`);
  }
  return rows.every(({ outcome }) => outcome === "passed") ? 0 : 1;
}

/** Returns the folder with its `node`. */
async function install(version) {
  const folder = join(homedir(), ".cache", "errand", `node-${version}`);
  const bin = join(folder, "node_modules/node/bin");
  if (existsSync(join(bin, "node"))) return bin;
  mkdirSync(folder, { recursive: true });
  const options = ["--no-save", "--no-audit", "--no-fund", "--prefix", folder];
  const { code } = await run("npm", ["install", ...options, `node@${version}`]);
  if (code !== 0) throw new Error(`node@${version} could not be installed`);
  return bin;
}

function run(command, args, { env = process.env, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env,
      stdio: ["ignore", quiet ? "pipe" : "inherit", "inherit"],
    });
    let output = "";
    child.stdout?.on("data", (chunk) => (output += chunk));
    const forward = (signal) => child.kill(signal);
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, forward);
    child.once("error", reject);
    child.once("close", (code) => {
      for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, forward);
      resolve({ code, output });
    });
  });
}

#!/usr/bin/env node
/**
 * Measures the first `npm start` on a clean clone of this repository's last commit, until the broker is ready, and the
 * second one, and the size of what they install. Limit: the network and the load of the machine are in the figures.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { ROOT } from "./steps.mjs";

const HELP = `node scripts/first-start.mjs [--empty-cache]

Clones the last commit to a temporary folder, runs npm start there twice, and prints how long each took until the broker
was ready. With --empty-cache, npm downloads every package; otherwise it uses its cache.
`;

const { values } = readArguments(HELP, { "empty-cache": { type: "boolean", default: false } });
await main();

async function main() {
  const place = mkdtempSync(join(tmpdir(), "errand-first-start-"));
  const clone = join(place, "errand");
  try {
    execFileSync("git", ["clone", "--quiet", ROOT, clone]);
    const own = Object.entries(process.env).filter(([name]) => !/^(?:npm_|ERRAND_)/i.test(name));
    const env = {
      ...Object.fromEntries(own),
      ERRAND_PORT: "0",
      ...(values["empty-cache"] && { npm_config_cache: join(place, "npm") }),
    };
    process.stdout.write(`first npm start    ${await start(clone, env)}\n`);
    process.stdout.write(`second npm start   ${await start(clone, env)}\n`);
    const size = execFileSync("du", ["-sk", join(clone, "node_modules")], { encoding: "utf8" });
    process.stdout.write(`node_modules       ${(Number.parseInt(size, 10) / 1024).toFixed(0)} MiB on disk\n`);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Until the broker is ready; then it is stopped. */
async function start(cwd, env) {
  const began = performance.now();
  const child = spawn("npm", ["start"], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const closed = once(child, "close");
  let said = "";
  let took;
  child.stderr.setEncoding("utf8").on("data", (text) => {
    said += text;
    if (took !== undefined || !said.includes("errand is ready at")) return;
    took = `${((performance.now() - began) / 1000).toFixed(1)} s`;
    child.kill("SIGTERM");
  });
  await closed;
  if (took === undefined) throw new Error(`the broker did not start:\n${said}`);
  return took;
}

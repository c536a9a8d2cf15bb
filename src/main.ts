#!/usr/bin/env node
/** The `errand` program: starts the CLI with this process' environment and streams. See cli/run.ts and serve/serve.ts. */
import { readFileSync } from "node:fs";
import nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { env as environment } from "node:process";
import { fileURLToPath } from "node:url";

const manifest: { version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);
/** The options of `errand serve`, and the variables that they override. */
const SERVE_FLAGS = [
  { option: "host", variable: "ERRAND_HOST", flag: "--host" },
  { option: "port", variable: "ERRAND_PORT", flag: "--port" },
  { option: "dataDir", variable: "ERRAND_DATA_DIR", flag: "--data-dir" },
  { option: "redisUrl", variable: "ERRAND_REDIS_URL", flag: "--redis-url" },
  { option: "workers", variable: "ERRAND_WORKERS", flag: "--workers" },
  { option: "log", variable: "ERRAND_LOG_FORMAT", flag: "--log" },
] as const;
const PROGRAM = fileURLToPath(new URL("./errand.js", import.meta.url));
/** Resolves to false if it cannot be written; the CLI says why. */
const printVersion = () =>
  new Promise<boolean>((resolve) => {
    process.stdout.on("error", () => resolve(false));
    process.stdout.write(`${manifest.version}\n`, (error) => resolve(!error));
  });
// Node 22.1 and newer cache compiled code.
function keepCompiled(): void {
  if (!("enableCompileCache" in nodeModule) || typeof nodeModule.enableCompileCache !== "function") return;
  try {
    // biome-ignore lint/style/noProcessEnv: to load config.ts takes as long as this saves.
    const cache = environment.XDG_CACHE_HOME || join(homedir(), ".cache");
    nodeModule.enableCompileCache(join(cache, "errand", "compiled"));
  } catch {
    // A user without a home directory has none.
  }
}
keepCompiled();
const [first, ...more] = process.argv.slice(2);
// To load the CLI takes longer than to print the version.
if (more.length === 0 && (first === "--version" || first === "-V") && (await printVersion())) process.exit(0);

const { cliEnvironment, runCli } = await import("./cli/run.ts");
const { ownCommand } = await import("./serve/own-command.ts");
const { env, childEnv } = cliEnvironment(environment);

const exitCode = await runCli(process.argv.slice(2), {
  env,
  childEnv,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  isTty: {
    stdin: process.stdin.isTTY === true,
    stdout: process.stdout.isTTY === true,
    stderr: process.stderr.isTTY === true,
  },
  // Few commands need the broker's modules, which are slow to load.
  serve: async (options) => {
    const { serve } = await import("./serve/serve.ts");
    const given = SERVE_FLAGS.flatMap(({ option, variable, flag }) => {
      const value = options[option];
      return value === undefined ? [] : [{ variable, flag, value }];
    });
    return serve(
      { ...childEnv, ...Object.fromEntries(given.map(({ variable, value }) => [variable, value])) },
      Object.fromEntries(given.map(({ variable, flag }) => [variable, flag])),
    );
  },
  preflight: async () => (await import("./offline/preflight.ts")).preflight(childEnv),
  backups: async () => (await import("./offline/backups.ts")).backups(childEnv, manifest.version),
  migrations: async () => (await import("./offline/migrations.ts")).migrations(childEnv),
  version: manifest.version,
  // Only what is printed needs it.
  get command() {
    return ownCommand({ folder: process.cwd(), path: childEnv.PATH ?? "", program: PROGRAM });
  },
  program: PROGRAM,
});
// An open connection or timer must not keep the process running.
process.exit(exitCode);

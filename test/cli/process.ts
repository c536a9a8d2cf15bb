/** The CLI as a process, for tests of signals and of the inherited environment. */
import { argv, env, exit, stderr, stdin, stdout } from "node:process";
import { runCli } from "../../src/cli/run.ts";
import { backups } from "../../src/offline/backups.ts";
import { migrations } from "../../src/offline/migrations.ts";

exit(
  await runCli(argv.slice(2), {
    env: { url: env.ERRAND_URL, token: env.ERRAND_TOKEN, dataDir: "/nonexistent/data" },
    childEnv: env,
    stdin,
    stdout,
    stderr,
    isTty: { stdin: true, stdout: false, stderr: false },
    serve: async () => 0,
    preflight: async () => ({
      settings: () => [],
      lastLoad: async () => null,
      redis: async () => ({ detail: "none", refused: [], warnings: [] }),
    }),
    backups: async () => backups(env, "1.2.3"),
    migrations: async () => migrations(env),
    version: "1.2.3",
  }),
);

/**
 * Runs several commands of the built CLI, one after another, in one process with its own streams: on a terminal or in
 * a pipe. `argv`: a JSON list of commands, each a list of arguments. A line with a mark is before each and at the end.
 */
import { argv, env, exit, stderr, stdin, stdout } from "node:process";
import { runCli } from "../../build/cli/run.js";
import { backups } from "../../build/offline/backups.js";

const isTty = { stdin: stdin.isTTY === true, stdout: stdout.isTTY === true, stderr: stderr.isTTY === true };
const preflight = async () => ({
  settings: () => [],
  lastLoad: async () => null,
  redis: async () => ({ detail: "none", refused: [], warnings: [] }),
});
const host = {
  env: { url: env.ERRAND_URL, token: env.ERRAND_TOKEN, dataDir: "/nonexistent/data" },
  childEnv: env,
  ...{ stdin, stdout, stderr, isTty, preflight },
  backups: async () => backups(env, "1.2.3"),
  serve: async () => 0,
  version: "1.2.3",
};
// Each run adds listeners, which a program with one command has once.
for (const stream of [stdout, stderr]) stream.setMaxListeners(0);
for (const command of JSON.parse(argv[2] ?? "[]")) {
  stdout.write(`\n#### ${command.join(" ")}\n`);
  await runCli(command, host);
}
stdout.write("\n#### end\n");
exit(0);

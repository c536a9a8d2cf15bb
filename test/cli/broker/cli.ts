/**
 * The CLI against a real gateway: one command in this process, or the program where signals and children are the point.
 * The program needs a build, like test/support/program.ts.
 */
import { join } from "node:path";
import { vi } from "vitest";
import type { z } from "zod";
import { cliEnvironment } from "../../../src/cli/environment.ts";
import { DiskStore } from "../../../src/engine/files/disk-store.ts";
import { problemSchema } from "../../../src/schema/problem.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { tempFolder } from "../../support/files.ts";
import { errand, freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { run as runHere } from "../fake-host.ts";

// A test may start several processes on a machine that is busy.
vi.setConfig({ testTimeout: 180_000 });

interface Setting {
  readonly token?: string;
  readonly input?: string | Uint8Array;
  readonly env?: Record<string, string>;
}

export async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const { url, gateway, clock, redis } = await startBroker(options);
  const dir = freshDir();
  const api = client(url);
  /** As a process in `dir`. */
  const start = (args: readonly string[], { token = OPERATOR, input, env = {} }: Setting = {}) =>
    errand(dir, args, { ERRAND_URL: url, ERRAND_TOKEN: token, ...env }, input);
  /** In this process, whose working directory is not `dir`. */
  const run = (args: readonly string[], { token = OPERATOR, input = "", env = {} }: Setting = {}) =>
    runHere([...args], {
      ...cliEnvironment({
        PATH: process.env.PATH,
        ...{ ERRAND_URL: url, ERRAND_TOKEN: token, ERRAND_DATA_DIR: join(dir, ".errand") },
        ...env,
      }),
      stdin: Buffer.from(input),
      tty: { stdin: false },
    });
  /** Starts `errand work` with this command, as a process in `dir`. */
  const worker = async (agent: string, ...words: string[]) => {
    const options = words.includes("--") ? words : ["--", ...words];
    const started = start(["work", "--agent", agent, ...options]);
    await until(() => started.stderr().includes(`working for ${agent}`), { what: agent });
    // Until then, a delegator is told that nobody polls.
    const isSeen = async () =>
      (await api.call("GET", `/v1/agents/${agent}`)).body.presence.state !== "offline";
    await until(isSeen, { what: `a poll of ${agent}` });
    return started;
  };
  return { url, gateway, clock, redis, dir, api, start, run, worker };
}

/** The same with a broker that stores files, in the folder `store`. */
export async function setupWithFiles({ maxBytes = 10_000_000, principalBytes = 20_000_000 } = {}) {
  const store = await tempFolder();
  const setting = await setup({ files: { store: new DiskStore(store), maxBytes, principalBytes } });
  return { ...setting, store };
}

/** Parses JSON lines. */
export function lines<T>(schema: z.ZodType<T>, stdout: string): T[] {
  if (stdout !== "" && !stdout.endsWith("\n")) throw new Error("the last line has no end");
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => schema.parse(JSON.parse(line)));
}

/** The only problem on stderr. */
export function problemIn(stderr: string) {
  const [problem, ...more] = lines(problemSchema, stderr);
  if (problem === undefined || more.length > 0) throw new Error(`not one problem: ${stderr}`);
  return problem;
}

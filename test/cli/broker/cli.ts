/** The real program against a real gateway. Needs a build, like test/support/program.ts. */
import { vi } from "vitest";
import type { z } from "zod";
import { problemSchema } from "../../../src/schema/problem.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { errand, freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";

// A test starts a dozen processes on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

interface Setting {
  readonly token?: string;
  readonly input?: string | Uint8Array;
  readonly env?: Record<string, string>;
}

export async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const { url, gateway, clock } = await startBroker(options);
  const dir = freshDir();
  const start = (args: readonly string[], { token = OPERATOR, input, env = {} }: Setting = {}) =>
    errand(dir, args, { ERRAND_URL: url, ERRAND_TOKEN: token, ...env }, input);
  const run = async (args: readonly string[], setting: Setting = {}) => {
    const started = start(args, setting);
    const code = await started.ended();
    return { code, stdout: started.stdout(), stderr: started.stderr() };
  };
  /** Starts `errand work` with this command. */
  const worker = async (agent: string, ...words: string[]) => {
    const options = words.includes("--") ? words : ["--", ...words];
    const started = start(["work", "--agent", agent, ...options]);
    await until(() => started.stderr().includes(`working for ${agent}`), { what: agent });
    return started;
  };
  return { url, gateway, clock, dir, api: client(url), start, run, worker };
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

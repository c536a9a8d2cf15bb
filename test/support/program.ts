/** Runs the built program, each in a data directory of its own. Limit: needs a build; `npm test` makes one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { until } from "./until.ts";

export const MAIN = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));

/** The PATH, with a program `errand` as where it is installed. */
export const PATH = `${fileURLToPath(new URL("bin", import.meta.url))}${delimiter}${process.env.PATH}`;

export interface Run {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly isRunning: () => boolean;
  /** The exit code, or the signal's name. */
  readonly ended: () => Promise<number | string>;
}

export function freshDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "errand-program-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** `errand ARGS…` with nothing of this run's ERRAND_* and npm's environment; stdin is `input`, or empty. */
export function errand(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
  input: string | Uint8Array = "",
): Run {
  const clean = Object.entries(process.env).filter(([name]) => !/^(?:ERRAND|npm)_/.test(name));
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { ...Object.fromEntries(clean), PATH, ...env },
    stdio: "pipe",
  });
  // The program need not read its stdin.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const text = { out: "", err: "" };
  child.stdout.on("data", (chunk) => {
    text.out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    text.err += chunk;
  });
  const closed = once(child, "close");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  onTestFinished(async () => {
    if (isRunning()) child.kill("SIGTERM");
    await closed;
  });
  return {
    child,
    stdout: () => text.out,
    stderr: () => text.err,
    isRunning,
    ended: async () => {
      await closed;
      return child.exitCode ?? child.signalCode ?? "unknown";
    },
  };
}

/** Starts a broker with an embedded Redis, and waits until it is ready. */
export async function serveIn(cwd: string, env: Record<string, string> = {}) {
  const run = errand(cwd, ["serve"], { ERRAND_PORT: "0", ...env });
  await until(() => run.stderr().includes("errand is ready at") || !run.isRunning(), {
    what: "the broker",
  });
  const url = /errand is ready at (\S+)/.exec(run.stderr())?.[1];
  if (url === undefined) throw new Error(`the broker did not start: ${run.stderr()}`);
  const token = readFileSync(join(cwd, ".errand", "operator-token"), "utf8").trim();
  return { ...run, url, token };
}

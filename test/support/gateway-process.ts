/** Starts gateways as processes and kills them. Limit: needs a build. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import type { RedisTarget } from "../../src/redis/connect.ts";
import { OPERATOR, targetOf } from "./broker.ts";
import { bundled } from "./bundled.ts";
import { testShards } from "./on-cluster.ts";

export interface GatewayProcess {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  /** Makes the gateway die before its n-th command to Redis from now on. */
  readonly arm: (n: number) => Promise<void>;
  readonly isAlive: () => boolean;
  readonly kill: () => Promise<void>;
}

const PROGRAM = new URL("./child-gateway.mjs", import.meta.url);
const WRONG_CLOCK = new URL("../chaos/preload.ts", import.meta.url);

export async function startGatewayProcess(
  db: number,
  options: {
    sweepEveryMs?: number;
    port?: number;
    redis?: RedisTarget;
    logLevel?: string;
    callbackAllow?: string[];
    /** The error of its clock. */
    clockMs?: number;
  } = {},
): Promise<GatewayProcess> {
  const { sweepEveryMs = 0, port = 0, logLevel = "warn", callbackAllow, clockMs } = options;
  const { redis = targetOf(db) } = options;
  const settings = {
    redis,
    shards: testShards(),
    operatorToken: OPERATOR,
    sweepEveryMs,
    port,
    logLevel,
    callbackAllow,
  };
  const preload = clockMs === undefined ? null : pathToFileURL(await bundled(WRONG_CLOCK)).href;
  const child = fork(await bundled(PROGRAM), [JSON.stringify(settings)], {
    execArgv: preload === null ? [] : ["--import", preload],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, ...(clockMs !== undefined && { CHAOS_CLOCK_MS: String(clockMs) }) },
  });
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const kill = async () => {
    if (!isAlive()) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  onTestFinished(kill);
  const [message] = await once(child, "message");
  const url = `http://127.0.0.1:${message.port}`;
  const arm = async (n: number) => {
    child.send({ arm: n });
    await once(child, "message");
  };
  return { url, port: message.port, child, arm, isAlive, kill };
}

/**
 * `npm run demo -- cluster`: a Redis Cluster of three masters and three replicas, and two gateways on loopback, until a signal
 * stops them. Limit: to try things; the data is deleted at the end, unless --dir names a folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "../../scripts/arguments.mjs";
import { randomId } from "../../src/redis/shards.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { testRedisBinary } from "../support/redis-server.ts";

const HELP = `npm run demo -- cluster [options]

Starts a Redis Cluster (three masters, each with a replica) and two gateways on 127.0.0.1, prints how to use them, and
runs until Ctrl-C.

  --shards N    ERRAND_SHARDS of the gateways                        (16)
  --port N      the first gateway's port; the second has the next    (0: free ones)
  --wait N      ERRAND_REDIS_WAIT_REPLICAS of the gateways           (0)
  --dir PATH    keep the data of the Cluster, and the logs, there    (a temporary folder, deleted at the end)
  --json        print one line of JSON instead of the text
  --help        print this help
`;
const PROGRAM = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const NODE_TIMEOUT_MS = 2_000;

const { values } = readArguments(HELP, {
  shards: { type: "string", default: "16" },
  port: { type: "string", default: "0" },
  wait: { type: "string", default: "0" },
  dir: { type: "string" },
  json: { type: "boolean", default: false },
});

await main();

async function main(): Promise<void> {
  const stopped = new Promise((done) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, done);
  });
  const directory =
    values.dir === undefined ? await mkdtemp(join(tmpdir(), "errand-cluster-")) : resolve(values.dir);
  await mkdir(directory, { recursive: true });
  const gateways: ChildProcess[] = [];
  let cluster: RedisCluster | undefined;
  try {
    const more = [
      "appendonly yes",
      "appendfsync always",
      "maxmemory 256mb",
      "cluster-require-full-coverage no",
    ];
    cluster = await startRedisCluster({
      binary: await testRedisBinary(),
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      directory,
      more,
    });
    const token = `errand_operator_${randomId(52)}`;
    const { url } = cluster;
    const urls = await Promise.all(
      [0, 1].map((n) => {
        const port = values.port === "0" ? 0 : Number(values.port) + n;
        return startGateway(n, port, url, token, directory, gateways);
      }),
    );
    const masters = (await cluster.masters()).map(({ address, pid }) => ({ address, pid: pid() }));
    const info = { gateways: urls, redis: cluster.url, token, masters, logs: directory };
    process.stdout.write(values.json ? `${JSON.stringify(info)}\n` : textOf(info));
    await Promise.race([stopped, ...gateways.map((gateway) => once(gateway, "exit"))]);
    if (gateways.some(({ exitCode }) => exitCode !== null)) {
      process.stderr.write(`A gateway ended; its log is in ${directory}\n`);
      process.exitCode = 1;
    }
  } finally {
    await Promise.all(gateways.map(endGateway));
    await cluster?.stop();
    if (values.dir === undefined && process.exitCode !== 1)
      await rm(directory, { recursive: true, force: true });
  }
}

async function startGateway(
  n: number,
  port: number,
  redis: string,
  token: string,
  directory: string,
  gateways: ChildProcess[],
): Promise<string> {
  const dataDir = join(directory, `gateway-${n + 1}`);
  await mkdir(dataDir, { recursive: true });
  const child = spawn(process.execPath, [PROGRAM, "serve"], {
    cwd: dataDir,
    stdio: ["ignore", "ignore", "pipe"],
    // Ctrl-C must reach them through this process, so that they stop before Redis.
    detached: true,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ERRAND_PORT: String(port),
      ERRAND_DATA_DIR: join(dataDir, "data"),
      ERRAND_REDIS_URL: redis,
      ERRAND_SHARDS: values.shards,
      ERRAND_REDIS_WAIT_REPLICAS: values.wait,
      ERRAND_OPERATOR_TOKEN: token,
    },
  });
  gateways.push(child);
  const log = createWriteStream(join(directory, `gateway-${n + 1}.log`));
  child.stderr.pipe(log);
  let said = "";
  const ready = new Promise<string>((done) => {
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk;
      const url = /errand is ready at (\S+)/.exec(said)?.[1];
      if (url !== undefined) done(url);
    });
  });
  const ended = once(child, "exit").then(() => {
    throw new Error(`the gateway did not start: ${said}`);
  });
  const url = await Promise.race([ready, ended]);
  ended.catch(() => {});
  return url;
}

async function endGateway(gateway: ChildProcess): Promise<void> {
  if (gateway.exitCode !== null || gateway.signalCode !== null) return;
  gateway.kill("SIGTERM");
  await once(gateway, "exit");
}

interface Info {
  readonly gateways: readonly string[];
  readonly redis: string;
  readonly token: string;
  readonly masters: readonly { readonly address: string; readonly pid: number | undefined }[];
  readonly logs: string;
}

function textOf({ gateways, redis, token, masters, logs }: Info): string {
  const [first, second] = gateways;
  const kills = masters.map(({ address, pid }) => `  kill -9 ${pid}    # the master ${address}`);
  return `A Redis Cluster and two gateways run until Ctrl-C. Their logs are in ${logs}

In another terminal:
  export ERRAND_URL=${first} ERRAND_TOKEN=${token}
  ./errand work --agent scout -- wc -w
And in a third, at the other gateway:
  export ERRAND_URL=${second} ERRAND_TOKEN=${token}
  ./errand delegate scout "count these words" --wait

The Cluster, for a gateway of your own (ERRAND_SHARDS=${values.shards}) or redis-cli -c:
  export ERRAND_REDIS_URL=${redis} ERRAND_OPERATOR_TOKEN=${token}
See a fail-over, which takes about ${(2 * NODE_TIMEOUT_MS) / 1000} s:
${kills.join("\n")}
`;
}

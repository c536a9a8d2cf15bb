import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { checkTarget, WrongTarget } from "../../src/redis/check.ts";
import { startLocked } from "../../src/redis/embedded/locked-process.ts";
import { terminate } from "../../src/redis/embedded/server.ts";
import { Shards } from "../../src/redis/shards.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { errand, freshDir } from "../support/program.ts";
import { freePort, startPair } from "../support/redis-pair.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

/** A Sentinel that watches a master on this port, as the group `main`. */
async function startSentinel(master: number): Promise<{ port: number; sentinel: Redis }> {
  const [directory, port] = [freshDir(), await freePort()];
  const file = join(directory, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir "${directory}"`,
    `sentinel monitor main 127.0.0.1 ${master} 1`,
    "sentinel down-after-milliseconds main 500",
    "sentinel failover-timeout main 5000",
  ];
  writeFileSync(file, lines.join("\n"));
  const { command, env } = await testRedisBinary();
  const child = await startLocked(join(directory, "lock"), [command, file, "--sentinel"], env);
  child.stdout?.resume();
  const sentinel = new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: null });
  sentinel.on("error", () => {});
  onTestFinished(async () => {
    sentinel.disconnect();
    await terminate(child);
  });
  await until(() => sentinel.ping(), { what: "a Sentinel" });
  return { port, sentinel };
}

async function startSentinelOfPair(master: number): Promise<number> {
  const { port, sentinel } = await startSentinel(master);
  const replicas = async () => {
    const known = await sentinel.call("SENTINEL", "replicas", "main");
    return Array.isArray(known) && JSON.stringify(known).includes('"master-link-status","ok"');
  };
  await until(replicas, { what: "a Sentinel that knows the replica" });
  return port;
}

/** Accepts connections and never answers, as a Sentinel that hangs. */
function startSilent(): Promise<number> {
  return new Promise((resolve) => {
    const open = new Set<Socket>();
    const server = createServer((socket) => open.add(socket.on("error", () => {})));
    onTestFinished(() => {
      for (const socket of open) socket.destroy();
      server.close();
    });
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}

test("when the master dies, the gateway goes on with the one that the Sentinels choose", async () => {
  const { master, replica } = await startPair();
  const port = await startSentinelOfPair(master.port);
  const silent = await startSilent();
  const target = { url: `redis+sentinel://127.0.0.1:${silent},127.0.0.1:${port}/main` };
  const { url, log } = await startBroker({ redis: target });
  const api = client(url);
  await api.agent("scout");
  await api.agent("idle");
  const stream = subscribe([url], (await as(url, "agent:scout")).token);
  const { id } = (await api.delegate("scout", { task: "before" })).body;
  await until(() => stream.events.length === 1);
  const parked = retryUntilAnswered(() => api.lease("idle", { wait_seconds: 30 }), 30_000);
  // Replication is asynchronous, and its losses are not under test.
  await until(async () => (await replica.redis.exists(new Shards(1).at(0).delegation(id))) === 1);

  master.redis.call("SHUTDOWN", "NOSAVE").catch(() => {});
  const key = { "idempotency-key": "after" };
  const after = await retryUntilAnswered(() => api.delegate("scout", { task: "after" }, key), 30_000);
  expect(after.status).toBe(202);
  expect(await replica.redis.info("replication")).toContain("role:master");
  const { leases } = (await retryUntilAnswered(() => api.lease("scout", { max: 2 }))).body;
  expect(leases.map(({ delegation }: { delegation: { id: string } }) => delegation.id)).toEqual([
    id,
    after.body.id,
  ]);
  await until(() => stream.events.some(({ data }) => data.delegation_id === after.body.id));
  const woken = await retryUntilAnswered(() => api.delegate("idle"));
  expect((await parked).body.leases[0].delegation.id).toBe(woken.body.id);
  const away = log.filter((line) => line.includes('"Redis is away"'));
  expect(away.map((line) => JSON.parse(line).redis)).toEqual([
    `main at 127.0.0.1:${silent}, 127.0.0.1:${port}`,
  ]);
});

test("a group that no Sentinel knows is a wrong setting; Sentinels that do not answer are an outage", async () => {
  const { port } = await startSentinel(await freePort());
  const [here, closed] = [`127.0.0.1:${port}`, `127.0.0.1:${await freePort()}`];
  const check = (hosts: string, name: string) =>
    checkTarget({ url: `redis+sentinel://:secret@${hosts}/${name}` }).then(
      () => null,
      (error: unknown) => error,
    );
  const wrong = await check(here, "mian");
  expect(wrong).toBeInstanceOf(WrongTarget);
  expect(String(wrong)).toContain(`no group "mian" is known to the Sentinel at ${here}`);
  // The one that does not answer may know it.
  const unknown = await check(`${closed},${here}`, "mian");
  expect(unknown).not.toBeInstanceOf(WrongTarget);
  expect(String(unknown)).toContain(`no group "mian" is known to the Sentinel at ${here}; no answer from`);
  const away = await check(closed, "main");
  expect(away).not.toBeInstanceOf(WrongTarget);
  expect(String(away)).toContain(`no answer from the Sentinel at ${closed} (no connection)`);

  const dir = freshDir();
  const { ended, stderr } = errand(dir, ["serve"], {
    ERRAND_REDIS_URL: `redis+sentinel://${here}/mian`,
    ERRAND_DATA_DIR: join(dir, "data"),
    ERRAND_PORT: "0",
  });
  expect(await ended()).toBe(78);
  expect(stderr()).toContain(`no group "mian" is known to the Sentinel at ${here}`);
});

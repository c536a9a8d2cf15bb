/**
 * Records what a build of the broker stores and answers, for data.test.ts: run it with the build of a released version.
 *
 *   node test/compatibility/record.mjs DIST REDIS_SERVER > test/compatibility/data.jsonl
 *
 * Limit: nothing that depends on delays, because queues keep those by the clock of the day.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { callerOf, OPERATOR } from "../../scripts/call-broker.mjs";

const [dist, redisServer = "redis-server"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "errand-record-"));
const socket = join(folder, "redis.sock");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** Repeats the call until it succeeds: a starting process needs a moment. */
async function patiently(work) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries > 100) throw error;
      await sleep(100);
    }
  }
}

/** Text that is not UTF-8 is recorded in base64. */
const isText = (bytes) => Buffer.from(bytes.toString()).equals(bytes);
const recordable = (bytes) => (isText(bytes) ? bytes.toString() : { base64: bytes.toString("base64") });
const fieldsIn = async (redis, key) =>
  Object.entries(await redis.hgetallBuffer(key)).flatMap(([name, bytes]) => [name, recordable(bytes)]);

/** The commands that recreate this database. */
async function commandsOf(redis) {
  const commands = [];
  for (const key of (await redis.keys("*")).sort()) {
    if (/:(?:pollers:.*|workers:.*|gateways|seen|writable.*)$/.test(key)) continue;
    const type = await redis.type(key);
    if (type === "hash") commands.push(["HSET", key, ...(await fieldsIn(redis, key))]);
    else if (type === "list") commands.push(["RPUSH", key, ...(await redis.lrange(key, 0, -1))]);
    else if (type === "set") commands.push(["SADD", key, ...(await redis.smembers(key))]);
    else if (type === "string") commands.push(["SET", key, await redis.get(key)]);
    else if (type === "zset") {
      const flat = await redis.zrange(key, "0", "-1", "WITHSCORES");
      for (let at = 0; at < flat.length; at += 2) commands.push(["ZADD", key, flat[at + 1], flat[at]]);
    } else if (type === "stream") {
      for (const [id, fields] of await redis.xrange(key, "-", "+"))
        commands.push(["XADD", key, id, ...fields]);
    }
    const left = await redis.pttl(key);
    if (left > 0) commands.push(["PEXPIRE", key, String(left)]);
  }
  return commands;
}

const server = spawn(redisServer, ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]);
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const redis = new Redis({ path: socket, lazyConnect: true, maxRetriesPerRequest: null });
redis.on("error", () => {});
await patiently(() => redis.ping());
const broker = spawn(process.execPath, [join(dist, "main.js"), "serve"], {
  stdio: ["ignore", "ignore", "inherit"],
  env: {
    PATH: process.env.PATH,
    HOME: folder,
    ERRAND_REDIS_URL: `unix:${socket}`,
    ERRAND_PORT: String(port),
    ERRAND_OPERATOR_TOKEN: OPERATOR,
  },
});
await patiently(async () => {
  if (!(await fetch(`${url}/readyz`)).ok) throw new Error("the broker does not start");
});

const call = callerOf(url);
const delegate = async (target, more = {}, headers = {}) =>
  (await call("POST", "/v1/delegations", { target, task: `for ${target}`, ...more }, headers)).id;
const take = async (agent) =>
  (await call("POST", `/v1/agents/${agent}/leases`, { wait_seconds: 5, lease_seconds: 900 })).leases[0];

const stop = async () => {
  broker.kill("SIGKILL");
  redis.disconnect();
  server.kill();
  await once(server, "exit");
  rmSync(folder, { recursive: true, force: true });
};
process.once("uncaughtException", async (error) => {
  console.error(error);
  await stop();
  process.exit(1);
});

const ids = {};
const leases = {};
for (const agent of ["done", "asks", "asked", "works", "fails", "queue", "paused"]) {
  await call("PUT", `/v1/agents/${agent}`, { description: `the agent ${agent}` });
}
ids.done = await delegate("done", { metadata: { a: 1 }, context_id: "ctx-1" });
const done = (await take("done")).lease_id;
await call("POST", `/v1/leases/${done}/heartbeat`, { progress: { message: "half way", done: 1, total: 2 } });
await call("POST", `/v1/leases/${done}/artifacts`, {
  artifact: { artifactId: "report", parts: [{ text: "one" }] },
});
await call("POST", `/v1/leases/${done}/reply`, { state: "completed", text: "the answer" });
ids.asks = await delegate("asks");
const asks = (await take("asks")).lease_id;
await call("POST", `/v1/leases/${asks}/interrupt`, { kind: "input", text: "which one?" });
ids.asked = await delegate("asked");
const asked = (await take("asked")).lease_id;
const { interrupt_id } = await call("POST", `/v1/leases/${asked}/interrupt`, {
  kind: "input",
  text: "sure?",
});
await call("POST", `/v1/delegations/${ids.asked}/answer`, { interrupt_id, text: "yes" });
ids.works = await delegate("works", { priority: 1 });
leases.works = (await take("works")).lease_id;
await call("POST", `/v1/leases/${leases.works}/heartbeat`, {
  progress: { message: "begun" },
  checkpoint: { page: 7 },
});
await call("POST", `/v1/leases/${leases.works}/artifacts`, {
  artifact: { artifactId: "draft", parts: [{ text: "first" }] },
});
await call("POST", `/v1/delegations/${ids.works}/messages`, { text: "hurry" });
ids.fails = await delegate("fails");
await call("POST", `/v1/leases/${(await take("fails")).lease_id}/reply`, {
  state: "failed",
  error: { code: "out_of_paper", category: "UPSTREAM", message: "no paper" },
});
ids.canceled = await delegate("queue");
await call("POST", `/v1/delegations/${ids.canceled}/cancel`, { reason: "not needed" });
ids.child = await delegate("queue", { parent_id: ids.works });
ids.keyed = await delegate("queue", { priority: 2 }, { "idempotency-key": "one" });
await call("POST", "/v1/agents/paused/pause", {});
ids.paused = await delegate("paused");
await sleep(500);

const paths = [
  ...Object.values(ids).flatMap((id) => [`/v1/delegations/${id}`, `/v1/delegations/${id}/events?after=0`]),
  "/v1/events?after=0&wait_seconds=0&limit=1000",
  "/v1/delegations?limit=100",
];
const answers = {};
for (const path of paths) answers[path] = await call("GET", path);
const lines = [{ at: Date.now(), ids, leases, answers }, ...(await commandsOf(redis))];
process.stdout.write(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
await stop();

/**
 * Makes the data directory that directory.test.ts reads: run it with the build of an old version, which is killed at the
 * end, and with a folder that does not exist.
 *
 *   node test/compatibility/record-directory.mjs DIST FOLDER
 *
 * Limit: it uses only what every version could do.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { callerOf, OPERATOR } from "../../scripts/call-broker.mjs";

const [dist = "", folder = ""] = process.argv.slice(2);
const dataDir = mkdtempSync(join(tmpdir(), "errand-record-"));
const broker = spawn(process.execPath, [join(dist, "main.js"), "serve"], {
  stdio: ["ignore", "ignore", "pipe"],
  env: {
    ...process.env,
    ERRAND_DATA_DIR: dataDir,
    ERRAND_PORT: "0",
    ERRAND_OPERATOR_TOKEN: OPERATOR,
    ERRAND_LOG_LEVEL: "warn",
  },
});
const url = await new Promise((resolve, reject) => {
  broker.once("exit", () => reject(new Error("the broker does not start")));
  createInterface({ input: broker.stderr }).on("line", (line) => {
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
    if (found) resolve(found[0]);
  });
});

const call = callerOf(url);
const ids = {};
const leases = {};
const agent = (name) => call("PUT", `/v1/agents/${name}`, { description: `the agent ${name}` });
const delegate = async (name, target, more = {}, headers = {}) => {
  ids[name] = (
    await call("POST", "/v1/delegations", { target, task: `${name}: do it`, ...more }, headers)
  ).id;
};
const take = async (name) => {
  const body = { wait_seconds: 5, lease_seconds: 900, worker_id: `${name}-1` };
  const { leases: taken } = await call("POST", `/v1/agents/${name}/leases`, body);
  leases[taken[0].delegation.id] = taken[0].lease_id;
  return taken[0].lease_id;
};
const reply = (lease, body) => call("POST", `/v1/leases/${lease}/reply`, body);

for (const name of ["done", "works", "fails", "retries", "queue", "paused"]) await agent(name);
const { token, id: tokenId } = await call("POST", "/v1/tokens", { principal: "caller:alice" });
await delegate(
  "completed",
  "done",
  { metadata: { a: 1 }, context_id: "ctx-1" },
  { "idempotency-key": "one" },
);
const lease = await take("done");
await call("POST", `/v1/leases/${lease}/heartbeat`, { progress: { message: "half way", done: 1, total: 2 } });
const artifact = { artifactId: "report", name: "report.txt", parts: [{ text: "all of it" }] };
await reply(lease, { state: "completed", text: "the answer", artifacts: [artifact] });
await delegate("working", "works", { priority: 7 });
const { cursor } = await call("GET", "/v1/events?after=0&wait_seconds=0&limit=1000");
await call("POST", `/v1/leases/${await take("works")}/heartbeat`, { progress: { message: "begun" } });
await delegate("failed", "fails");
await reply(await take("fails"), { state: "failed", error: { code: "out_of_paper", message: "no paper" } });
await delegate("retried", "retries");
const error = { code: "busy", message: "later", retryable: true };
await reply(await take("retries"), { state: "failed", error });
await delegate("low", "queue", { priority: 1 });
await delegate("high", "queue", { priority: 8 }, { "idempotency-key": "two" });
await delegate("canceled", "queue");
await call("POST", `/v1/delegations/${ids.canceled}/cancel`, { reason: "not needed" });
await delegate("delayed", "queue", { delay_seconds: 600 });
await call("POST", "/v1/agents/paused/pause", {});
await delegate("paused", "paused");
const states = {};
for (const [name, id] of Object.entries(ids))
  states[name] = (await call("GET", `/v1/delegations/${id}`)).state;
broker.kill("SIGKILL");
await once(broker, "exit");

mkdirSync(folder, { recursive: true });
cpSync(join(dataDir, "redis", "appendonlydir"), join(folder, "redis", "appendonlydir"), { recursive: true });
const record = { at: Date.now(), ids, leases, states, cursor, token, tokenId };
writeFileSync(join(folder, "record.json"), `${JSON.stringify(record, null, 2)}\n`);
rmSync(dataDir, { recursive: true, force: true });

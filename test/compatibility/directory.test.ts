/**
 * The data directory of the first version that stored data as it is read today (commit cfbb79c): everything is kept, and
 * goes on. record-directory.mjs made it, and the broker was killed at the end. Limit: questions, follow-ups and trees are
 * in data.test.ts only.
 */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";

vi.setConfig({ testTimeout: 60_000 });

const FIRST = fileURLToPath(new URL("./first", import.meta.url));
const DAY_MS = 86_400_000;
const named = z.record(z.string(), z.string());
const recordSchema = z.object({
  /** When it was recorded, ms. */
  at: z.number(),
  ids: named,
  /** Delegation → the lease that it had last. */
  leases: named,
  states: named,
  cursor: z.string(),
  /** Of caller:alice. */
  token: z.string(),
});

/** A copy of the directory in which keys expire as long after now as they did after the recording. */
async function copied(age: number): Promise<string> {
  const folder = join(freshDir(), "data");
  await mkdir(folder, { mode: 0o700 });
  await cp(join(FIRST, "redis"), join(folder, "redis"), { recursive: true });
  const file = join(folder, "redis", "appendonlydir", "appendonly.aof.1.incr.aof");
  const text = (await readFile(file)).toString("latin1");
  const moved = text.replace(
    /((?:\r\nPXAT|\r\nPEXPIREAT\r\n\$\d+\r\n[^\r]+)\r\n\$13\r\n)(\d{13})/g,
    (_, before: string, at: string) => before + (Number(at) + age),
  );
  await writeFile(file, moved, "latin1");
  return folder;
}

/** The broker's clock goes on at the time of the recording. Redis trims by its own, so the retention covers the age. */
async function start() {
  const record = recordSchema.parse(JSON.parse(await readFile(join(FIRST, "record.json"), "utf8")));
  const age = Date.now() - record.at;
  const own = await startOwnRedis("everysec", await copied(age));
  const clock = { offset_ms: -age };
  const { gateway, url } = await startBroker({
    redis: own.target,
    clock,
    retentionMs: age + DAY_MS,
    shards: 1,
  });
  const id = (name: string) => record.ids[name] ?? "";
  const lease = (name: string) => record.leases[id(name)] ?? "";
  return { ...record, api: client(url), alice: client(url, record.token), gateway, clock, id, lease };
}

test("all delegations, events, lists, keys, tokens and leases of the first version are kept, and its work is finished", async () => {
  const { api, alice, gateway, clock, id, lease, ids, states, cursor } = await start();
  for (const [name, state] of Object.entries(states)) {
    const { status, body } = await api.get(id(name));
    expect([name, status, body.state, body.id]).toEqual([name, 200, state, id(name)]);
    const isFinished = ["completed", "failed", "canceled"].includes(state);
    checkHistory(await eventsOf(api, id(name)), isFinished ? "finished" : "live");
  }
  const { body: done } = await api.get(id("completed"));
  expect(done).toMatchObject({
    metadata: { a: 1 },
    context_id: "ctx-1",
    attempt: 1,
    artifacts: [{ artifactId: "report", name: "report.txt", parts: [{ text: "all of it" }] }],
    reply: { parts: [{ text: "the answer" }] },
  });
  expect((await api.get(id("failed"))).body.error).toMatchObject({
    code: "out_of_paper",
    message: "no paper",
  });

  const { body: agents } = await api.call("GET", "/v1/agents");
  expect(agents.agents.map(({ name }: { name: string }) => name)).toEqual([
    "done",
    "fails",
    "paused",
    "queue",
    "retries",
    "works",
  ]);
  const { body: listed } = await api.call("GET", "/v1/delegations?limit=100");
  expect(listed.delegations.map((one: { id: string }) => one.id).sort()).toEqual(Object.values(ids).sort());
  const json = { accept: "application/json" };
  const { events } = (await api.call("GET", `/v1/events?after=${cursor}&limit=1000`, undefined, json)).body;
  expect(events[0].type).not.toBe("RESET");
  expect(events.filter((one: { delegation_id: string }) => one.delegation_id === id("completed"))).toEqual(
    [],
  );

  // The token, the idempotency keys, the repeat of a reply.
  expect((await alice.get(id("completed"))).status).toBe(404);
  expect((await alice.delegate("done")).status).toBe(202);
  const again = await api.delegate(
    "queue",
    { task: "high: do it", priority: 8 },
    { "idempotency-key": "two" },
  );
  expect([again.status, again.body.id]).toEqual([200, id("high")]);
  expect((await api.reply(lease("completed"), { text: "another" })).status).toBe(409);

  // The lease that was held goes on.
  expect((await api.heartbeat(lease("working"), { progress: { message: "more" } })).status).toBe(200);
  expect((await api.reply(lease("working"))).status).toBe(200);
  expect((await api.redrive(id("failed"))).status).toBeLessThan(300);

  // Queued work in its order; delayed and paused work when it is time.
  const work = async (agent: string) => {
    const [one] = (await api.lease(agent, { wait_seconds: 0 })).body.leases;
    if (one) expect((await api.reply(one.lease_id)).status).toBe(200);
    return one?.delegation.id;
  };
  expect([await work("queue"), await work("queue"), await work("queue")]).toEqual([
    id("high"),
    id("low"),
    undefined,
  ]);
  expect(await work("paused")).toBeUndefined();
  await api.call("POST", "/v1/agents/paused/resume", {});
  expect(await work("paused")).toBe(id("paused"));
  clock.offset_ms += 700_000;
  await gateway.sweep.tick();
  expect([await work("queue"), await work("retries")]).toEqual([id("delayed"), id("retried")]);
  for (const name of ["working", "high", "low", "paused", "delayed", "retried"]) {
    expect((await api.get(id(name))).body.state).toBe("completed");
    checkHistory(await eventsOf(api, id(name)), "finished");
  }
});

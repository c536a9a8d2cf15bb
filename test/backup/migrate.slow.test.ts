/** A stopped broker's data in another Redis, or in more shards: all that was promised is kept, and the source is unchanged. */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, onTestFinished, test, vi } from "vitest";
import { backUp } from "../../src/backup/back-up.ts";
import { toLocalError } from "../../src/backup/errors.ts";
import { countKeys, fingerprint } from "../../src/backup/migration/copy.ts";
import { type MigrateOptions, migrate, type Side } from "../../src/backup/migration/migrate.ts";
import { restore } from "../../src/backup/restore.ts";
import type * as Lock from "../../src/backup/transfer-lock.ts";
import { OUTBOUND_QUEUE } from "../../src/queue/outbound-queue.ts";
import { connect } from "../../src/redis/connect.ts";
import { keys, shardKeys, transferKey } from "../../src/redis/keys.ts";
import type * as Layout from "../../src/redis/layout.ts";
import { beginGrowth, checkLayout, readLayout } from "../../src/redis/layout.ts";
import { Shards, shardOfName } from "../../src/redis/shards.ts";
import { run } from "../cli/fake-host.ts";
import { as, client, freshDb, request, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { emptyBackup } from "../support/empty-backup.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { beginGrowthAs, markAs } from "../support/mark.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { startPair, startServer } from "../support/redis-pair.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { until } from "../support/until.ts";

/** `beforeMark`: when the checks are done and the target is about to be marked. `beforeRenewal`: of the lock. */
const moment = vi.hoisted(() => {
  // An earlier file of this worker may have imported the modules without what is put around them here.
  vi.resetModules();
  return { beforeMark: async () => {}, afterMark: async () => {}, beforeRenewal: async () => {} };
});
vi.mock("../../src/redis/layout.ts", async (original) => {
  const real = await original<typeof Layout>();
  const around =
    <A extends unknown[], R>(mark: (...args: A) => Promise<R>) =>
    async (...args: A) => {
      await moment.beforeMark();
      const made = await mark(...args);
      await moment.afterMark();
      return made;
    };
  return { ...real, markRestoring: around(real.markRestoring), beginGrowth: around(real.beginGrowth) };
});
vi.mock("../../src/backup/transfer-lock.ts", async (original) => {
  const real = await original<typeof Lock>();
  const withTransferLock: typeof Lock.withTransferLock = (redis, signal, write) =>
    real.withTransferLock(redis, signal, (lock) => {
      const renew = async () => {
        await moment.beforeRenewal();
        await lock.renew();
      };
      return write({ ...lock, renew });
    });
  return { ...real, withTransferLock };
});
const once = (name: "beforeMark" | "afterMark") => (act: () => Promise<unknown>) => {
  moment[name] = async () => {
    moment[name] = async () => {};
    await act();
  };
};
const beforeMark = once("beforeMark");
const afterMark = once("afterMark");

vi.setConfig({ testTimeout: 120_000 });

const SHARDS = 4;
const NEVER = new AbortController().signal;
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster({ binary: await testRedisBinary(), withReplicas: false });
}, 120_000);
afterAll(() => cluster?.stop());
beforeEach(() => cluster.flush());
afterEach(() => {
  for (const name of ["beforeMark", "afterMark", "beforeRenewal"] as const) moment[name] = async () => {};
});

/** The first name like this that leads to another shard than the first. */
function mover(prefix: string): string {
  const names = Array.from({ length: 50 }, (_, n) => `${prefix}-${n}`);
  return names.find((name) => shardOfName(name, SHARDS) !== 0) ?? "";
}
const IDLE = mover("idle");
const BUSY = mover("busy");

const cli = (...argv: string[]) => {
  const { PATH, ERRAND_REDIS_BIN } = process.env;
  return run(argv, {
    env: { dataDir: "/nonexistent" },
    childEnv: { PATH, ...(ERRAND_REDIS_BIN !== undefined && { ERRAND_REDIS_BIN }) },
  });
};

/** A stopped broker on a private Redis, with work in several states. */
async function stoppedBroker() {
  const own = await startOwnRedis("everysec");
  const { gateway, url } = await startBroker({ redis: own.target, shards: 1 });
  const api = client(url);
  for (const name of [IDLE, BUSY]) await api.agent(name, { limits: { max_attempts: 3 } });
  const alice = await as(url, "caller:alice");
  const lease = async (agent: string) => (await api.lease(agent, { lease_seconds: 600 })).body.leases[0];
  const ids: Record<string, string> = {};
  const delegate = async (name: string, agent: string, more = {}, headers = {}) => {
    ids[name] = (await alice.delegate(agent, { task: name, ...more }, headers)).body.id;
    return ids[name];
  };
  await delegate("done", IDLE, {}, { "idempotency-key": "done" });
  await api.reply((await lease(IDLE)).lease_id, { text: "the answer" });
  const { cursor } = (await api.call("GET", "/v1/events?after=0&limit=1000", undefined, JSON_ONLY)).body;
  await delegate("failed", IDLE);
  const error = { code: "out_of_paper", category: "UPSTREAM", message: "no paper" };
  await api.reply((await lease(IDLE)).lease_id, { state: "failed", text: undefined, error });
  // The gateway died between the two steps of a redrive.
  await delegate("half", IDLE);
  await api.reply((await lease(IDLE)).lease_id, { state: "failed", text: undefined, error });
  const params = { new_id: `dlg_0_${"1".repeat(26)}` };
  await gateway.broker.writer.move({ move: "redrive", id: String(ids.half), params });
  await delegate("asks", BUSY);
  const { interrupt_id } = (await api.interrupt((await lease(BUSY)).lease_id, { text: "which?" })).body;
  await delegate("works", BUSY);
  const working = (await lease(BUSY)).lease_id;
  await api.heartbeat(working, { progress: { message: "half" } });
  for (const [name, priority] of [
    ["low", 1],
    ["high", 9],
  ] as const)
    await delegate(name, BUSY, { priority });
  // The gateway died before it submitted with this key.
  const reserved = `dlg_0_${"0".repeat(26)}`;
  await alice.delegate(IDLE, { task: "kept" }, { "idempotency-key": "reserved" });
  const [found = ""] = (await api.call("GET", `/v1/delegations?target=${IDLE}&limit=1`)).body.delegations;
  await api.cancel(found.id);
  expect((await alice.erase(found.id)).status).toBe(204);
  for (const name of await own.redis.keys(keys.idempotency("*"))) {
    const [hash, id, mark] = String(await own.redis.get(name)).split(" ");
    if (id === found.id && mark === "gone") await own.redis.set(name, `${hash} ${reserved}`, "EX", 86_400);
  }
  await gateway.close({ idleGrace: false });
  return { own, ids, alice, cursor, working, interrupt_id, reserved, dataDir: dirname(own.target.socket) };
}
const JSON_ONLY = { accept: "application/json" };

test("from a private Redis to a Cluster with more shards: ids, leases, keys, cursors, queues and redrives go on", async () => {
  const { own, ids, alice, cursor, working, interrupt_id, reserved, dataDir } = await stoppedBroker();
  const before = await dump(own.redis);
  await own.embedded.stop();

  const move = ["migrate", "--data-dir", dataDir, "--to", cluster.url, "--shards", String(SHARDS), "--json"];
  const planned = await cli(...move, "--dry-run");
  expect([planned.code, planned.stderr]).toEqual([0, ""]);
  expect(
    await cluster.client
      .nodes("master")
      .reduce(async (sum, node) => (await sum) + (await node.dbsize()), Promise.resolve(0)),
  ).toBe(0);
  const done = await cli(...move);
  expect([done.code, done.stderr]).toEqual([0, ""]);
  const report = JSON.parse(done.stdout);
  expect(report).toMatchObject({
    source: dataDir,
    delegations: 7,
    dry_run: false,
    shards: { from: 1, to: SHARDS },
    moved: [IDLE],
    stay: [BUSY],
  });
  expect({ ...JSON.parse(planned.stdout), dry_run: false }).toEqual(report);
  const unchanged = await startOwnRedis("everysec", dataDir);
  expect(await dump(unchanged.redis)).toEqual(before);

  const redis = { url: cluster.url };
  await expect(startBroker({ redis, shards: 1 })).rejects.toThrow(/ERRAND_SHARDS=4, not 1/);
  const { gateway, url } = await startBroker({ redis, shards: SHARDS });
  expect([gateway.broker.id]).toEqual(await unchanged.redis.hmget(keys.layout, "broker"));
  const api = client(url);
  const caller = client(url, alice.token);
  // A cursor of the time with one shard continues without a gap or a RESET.
  const { events } = (await caller.call("GET", `/v1/events?after=${cursor}&limit=1000`, undefined, JSON_ONLY))
    .body;
  const types = (name: string) =>
    events.filter((one: { delegation_id: string }) => one.delegation_id === ids[name]).length;
  expect(events.some(({ type }: { type: string }) => type === "RESET")).toBe(false);
  expect([types("done"), types("failed"), types("works")]).toEqual([0, 3, 3]);

  // The leases and the queue of the busy agent.
  expect((await api.heartbeat(working, {})).status).toBe(200);
  expect((await api.reply(working)).status).toBe(200);
  expect((await api.answer(String(ids.asks), interrupt_id, { text: "this" })).status).toBe(200);
  const order: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const [{ delegation, lease_id }] = (await api.lease(BUSY)).body.leases;
    order.push(delegation.id);
    expect((await api.reply(lease_id)).status).toBe(200);
  }
  expect(order).toEqual(["high", "asks", "low"].map((name) => ids[name]));
  for (const name of ["done", "failed", "half", "asks", "works", "high", "low"]) {
    checkHistory(await eventsOf(api, String(ids[name])), "finished");
  }

  // The idle agent works in its new shard, and its earlier work is found.
  const { body: next } = await caller.delegate(IDLE);
  expect(next.id).toMatch(new RegExp(`^dlg_${shardOfName(IDLE, SHARDS)}_`));
  const [lease] = (await api.lease(IDLE)).body.leases;
  expect([lease.delegation.id, (await api.reply(lease.lease_id)).status]).toEqual([next.id, 200]);
  const { delegations } = (await api.call("GET", `/v1/delegations?target=${IDLE}`)).body;
  expect(delegations.map(({ id }: { id: string }) => id)).toEqual([next.id, ids.half, ids.failed, ids.done]);
  const same = await caller.delegate(IDLE, { task: "done" }, { "idempotency-key": "done" });
  expect([same.status, same.body.id, same.body.reply.parts[0].text]).toEqual([200, ids.done, "the answer"]);
  const kept = await caller.delegate(IDLE, { task: "kept" }, { "idempotency-key": "reserved" });
  expect([kept.status, kept.body.id === reserved]).toEqual([202, false]);
  const [redriven, again] = [
    await caller.redrive(String(ids.failed)),
    await caller.redrive(String(ids.failed)),
  ];
  expect(redriven.body.id).toMatch(new RegExp(`^dlg_${shardOfName(IDLE, SHARDS)}_`));
  expect(again.body.id).toBe(redriven.body.id);
  await caller.cancel(redriven.body.id);
  expect((await caller.erase(redriven.body.id)).status).toBe(204);
  expect((await caller.redrive(String(ids.failed))).body.code).toBe("already_finished");

  const halves = await Promise.all([1, 2].map(() => caller.redrive(String(ids.half))));
  const [half] = halves.map(({ body }) => String(body.id));
  expect(half).toMatch(new RegExp(`^dlg_${shardOfName(IDLE, SHARDS)}_`));
  expect([halves[1]?.body.id, (await caller.redrive(String(ids.half))).body.id]).toEqual([half, half]);

  // When the busy agent has no work left, another run moves it, too.
  const raise = ["migrate", "--redis-url", cluster.url, "--shards", String(SHARDS)];
  expect(await cli(...raise)).toMatchObject({ code: 64, stderr: expect.stringContaining("Stop the broker") });
  const newest = (await api.call("GET", "/v1/events", undefined, JSON_ONLY)).body.cursor;
  for (const id of [kept.body.id, half]) await api.cancel(id);
  await gateway.close({ idleGrace: false });
  expect(await cli(...raise)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`another shard: ${BUSY}`),
  });
  const second = await startBroker({ redis, shards: SHARDS });
  const { body: moved } = await client(second.url).delegate(BUSY);
  expect(moved.id).toMatch(new RegExp(`^dlg_${shardOfName(BUSY, SHARDS)}_`));
  const later = (await client(second.url).call("GET", `/v1/events?after=${newest}`, undefined, JSON_ONLY))
    .body;
  expect(later.events.map(({ delegation_id: id }: { delegation_id: string }) => id)).toEqual([
    kept.body.id,
    half,
    moved.id,
  ]);
});

/** Data with one agent that would move and one that would stay, in a database of the run's Redis. */
async function small() {
  const { gateway, redis, db, url } = await startBroker({ shards: 1 });
  const api = client(url);
  for (const name of [IDLE, BUSY]) await api.agent(name);
  const { id } = (await api.delegate(BUSY)).body;
  const { cursor } = (await api.call("GET", "/v1/events", undefined, JSON_ONLY)).body;
  await gateway.close({ idleGrace: false });
  const target = { socket: inject("redisSocket"), db };
  return { redis, source: { target, isExclusive: false }, id: String(id), cursor: String(cursor) };
}

const at = async (db?: number) => {
  const target = { socket: inject("redisSocket"), db: db ?? (await freshDb()) };
  const redis = new Redis(target.socket, { db: target.db });
  onTestFinished(() => redis.disconnect());
  return { redis, side: { target, isExclusive: false } };
};

const RESTORE = { force: true, isExclusive: false, onProgress: () => {}, signal: NEVER };
const with_ = (more: Pick<MigrateOptions, "source" | "target"> & Partial<MigrateOptions>) =>
  migrate({ shards: undefined, force: false, dryRun: false, onProgress: () => {}, signal: NEVER, ...more });

test("the progress of a copy counts all keys, those that expire included", async () => {
  const { redis, source } = await small();
  const { side: target } = await at();
  for (let n = 0; n < 50; n += 1) await redis.set(keys.session(`ses_${n}`), "{}", "EX", 600);
  const told: (readonly [number, number])[] = [];
  await with_({ source, target, onProgress: (copied, of) => told.push([copied, of]) });
  const [copied, of] = told.at(-1) ?? [];
  expect(of).toBeGreaterThan(50);
  expect(copied).toBe(of);
});

test("a copy that was stopped lets no broker start, and is repeated; a broker that starts meanwhile is noticed", async () => {
  const { redis, source, id } = await small();
  const { redis: copy, side: target } = await at();
  await copy.set("foreign", "kept");
  const stopped = new AbortController();
  const stop = () => stopped.abort(new Error("stopped"));
  await expect(with_({ source, target, onProgress: stop, signal: stopped.signal })).rejects.toThrow(
    "stopped",
  );
  await expect(checkLayout(copy, 1)).rejects.toThrow(/has not finished/);
  const fail = () => {
    throw new Error("the disk is on fire");
  };
  const failed = await with_({ source, target, onProgress: fail }).catch((error: unknown) => error);
  expect(toLocalError(failed, "")).toMatchObject({
    code: "transfer_failed",
    message: "the disk is on fire",
    recovery: expect.stringContaining("Only a part was copied"),
  });
  const wake = () => void redis.zadd(keys.gateways, 1, "started");
  const woken = await with_({ source, target, onProgress: wake }).catch((error: unknown) => error);
  expect(woken).toMatchObject({ message: expect.stringContaining("was started on the source") });
  // The target was emptied, so the advice for it must not say that nothing was changed.
  expect(toLocalError(woken, "")).toMatchObject({
    code: "source_changed",
    category: "TRANSPORT",
    recovery: expect.stringContaining(
      "No broker starts on the copy; this command did not write to the source.",
    ),
  });
  await expect(checkLayout(copy, 1)).rejects.toThrow(/has not finished/);
  await redis.del(keys.gateways);
  expect(await with_({ source, target })).toMatchObject({ delegations: 1, shards: { from: 1, to: 1 } });
  expect(await copy.get("foreign")).toBe("kept");
  const { url } = await startBroker({ redis: target.target, shards: 1 });
  expect((await client(url).get(id)).body.state).toBe("submitted");
  await expect(with_({ source, target })).rejects.toThrow(/a broker uses this Redis/);
});

test("a change of the shards that was stopped half-way is finished by the same command, and nothing else", async () => {
  const { redis, source, id } = await small();
  const [from, to] = [shardKeys(0), shardKeys(shardOfName(IDLE, SHARDS))];
  const doc = await redis.hget(from.agent(IDLE), "doc");
  const growth = JSON.stringify({ from: 1, to: SHARDS, at: Date.now() });
  await redis.hset(keys.layout, { shards: "restoring", growth });
  await redis.rename(from.agent(IDLE), to.agent(IDLE));
  await redis.sadd(to.agents, IDLE);
  await expect(startBroker({ redis: source.target, shards: SHARDS })).rejects.toThrow(/has not finished/);
  const { side: other } = await at();
  await expect(with_({ source: other, target: null, shards: 8 })).rejects.toThrow(/no data/);
  // It is whole, although not finished: no copy may replace it.
  const { source: second } = await small();
  await expect(with_({ source: second, target: source })).rejects.toThrow(/data of a broker already/);
  await expect(with_({ source, target: other })).rejects.toThrow(/has not finished/);
  await expect(with_({ source, target: null, shards: 8 })).rejects.toThrow(/4 shards has not finished/);
  expect(await with_({ source, target: null, shards: SHARDS })).toMatchObject({
    moved: [IDLE],
    stay: [BUSY],
  });
  expect(await redis.hget(to.agent(IDLE), "doc")).toBe(doc);
  expect([await redis.smembers(from.agents), await redis.smembers(to.agents)]).toEqual([[BUSY], [IDLE]]);
  // Calls that wait stay in their queue, which is the outbound one.
  expect(shardOfName(OUTBOUND_QUEUE, SHARDS)).not.toBe(0);
  expect(new Shards(SHARDS, (await readLayout(redis)).history).indexOfAgent(OUTBOUND_QUEUE)).toBe(0);
  const { url } = await startBroker({ redis: source.target, shards: SHARDS });
  expect((await client(url).lease(BUSY)).body.leases).toMatchObject([{ delegation: { id } }]);
  const { body } = await request(url, "GET", "/v1/agents");
  expect(body.agents.map(({ name }: { name: string }) => name).sort()).toEqual([BUSY, IDLE]);
});

test("an error says whether anything was written, and what of a growth in place", async () => {
  const { redis, source } = await small();
  const { side: target } = await at();
  const fail = async () => {
    throw new Error("the disk is on fire");
  };
  const failing = async (more: Partial<MigrateOptions> & Pick<MigrateOptions, "target">) =>
    toLocalError(await with_({ source, ...more }).catch((error: unknown) => error), "");
  // After all checks, before the mark.
  moment.beforeRenewal = fail;
  const unwritten = { code: "redis_unavailable", recovery: expect.stringContaining("Nothing was changed.") };
  expect(await failing({ target })).toMatchObject(unwritten);
  expect(await failing({ target: null, shards: SHARDS })).toMatchObject(unwritten);
  await expect(restore(target.target, emptyBackup, RESTORE)).rejects.toMatchObject({ reason: "unreachable" });
  await checkLayout(redis, 1);
  // Before the end.
  moment.beforeRenewal = async () => {
    moment.beforeRenewal = fail;
  };
  expect(await failing({ target: null, shards: SHARDS })).toMatchObject({
    code: "transfer_failed",
    recovery: expect.stringContaining("All data is still there"),
  });
});

test("a growth that a restore has replaced half-way cannot be finished", async () => {
  const { redis, source } = await small();
  await beginGrowthAs(redis, { from: 1, to: SHARDS, at: Date.now() }, "growth");
  await markAs(redis, "restore");
  await expect(with_({ source, target: null, shards: SHARDS })).rejects.toThrow(
    /restore or a migration .* has not finished/,
  );
  await expect(checkLayout(redis, SHARDS)).rejects.toThrow(/has not finished/);
});

test("a backup of data whose shards are being raised is refused with what to do", async () => {
  const { source, redis } = await small();
  await beginGrowthAs(redis, { from: 1, to: SHARDS, at: Date.now() }, "growth");
  const path = join(freshDir(), "errand.backup");
  const refused = await backUp(source.target, {
    ...{ path, errandVersion: "1", onProgress: () => {}, signal: NEVER },
  }).catch((error: unknown) => toLocalError(error, path));
  expect(refused).toMatchObject({
    code: "migration_unfinished",
    message: expect.stringContaining(`to ${SHARDS} shards has not finished`),
    recovery: expect.stringContaining("Run 'errand migrate' again"),
  });
});

test("two migrations or restores to one Redis exclude each other; one that was killed can be repeated", async () => {
  const { source } = await small();
  const { redis: copy, side: target } = await at();
  const { source: second } = await small();
  let refused: unknown[] = [];
  beforeMark(async () => {
    // In this moment the first one has checked, but written nothing.
    refused = await Promise.all(
      [
        with_({ source: second, target, force: true }),
        with_({ source: second, target, dryRun: true }),
        with_({ source: target, target: second, force: true }),
      ].map((other) => other.catch((error: unknown) => toLocalError(error, ""))),
    );
  });
  expect(await with_({ source, target })).toMatchObject({ delegations: 1 });
  expect(refused).toEqual(Array(3).fill(expect.objectContaining({ code: "transfer_running" })));
  expect(await copy.exists(transferKey)).toBe(0);
  // The other one was killed; 15 s later, its lock is no more.
  const now = Number((await copy.time())[0]) * 1000;
  await copy.hset(transferKey, { owner: "killed", expires_at: now + 15_000 });
  await expect(with_({ source, target, force: true })).rejects.toMatchObject({ reason: "in_progress" });
  await copy.hset(transferKey, { expires_at: now - 1_000 });
  await with_({ source, target, force: true });
  // Another one takes the lock while this one stands still: this one must not let brokers start.
  const takeOver = () => void copy.hset(transferKey, { owner: "other" });
  await expect(with_({ source, target, force: true, onProgress: takeOver })).rejects.toMatchObject({
    reason: "taken_over",
  });
  await expect(checkLayout(copy, 1)).rejects.toThrow(/has not finished/);
  expect(await copy.hget(transferKey, "owner")).toBe("other");
});

test("of two migrations in opposite directions that begin at once, none deletes the data of the other", async () => {
  const [one, two] = [await small(), await small()];
  const before = [await dump(one.redis), await dump(two.redis)];
  const done = await Promise.allSettled([
    with_({ source: one.source, target: two.source, force: true }),
    with_({ source: two.source, target: one.source, force: true }),
  ]);
  const refused = done.map((result) => (result.status === "rejected" ? result.reason.reason : null));
  expect(refused).toContain("in_progress");
  expect(refused.every((reason) => reason === null || reason === "in_progress")).toBe(true);
  // What the other one would have deleted.
  if (refused[0] !== null) expect(await dump(two.redis)).toEqual(before[1]);
  if (refused[1] !== null) expect(await dump(one.redis)).toEqual(before[0]);
});

test("a process that was suspended cannot let brokers start on what another command has begun to write", async () => {
  const { source } = await small();
  const { redis: copy, side: target } = await at();
  const markAgain = () => void copy.hset(keys.layout, "owner", "other");
  for (const shards of [undefined, SHARDS]) {
    const half = with_({ source, target, shards, force: true, onProgress: markAgain });
    await expect(half).rejects.toMatchObject({ reason: "taken_over" });
    await expect(checkLayout(copy, 1)).rejects.toThrow(/has not finished/);
    expect(await copy.hget(keys.layout, "owner")).toBe("other");
  }
});

test("the copy gets the layout that was compared", async () => {
  const { redis, source } = await small();
  const { redis: copy, side: target } = await at();
  let renewals = 0;
  moment.beforeRenewal = async () => {
    renewals += 1;
    // The first one is before the mark.
    if (renewals === 2) await redis.hset(keys.layout, "shards", "9");
  };
  await with_({ source, target });
  expect([renewals, (await readLayout(copy)).shards]).toEqual([2, 1]);
});

test("a growth that begins on the source of a copy is noticed", async () => {
  const { redis, source } = await small();
  const { redis: copy, side: target } = await at();
  await redis.hset(transferKey, "owner", "growth");
  const grow = () => void beginGrowth(redis, { from: 1, to: SHARDS, at: Date.now() }, "growth");
  await expect(with_({ source, target, onProgress: grow })).rejects.toMatchObject({
    reason: "source_changed",
  });
  await expect(checkLayout(copy, 1)).rejects.toThrow(/has not finished/);
});

test("a copy that lacks a key, or has one more, is no copy", async () => {
  const { redis, source } = await small();
  const { redis: copy, side: target } = await at();
  const lose = () => void copy.del(shardKeys(0).agent(BUSY));
  await expect(with_({ source, target, onProgress: lose })).rejects.toThrow(
    /lacks 1 of the \d+ keys, and has 0/,
  );
  const add = () => void copy.set(keys.idempotency("more"), "1");
  await expect(with_({ source, target, onProgress: add })).rejects.toThrow(
    /lacks 0 of the \d+ keys, and has 1/,
  );
  // Both have as many keys.
  const swap = () => void copy.rename(shardKeys(0).agent(BUSY), keys.idempotency("other")).catch(() => {});
  await expect(with_({ source, target, onProgress: swap })).rejects.toThrow(
    /lacks 1 of the \d+ keys, and has 1/,
  );
  expect(await redis.exists(transferKey)).toBe(0);
});

test("a dry run writes nothing to either side, and makes no folder", async () => {
  const own = await startOwnRedis("everysec");
  const { gateway } = await startBroker({ redis: own.target, shards: 1 });
  await gateway.close({ idleGrace: false });
  const source = { target: own.target, isExclusive: false };
  const target = { target: { ...own.target, db: 1 }, isExclusive: false };
  await own.redis.config("RESETSTAT");
  for (const to of [{ target }, { target: null, shards: SHARDS }, { target, shards: SHARDS }])
    await with_({ source, dryRun: true, ...to });
  const used = await own.redis.info("commandstats");
  expect(used).toContain("cmdstat_scan:");
  expect(used).not.toMatch(/cmdstat_(?:set|del|unlink|hset|hdel|sadd|zadd|xadd|pexpire):/);
  // RESTORE was tried with a value that every server refuses.
  expect(used).toMatch(/cmdstat_restore:calls=2,.*failed_calls=2\s/);
  await own.embedded.stop();
  const folder = join(freshDir(), "new");
  const from = dirname(own.target.socket);
  const planned = await cli("migrate", "--data-dir", from, "--to-data-dir", folder, "--dry-run");
  expect([planned.code, planned.stdout]).toEqual([
    0,
    expect.stringMatching(/^would be copied .* to \/.*new\n$/),
  ]);
  expect(existsSync(folder)).toBe(false);
});

test("in place, the advice names a directory that was found in a parent directory", async () => {
  const own = await startOwnRedis("everysec");
  const { gateway } = await startBroker({ redis: own.target, shards: 1 });
  await gateway.close({ idleGrace: false });
  await own.embedded.stop();
  const parent = freshDir();
  const found = join(parent, ".errand");
  renameSync(dirname(own.target.socket), found);
  mkdirSync(join(parent, "below"));
  const { PATH, ERRAND_REDIS_BIN } = process.env;
  const { code, stderr } = await run(["migrate", "--shards", "2"], {
    env: { dataDir: join(parent, "below", ".errand") },
    childEnv: { PATH, ...(ERRAND_REDIS_BIN !== undefined && { ERRAND_REDIS_BIN }) },
  });
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(
      `Start the broker now: 'errand serve --data-dir ${found}', with ERRAND_SHARDS=2.`,
    ),
  ]);
});

test("from one database of a server to another, by URLs that come from the environment and stdin", async () => {
  const { port } = await startServer(["appendonly yes", "appendfsync always"]);
  const url = `redis://127.0.0.1:${port}`;
  const { gateway } = await startBroker({ redis: { url }, shards: 1 });
  await gateway.close({ idleGrace: false });
  const { PATH } = process.env;
  const migrate = (stdin: string, ...more: string[]) =>
    run(["migrate", "--to", "-", ...more], {
      ...{ env: { dataDir: "/nonexistent" }, childEnv: { PATH, ERRAND_REDIS_URL: url } },
      ...{ stdin, tty: { stdin: false } },
    });
  const { code, stdout, stderr } = await migrate(`${url}/1\nmore\n`);
  const place = new URL(url).host;
  expect([code, stdout]).toEqual([0, expect.stringContaining(`, from ${place} to ${place}/1\n`)]);
  expect(stderr).toContain(`'errand serve --redis-url ${url}/1'`);
  expect(await migrate("")).toMatchObject({ code: 64, stderr: expect.stringContaining("stdin has no URL") });
  expect(await run(["migrate", "--to", "-"])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("stdin is a terminal, which would show the URL. Pipe it."),
  });
});

test("a broker that starts while a migration checks is noticed before anything is deleted or moved", async () => {
  const { redis, source } = await small();
  const { redis: other, side: target } = await at();
  await with_({ source, target });
  const [one, two] = [await dump(redis), await dump(other)];
  for (const alive of [redis, other]) {
    beforeMark(() => alive.zadd(keys.gateways, Date.now(), "started"));
    await expect(with_({ source, target, force: true })).rejects.toMatchObject({ reason: "in_use" });
    await alive.del(keys.gateways);
  }
  beforeMark(() => redis.zadd(keys.gateways, Date.now(), "started"));
  await expect(with_({ source, target: null, shards: SHARDS })).rejects.toMatchObject({ reason: "in_use" });
  await redis.del(keys.gateways);
  expect([await dump(redis), await dump(other)]).toEqual([one, two]);
  const { side: empty, redis: nothing } = await at();
  beforeMark(() => redis.zadd(keys.gateways, Date.now(), "started"));
  await expect(with_({ source, target: empty })).rejects.toMatchObject({ reason: "in_use" });
  expect(await nothing.keys("*")).toEqual([]);
});

test("a broker that starts while a restore checks is noticed before anything is deleted", async () => {
  const { redis, source } = await small();
  const before = await dump(redis);
  beforeMark(() => redis.zadd(keys.gateways, Date.now(), "started"));
  await expect(restore(source.target, emptyBackup, RESTORE)).rejects.toMatchObject({ reason: "in_use" });
  expect(await dump(redis)).toEqual(before);
  await redis.del(keys.gateways);
  await restore(source.target, emptyBackup, RESTORE);
  expect(await redis.keys("*")).toEqual([]);
});

/** Each command that marks `side`. The data at `side` may be deleted. */
const marking = (source: Side, side: Side) =>
  [
    (signal = NEVER) => restore(side.target, emptyBackup, { ...RESTORE, signal }),
    (signal = NEVER) => with_({ source, target: side, force: true, signal }),
    (signal = NEVER) => with_({ source: side, target: null, shards: SHARDS, signal }),
  ] as const;

test("a broker that writes its layout between the checks and the mark keeps it", async () => {
  const { source } = await small();
  for (const sign of [true, false]) {
    for (const n of [0, 1] as const) {
      const { redis, side } = await at();
      beforeMark(async () => {
        await checkLayout(redis, 1);
        if (sign) await redis.zadd(keys.gateways, Date.now(), "started");
      });
      await expect(marking(source, side)[n]()).rejects.toMatchObject({ reason: "in_use" });
      expect([await readLayout(redis), await redis.hlen(keys.layout)]).toMatchObject([{ shards: 1 }, 3]);
    }
  }
});

test("a command that fails after its mark, before it has deleted or moved anything, removes the mark", async () => {
  const { source } = await small();
  const { source: side, redis } = await small();
  await redis.hset(keys.layout, "earlier", JSON.stringify([{ count: 1, until: 1 }]));
  const before = await dump(redis);
  for (const run of marking(source, side)) {
    const stop = new AbortController();
    afterMark(async () => stop.abort(new Error("Ctrl-C")));
    await expect(run(stop.signal)).rejects.toThrow("Ctrl-C");
    expect(await dump(redis)).toEqual(before);
    // Redis fails when the command looks for gateways again.
    beforeMark(() => redis.set(keys.gateways, "no set"));
    const failed = toLocalError(await run().catch((error: unknown) => error), "");
    expect(failed).toMatchObject({ recovery: expect.stringContaining("Nothing was changed.") });
    expect(await redis.del(keys.gateways)).toBe(1);
    expect(await dump(redis)).toEqual(before);
  }
  // Another command has marked it meanwhile: its mark stays.
  const stop = new AbortController();
  afterMark(async () => {
    await redis.hset(keys.layout, "owner", "other");
    stop.abort(new Error("Ctrl-C"));
  });
  const [run] = marking(source, side);
  await expect(run(stop.signal)).rejects.toMatchObject({ reason: "taken_over" });
  expect(await redis.hget(keys.layout, "owner")).toBe("other");
});

test("a process that was suspended before its mark marks nothing once another command has, or had, the lock", async () => {
  const { source } = await small();
  const { source: side, redis } = await small();
  const before = await dump(redis);
  for (const run of marking(source, side)) {
    for (const lose of [() => redis.hset(transferKey, "owner", "other"), () => redis.del(transferKey)]) {
      beforeMark(lose);
      await expect(run()).rejects.toMatchObject({ reason: "taken_over" });
      await redis.del(transferKey);
      expect(await dump(redis)).toEqual(before);
    }
  }
});

test("a cursor from before a growth gets a RESET when events of a new shard were trimmed, and else none", async () => {
  const { redis, source, cursor } = await small();
  await with_({ source, target: null, shards: 2 });
  await with_({ source, target: null, shards: SHARDS });
  const { url } = await startBroker({ redis: source.target, shards: SHARDS });
  const api = client(url);
  const after = async (from: string) => {
    const path = `/v1/events?after=${from}&wait_seconds=0`;
    const { status, body } = await api.call("GET", path, undefined, JSON_ONLY);
    return status === 200 ? body.events.map(({ type }: { type: string }) => type) : status;
  };
  // With one position, as many as there were in between, and a number that never was.
  expect(await after(cursor)).toEqual([]);
  expect(await after(`${cursor}.${Date.now() + 5_000}-0`)).toEqual(["RESET"]);
  expect(await after([cursor, cursor, cursor].join("."))).toBe(400);
  await api.delegate(IDLE);
  expect(await after(cursor)).toEqual(["DELEGATION_SENT"]);
  await api.delegate(IDLE);
  await redis.xtrim(shardKeys(shardOfName(IDLE, SHARDS)).events, "MAXLEN", 1);
  expect((await after(cursor))[0]).toBe("RESET");
});

test("a backup is restored into a Cluster", async () => {
  const own = await startOwnRedis("everysec");
  const { gateway, url: before } = await startBroker({ redis: own.target, shards: 1 });
  await client(before).agent(BUSY);
  const { id } = (await client(before).delegate(BUSY)).body;
  await gateway.close({ idleGrace: false });
  const file = join(freshDir(), "errand.backup");
  await backUp(own.target, { path: file, errandVersion: "1", onProgress: () => {}, signal: NEVER });
  await cluster.client.set("foreign", "kept");
  await cluster.client.hset(transferKey, { owner: "other", expires_at: Date.now() + 60_000 });
  expect(await cli("restore", file, "--redis-url", cluster.url)).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("another restore or migration writes to this Redis"),
  });
  await cluster.client.del(transferKey);
  const restored = await cli("restore", file, "--redis-url", cluster.url);
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining("1 delegation,")]);
  expect(await cli("restore", file, "--redis-url", cluster.url)).toMatchObject({ code: 64 });
  expect(await cli("restore", file, "--redis-url", cluster.url, "--force")).toMatchObject({ code: 0 });
  expect(await cli("backup", `${file}.2`, "--redis-url", cluster.url)).toMatchObject({ code: 78 });
  expect(await cluster.client.get("foreign")).toBe("kept");
  const { url } = await startBroker({ redis: { url: cluster.url }, shards: 1 });
  expect((await client(url).lease(BUSY)).body.leases).toMatchObject([{ delegation: { id } }]);
});

test("a replica is neither source nor target, because its master may be the other side", async () => {
  const { master, replica } = await startPair();
  await master.redis.hset(keys.layout, { version: "1", shards: "1", broker: "brk_1" });
  await master.redis.hset(keys.tokens, "some", "1");
  await until(async () => (await replica.redis.exists(keys.tokens)) === 1);
  const [one, two] = [master, replica].map(({ socket }) => ({ target: { socket }, isExclusive: false }));
  if (!one || !two) throw new Error("there are two");
  for (const sides of [
    { source: two, target: one },
    { source: one, target: two },
    { source: two, target: null, shards: SHARDS },
  ])
    await expect(with_({ ...sides, force: true })).rejects.toMatchObject({ reason: "replica" });
  expect(await master.redis.exists(keys.tokens)).toBe(1);
});

test("a master of a Cluster that does not respond is not skipped", async () => {
  const redis = connect({ url: cluster.url }, "commands");
  onTestFinished(() => redis.disconnect());
  redis.on("error", () => {});
  await countKeys(redis);
  if (!(redis instanceof Cluster)) throw new Error("it is a Cluster");
  redis.nodes("master")[0]?.disconnect();
  await until(() => redis.nodes("master").length === 2);
  await expect(countKeys(redis)).rejects.toThrow(
    /^the master at 127.0.0.1:\d+ of the Cluster does not respond$/,
  );
});

test("a broker that came and went during the copy is noticed by agents' settings and the audit log", async () => {
  const { redis } = await small();
  const seen = async (change: () => Promise<unknown>) => {
    const before = await fingerprint(redis, 1);
    await change();
    return (await fingerprint(redis, 1)) !== before;
  };
  const { agent } = shardKeys(0);
  expect(await seen(() => redis.hset(agent(BUSY), "doc", "{}"))).toBe(true);
  expect(await seen(() => redis.xadd(keys.audit, "*", "e", "1"))).toBe(true);
  expect(await seen(() => redis.xadd(keys.auditOthers, "*", "e", "1"))).toBe(true);
  expect(await seen(async () => {})).toBe(false);
});

test("what cannot be migrated is refused with the reason, and nothing is changed", async () => {
  const { source } = await small();
  const { redis: full, side: target } = await at();
  await expect(with_({ source, target: source })).rejects.toThrow(/same Redis/);
  await full.set(keys.tokens, "x");
  await expect(with_({ source, target })).rejects.toThrow(/data of a broker already/);
  expect(await full.keys("*")).toEqual([keys.tokens]);
  expect(await with_({ source, target, force: true, shards: SHARDS })).toMatchObject({ stay: [BUSY] });
  await expect(with_({ source: target, target: null, shards: 2 })).rejects.toThrow(/cannot be fewer/);
  await full.hset(keys.layout, "version", "2");
  await expect(with_({ source: target, target: null, shards: 8 })).rejects.toThrow(/layout version 2/);
  const folder = join(freshDir(), "none");
  expect(await cli("migrate", "--data-dir", folder, "--to", cluster.url)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining("has no data of a broker"),
  });
  expect(await cli("migrate", "--data-dir", folder)).toMatchObject({ code: 64 });
});

/** Backups of a broker that works, restored into another Redis: what was acknowledged is there, once, and goes on. */
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Redis as OneServer } from "ioredis";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { backUp } from "../../src/backup/back-up.ts";
import { openBackup } from "../../src/backup/backup-file.ts";
import { toLocalError } from "../../src/backup/errors.ts";
import { restore } from "../../src/backup/restore.ts";
import { isOwnKey, keys, transferKey } from "../../src/redis/keys.ts";
import { client, freshDb, startBroker } from "../support/broker.ts";
import { markAs } from "../support/mark.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";
import { cli } from "./cli.ts";

vi.setConfig({ testTimeout: 120_000 });

/** Acts once when a backup has checked the data, and is about to ask for its snapshot. */
function beforeSnapshot(act: () => Promise<unknown>): void {
  const spy = vi.spyOn(OneServer.prototype, "call");
  spy.mockImplementation(async function (this: OneServer, name: string, ...args: unknown[]) {
    spy.mockRestore();
    expect([name, ...args]).toEqual(["REPLCONF", "capa", "eof"]);
    await act();
    return this.call(name, ...args.map(String));
  });
}

const NEVER = new AbortController().signal;

/** A broker on a Redis of its own. */
async function setup(redis?: Awaited<ReturnType<typeof startOwnRedis>>) {
  const own = redis ?? (await startOwnRedis("everysec"));
  const broker = await startBroker({ redis: own.target });
  const api = client(broker.url);
  const lease = async () => {
    const [one] = (await api.lease("scout", { wait_seconds: 0 })).body.leases;
    return one === undefined ? null : { id: String(one.delegation.id), lease: String(one.lease_id) };
  };
  return { ...broker, own, api, lease, dataDir: dirname(own.target.socket) };
}

/** A file with a backup of a broker with one delegation. */
async function small() {
  const broker = await setup();
  await broker.api.agent("scout");
  const { id } = (await broker.api.delegate("scout")).body;
  const file = join(freshDir(), "errand.backup");
  await broker.own.redis.set("foreign", "not copied");
  await backUp(broker.own.target, { path: file, errandVersion: "1", onProgress: () => {}, signal: NEVER });
  return { ...broker, id: String(id), file };
}

test("work that was acknowledged before a backup is restored, and ends exactly once", async () => {
  const { api, lease, dataDir, gateway, own } = await setup();
  await api.agent("scout", { limits: { max_attempts: 3 } });
  const ids: string[] = [];
  const submit = async (more: Record<string, unknown> = {}) => {
    ids.push(String((await api.delegate("scout", more)).body.id));
  };
  for (let n = 0; n < 8; n += 1) await submit({ priority: n });
  await submit({ delay_seconds: 30 });
  const [finished, asking, held] = [await lease(), await lease(), await lease()];
  await api.reply(String(finished?.lease));
  await api.interrupt(String(asking?.lease), { text: "which one?" });
  await api.heartbeat(String(held?.lease), { progress: { message: "half" } });
  const { cursor } = (await api.call("GET", "/v1/events", undefined, { accept: "application/json" })).body;
  const before = [...ids];
  const { id: erased } = (await api.delegate("scout")).body;
  await api.cancel(erased);
  expect((await api.erase(erased)).status).toBe(204);
  expect((await own.redis.keys("*")).filter((key) => !isOwnKey(key))).toEqual([]);

  const file = join(freshDir(), "errand.backup");
  const made = cli(dataDir, "backup", file, "--json");
  let isMade = false;
  void made.then(() => {
    isMade = true;
  });
  while (!isMade) await submit();
  const { code, stdout, stderr } = await made;
  expect([code, stderr]).toEqual([0, ""]);
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({ file, redis: dataDir, errand_version: "1.2.3", format: 1 });
  expect(report.delegations).toBeGreaterThanOrEqual(before.length);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(dirname(file))).toEqual(["errand.backup"]);
  await gateway.close({ idleGrace: false });
  await own.embedded.stop();

  const fresh = join(freshDir(), "restored");
  expect(await cli(fresh, "restore", file, "--data-dir", fresh)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(fresh),
    stderr: expect.stringContaining(`Start the broker now: 'errand serve --data-dir ${fresh}'`),
  });
  const again = await setup(await startOwnRedis("everysec", fresh));
  expect(again.gateway.broker.id).toBe(gateway.broker.id);
  const restored = (await Promise.all(ids.map((id) => again.api.get(id)))).filter(
    ({ status }) => status === 200,
  );
  expect(restored.length).toBe(report.delegations);
  expect(restored.map(({ body }) => body.id)).toEqual(expect.arrayContaining(before));
  expect((await again.api.get(String(asking?.id))).body.state).toBe("input_required");
  expect((await again.api.events(String(held?.id), `?after=${cursor}`)).status).toBe(200);

  const { id: question } = (await again.api.get(String(asking?.id))).body.interrupt;
  expect((await again.api.answer(String(asking?.id), question, { text: "this" })).status).toBe(200);
  // The lease of the worker that the restore left behind expires, and the delayed one becomes due.
  again.clock.offset_ms = 120_000;
  await again.gateway.sweep.tick();
  expect((await again.api.get(String(held?.id))).body).toMatchObject({ state: "submitted", attempt: 2 });
  again.clock.offset_ms = 400_000;
  await again.gateway.sweep.tick();
  for (let one = await again.lease(); one !== null; one = await again.lease())
    await again.api.reply(one.lease);
  for (const { body } of restored) {
    const { events } = (await again.api.events(body.id)).body;
    const ends = events.filter(({ type }: { type: string }) => /COMPLETE|FAILED/.test(type));
    expect(ends.map(({ state }: { state: string }) => state)).toEqual(["completed"]);
  }
});

test("into a shared Redis only Errand's keys are written; other data and running brokers are respected", async () => {
  const { file, id } = await small();
  const backup = await openBackup(file, NEVER);
  onTestFinished(() => backup.close());
  const socket = inject("redisSocket");
  const db = await freshDb();
  const redis = new OneServer(socket, { db });
  onTestFinished(() => redis.disconnect());
  await redis.set("foreign", "kept");
  const into = (force = false, onProgress: () => void = () => {}, signal = NEVER) =>
    restore({ socket, db }, backup, { force, isExclusive: false, onProgress, signal });

  // A restore that stops half-way lets no broker start, and may be repeated.
  const stop = new AbortController();
  await expect(into(false, () => stop.abort(new Error("stopped")), stop.signal)).rejects.toThrow("stopped");
  await redis.set("{errand}:left", "1");
  await expect(startBroker({ redis: { socket, db } })).rejects.toThrow(
    "A restore or a migration has not finished",
  );
  const half = { path: `${file}.half`, errandVersion: "1", onProgress: () => {}, signal: NEVER };
  await expect(backUp({ socket, db }, half)).rejects.toMatchObject({ reason: "unfinished" });
  await into();
  expect(await redis.mget("foreign", "{errand}:left")).toEqual(["kept", null]);

  await expect(into()).rejects.toMatchObject({ reason: "not_empty" });
  const { url, gateway } = await startBroker({ redis: { socket, db } });
  expect((await client(url).get(id)).body.state).toBe("submitted");
  await expect(into(true)).rejects.toMatchObject({ reason: "in_use" });
  await client(url).delegate("scout", { task: "later than the backup" });
  await gateway.close({ idleGrace: false });
  await into(true);
  expect(await redis.get("foreign")).toBe("kept");
  const again = await startBroker({ redis: { socket, db } });
  expect((await client(again.url).call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
});

test("a backup is made of no data that is being restored or migrated, and such a backup is refused", async () => {
  const { own, gateway, file } = await small();
  await gateway.close({ idleGrace: false });
  const path = `${file}.half`;
  /** `during`: when the snapshot has been read, before the backup ends. */
  const made = async (during: () => Promise<unknown> = async () => {}) => {
    let done: unknown;
    const onProgress = () => {
      done = during();
    };
    const options = { path, errandVersion: "1", signal: NEVER, onProgress };
    const result = await backUp(own.target, options).catch((error: unknown) => toLocalError(error, path));
    await done;
    return result;
  };
  const unfinished = {
    code: "transfer_unfinished",
    recovery: expect.stringContaining("No file was written."),
  };
  const layout = await own.redis.dumpBuffer(keys.layout);
  const lock = { owner: "other", expires_at: Date.now() + 600_000 };
  await own.redis.hset(transferKey, lock);
  expect(await made()).toMatchObject({ code: "transfer_running" });
  await own.redis.del(transferKey);
  await markAs(own.redis, "other");
  expect(await made()).toMatchObject(unfinished);
  const finish = () => own.redis.restore(keys.layout, 0, layout ?? "", "REPLACE");
  await finish();
  // One that began after the check, and ends before the backup does.
  beforeSnapshot(() => markAs(own.redis, "other"));
  expect(await made(finish)).toMatchObject(unfinished);
  // One that began and ended after the check, with other data; the layout was lost.
  beforeSnapshot(() => own.redis.hset(keys.layout, "earlier", "[]"));
  expect(await made(finish)).toMatchObject(unfinished);
  beforeSnapshot(() => own.redis.del(keys.layout));
  expect(await made(finish)).toMatchObject(unfinished);
  expect(await readdir(dirname(file))).toEqual(["errand.backup"]);
  // What begins after the snapshot is not in it.
  const finished = await made(() => markAs(own.redis, "other"));
  expect(finished).toMatchObject({ delegations: 1 });
  const whole = await openBackup(path, NEVER);
  onTestFinished(() => whole.close());
  const place = { socket: inject("redisSocket"), db: await freshDb() };
  await restore(place, whole, { force: false, isExclusive: true, onProgress: () => {}, signal: NEVER });
});

test("existing data and files are kept, unless forced", async () => {
  const { file, dataDir, own, gateway, api } = await small();
  const there = await cli(dataDir, "backup", file);
  expect([there.code, there.stdout]).toEqual([64, ""]);
  expect(there.stderr).toContain("--force");
  const running = await cli(dataDir, "restore", file, "--force", "--json");
  expect(running.code).toBe(64);
  expect(JSON.parse(running.stderr)).toMatchObject({ code: "broker_running" });
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  await gateway.close({ idleGrace: false });
  await own.embedded.stop();
  const full = await cli(dataDir, "restore", file, "--json");
  expect(full.code).toBe(64);
  expect(JSON.parse(full.stderr)).toMatchObject({ code: "data_exists" });
  expect((await cli(dataDir, "restore", file, "--force")).code).toBe(0);
  // The broker is stopped now, so this starts its Redis, and stops it.
  expect((await cli(dataDir, "backup", file, "--force")).code).toBe(0);
  expect(await readdir(dataDir)).not.toContain("redis.sock");
});

test("a file that is not the one that was written is refused before anything changes", async () => {
  const { file } = await small();
  const whole = await readFile(file);
  const fresh = join(freshDir(), "never");
  const refused = async (bytes: Uint8Array, why: string) => {
    await writeFile(file, bytes);
    const { code, stderr } = await cli(fresh, "restore", file);
    expect([code, stderr]).toEqual([64, expect.stringContaining(why)]);
    await expect(stat(fresh)).rejects.toThrow("ENOENT");
  };
  await refused(whole.subarray(0, -1), "bytes instead of");
  await refused(whole.subarray(0, 100), "header is damaged");
  await refused(Buffer.from("not at all"), "not a backup of Errand");
  const altered = (at: number) => {
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  };
  await refused(altered(whole.length - 1), "altered");
  await refused(altered(1024), "altered");
  await refused(altered(whole.indexOf('"database":0') + '"database":'.length), "altered");
  await refused(altered('{"errand_backup":'.length), "format 0");
  await writeFile(file, whole);
  expect(await cli(fresh, "restore", "--check", file)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 delegation, "),
  });
  expect((await cli(fresh, "restore", `${file}.none`)).code).toBe(66);
});

test("a backup that fails leaves no file", async () => {
  const folder = freshDir();
  const none = await cli(folder, "backup", join(folder, "a.backup"));
  expect([none.code, none.stderr]).toEqual([78, expect.stringContaining("no data of a broker")]);
  const socket = `unix:${join(folder, "none.sock")}`;
  const away = await cli(folder, "backup", join(folder, "a.backup"), "--redis-url", socket);
  expect([away.code, away.stderr]).toEqual([75, expect.stringContaining("ENOENT")]);
  expect(await readdir(folder)).toEqual([]);
});

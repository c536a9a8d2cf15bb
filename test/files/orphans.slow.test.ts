/** Contents that no file has, after a restore of an older backup: found and deleted, and nothing else. */
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import type { FileStore } from "../../src/engine/files/store.ts";
import { ORPHAN_AGE_MS, orphansIn } from "../../src/offline/orphans.ts";
import { keys } from "../../src/redis/keys.ts";
import { run } from "../cli/fake-host.ts";
import { freshDb, startBroker } from "../support/broker.ts";
import { fileCalls, tempFolder } from "../support/files.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { openStore, type S3Server, startS3Server } from "../support/s3-server.ts";

const [FIRST, SECOND] = [`upl_${"a".repeat(26)}`, `upl_${"b".repeat(26)}`];
const signal = new AbortController().signal;

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.stop());

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

const namesIn = async (store: FileStore): Promise<string[]> => {
  const names: string[] = [];
  for await (const { name } of store.contents()) names.push(name);
  return names.sort();
};

describe.each([
  ["a folder", async (): Promise<FileStore> => new DiskStore(await tempFolder())],
  ["a bucket", async (): Promise<FileStore> => openStore(server.place("orphans")).store],
])("in %s", (_, open) => {
  test("contents that nothing has are deleted, once they are old", async () => {
    const store = await open();
    const redis = { socket: inject("redisSocket"), db: await freshDb() };
    const files = { store, maxBytes: 1_000, principalBytes: 10_000 };
    const { url, gateway } = await startBroker({ redis, files });
    const calls = fileCalls(url);
    const look = (isDeleting: boolean, { later = ORPHAN_AGE_MS + 60_000, most = 10 } = {}) =>
      orphansIn(redis, store, { signal, isDeleting, most, now: Date.now() + later });
    const file = (await calls.upload("a file")).body;
    // Its upload is forgotten long before the file.
    for (const key of await gateway.broker.redis.keys(`${keys.files}:upload:*`))
      await gateway.broker.redis.del(key);
    const going = (await calls.begin(10)).body;
    await calls.patch(going.id, 0, "12345");
    const ended = (await calls.begin(10)).body;
    await calls.patch(ended.id, 0, "12345");
    await calls.call("DELETE", `/v1/uploads/${ended.id}`);
    expect((await look(true)).found).toEqual([]);

    await store.append(FIRST, 0, bytesOf("lost"));
    await store.append(SECOND, 0, bytesOf("lost, too"));
    expect((await look(true, { later: 0 })).found).toEqual([]);
    const { found, isMore } = await look(false);
    expect([found.map(({ name, size }) => [name, size]).sort(), isMore]).toEqual([
      [
        [FIRST, 4],
        [SECOND, 9],
      ],
      false,
    ]);
    expect(await namesIn(store)).toHaveLength(5);
    expect((await look(true, { most: 1 })).isMore).toBe(true);
    expect(await look(true)).toMatchObject({ found: [{}], isMore: false });
    expect(await namesIn(store)).toHaveLength(3);
    expect((await calls.call("GET", file.url)).text).toBe("a file");
    expect((await calls.patch(going.id, 5, "67890")).body.file.size).toBe(10);
  });
});

test("nothing is deleted by a Redis without all data of a broker", async () => {
  const store = new DiskStore(await tempFolder());
  await store.append(FIRST, 0, bytesOf("a file of another broker"));
  const redis = { socket: inject("redisSocket"), db: await freshDb() };
  const look = () =>
    orphansIn(redis, store, { signal, isDeleting: true, most: 10, now: Date.now() + 2 * ORPHAN_AGE_MS });
  await expect(look()).rejects.toMatchObject({ code: "no_data" });
  const { gateway } = await startBroker({ redis });
  await gateway.broker.redis.hset(keys.layout, "shards", "restoring");
  await expect(look()).rejects.toMatchObject({ code: "no_data" });
  expect(await namesIn(store)).toEqual([FIRST]);
});

test("the command lists and deletes them beside a running broker", async () => {
  const own = await startOwnRedis("everysec");
  await startBroker({ redis: own.target });
  const store = new DiskStore(await tempFolder());
  await store.append(FIRST, 0, bytesOf("young"));
  const argv = ["files", "orphans", "--data-dir", dirname(own.target.socket)];
  const done = await run(argv, { childEnv: { PATH: process.env.PATH, ERRAND_FILES: store.place } });
  expect(done).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining(`0 contents (0 bytes) that no file has, in ${store.place}`),
  });
  const off = await run(argv, { childEnv: { PATH: process.env.PATH, ERRAND_FILES: "off" } });
  expect(off).toMatchObject({ code: 78, stderr: expect.stringContaining("ERRAND_FILES says nowhere") });
});

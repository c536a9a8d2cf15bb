/** What both stores of files promise, and how the one in a bucket bears a server that fails. */
import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import type { ByteRange, FileStore } from "../../src/engine/files/store.ts";
import { OPERATOR } from "../support/broker.ts";
import { startCuttingProxy } from "../support/cutting-proxy.ts";
import { fileCalls, sha256, startFileBroker, tempFolder } from "../support/files.ts";
import { errand, freshDir } from "../support/program.ts";
import { openStore, type S3Server, startS3Server } from "../support/s3-server.ts";
import { until } from "../support/until.ts";

const MIB = 1024 * 1024;
const NAME = "upl_0123456789";

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.stop());

async function* chunksOf(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function* brokenAfter(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* chunksOf(bytes);
  throw new Error("the connection broke");
}

async function readAll(store: FileStore, range?: ByteRange): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await store.read(NAME, range)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

let count = 0;
const freshPlace = (port?: number) => server.place(`test-${count++}`, port);

describe.each([
  ["a folder", async () => new DiskStore(await tempFolder())],
  ["a bucket", async () => openStore(freshPlace()).store],
])("in %s", (_, open) => {
  test("a content arrives in pieces, is read in ranges, and goes", async () => {
    const store = await open();
    await store.prepare();
    const bytes = randomBytes(18 * MIB);
    const [first, second] = [9 * MIB + 7, 9 * MIB + 107];
    expect(await store.size(NAME)).toBe(0);
    await store.append(NAME, 0, chunksOf(bytes.subarray(0, first)));
    await store.append(NAME, first, chunksOf(bytes.subarray(first, second), 10));
    expect(await store.size(NAME)).toBe(second);
    await store.append(NAME, second, chunksOf(bytes.subarray(second), 3 * MIB));
    await store.seal(NAME);
    expect(await store.size(NAME)).toBe(bytes.length);
    expect((await readAll(store)).equals(bytes)).toBe(true);
    for (const [first, last] of [
      [0, 1],
      [8 * MIB - 5, 8 * MIB + 5],
      [7 * MIB, 17 * MIB],
      [bytes.length - 1, bytes.length - 1],
    ] as const) {
      const part = await readAll(store, { first, last });
      expect([first, part.length, part.equals(bytes.subarray(first, last + 1))]).toEqual([
        first,
        last - first + 1,
        true,
      ]);
    }
    await store.remove(NAME);
    await store.remove(NAME);
    expect(await store.size(NAME)).toBe(0);
  });

  test("its contents are listed with their sizes and times", async () => {
    const store = await open();
    await store.prepare();
    const list = async () => {
      const found = [];
      for await (const one of store.contents()) found.push(one);
      return found.sort((a, b) => (a.name < b.name ? -1 : 1));
    };
    expect(await list()).toEqual([]);
    const [first, second] = [`upl_${"a".repeat(26)}`, `upl_${"b".repeat(26)}`];
    const before = Date.now() - 1_000;
    await store.append(first, 0, chunksOf(randomBytes(100)));
    await store.append(first, 100, chunksOf(randomBytes(20)));
    await store.append(second, 0, chunksOf(randomBytes(7)));
    const found = await list();
    expect(found.map(({ name, size }) => [name, size])).toEqual([
      [first, 120],
      [second, 7],
    ]);
    for (const { changedAt } of found) {
      expect(changedAt).toBeGreaterThan(before);
      expect(changedAt).toBeLessThan(Date.now() + 1_000);
    }
  });

  test("what arrived before a break stays, and the rest follows", async () => {
    const store = await open();
    await store.prepare();
    const bytes = randomBytes(9 * MIB);
    const broken = store.append(NAME, 0, brokenAfter(bytes.subarray(0, 8 * MIB + 1000)));
    await expect(broken).rejects.toThrow("the connection broke");
    expect(await store.size(NAME)).toBe(8 * MIB + 1000);
    await store.append(NAME, 8 * MIB + 1000, chunksOf(bytes.subarray(8 * MIB + 1000)));
    expect(sha256(await readAll(store))).toBe(sha256(bytes));
  });
});

test("short requests leave few objects, and an aborted download ends without a word", async () => {
  const place = freshPlace();
  const { store, logged } = openStore(place);
  for (let at = 0; at < 100; at += 10) await store.append(NAME, at, chunksOf(new Uint8Array(10).fill(at)));
  expect(server.keys(place)).toHaveLength(1);
  expect([...(await readAll(store, { first: 9, last: 10 }))]).toEqual([0, 10]);
  await store.append(NAME, 100, chunksOf(randomBytes(20 * MIB)));
  const download = await store.read(NAME);
  const closed = new Promise((done) => download.once("close", done));
  download.once("data", () => download.destroy());
  await closed;
  await store.remove(NAME);
  expect([server.keys(place), logged]).toEqual([[], []]);
});

test("30 MiB pass with one piece in memory", async () => {
  setFlagsFromString("--expose-gc");
  const gc: () => void = runInNewContext("gc");
  const { store } = openStore(freshPlace());
  const block = randomBytes(65_536);
  const held = () => {
    gc();
    return process.memoryUsage().arrayBuffers;
  };
  // What other tests left goes first.
  for (let count = 0; count < 3; count += 1) {
    gc();
    await setImmediate();
  }
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  async function* source() {
    for (let at = 0; at < 480; at += 1) {
      if (at % 16 === 15) [least, most] = [Math.min(least, held()), Math.max(most, held())];
      yield block;
    }
  }
  await store.append(NAME, 0, source());
  expect(await store.size(NAME)).toBe(30 * MIB);
  expect(most - least).toBeGreaterThan(6 * MIB);
  expect(most - least).toBeLessThan(12 * MIB);
});

test("a connection that breaks in a call is no matter, in either direction", async () => {
  const proxy = await startCuttingProxy(server.port);
  const place = freshPlace(proxy.port);
  const { store, logged } = openStore(place);
  const bytes = randomBytes(10 * MIB);
  proxy.cut(2, 2 * MIB);
  await store.append(NAME, 0, chunksOf(bytes));
  expect([proxy.cuts(), await store.size(NAME)]).toEqual([2, bytes.length]);
  proxy.cut(2, 3 * MIB);
  expect((await readAll(store)).equals(bytes)).toBe(true);
  expect([proxy.cuts(), logged]).toEqual([4, []]);
});

test("a server that goes away half-way has a code, and the upload goes on when it is back", async () => {
  const proxy = await startCuttingProxy(server.port);
  const place = freshPlace(proxy.port);
  const { store, logged } = openStore(place);
  const bytes = randomBytes(17 * MIB);
  async function* source() {
    yield* chunksOf(bytes.subarray(0, 9 * MIB));
    proxy.cut(1_000, 0);
    yield* chunksOf(bytes.subarray(9 * MIB));
  }
  await expect(store.append(NAME, 0, source())).rejects.toMatchObject({ code: "storage_unavailable" });
  await expect(store.size(NAME)).rejects.toMatchObject({ code: "storage_unavailable" });
  expect(logged[0]).toMatchObject({ status: null });
  proxy.cut(0, 0);
  expect(await store.size(NAME)).toBe(8 * MIB);
  await store.append(NAME, 8 * MIB, chunksOf(bytes.subarray(8 * MIB)));
  expect(sha256(await readAll(store))).toBe(sha256(bytes));
});

test("a client learns that the bucket does not answer, and when to try again", async () => {
  const proxy = await startCuttingProxy(server.port);
  const { store } = openStore(freshPlace(proxy.port));
  const { url } = await startFileBroker({ wrap: () => store });
  proxy.cut(1_000, 0);
  const { status, headers, body } = await fileCalls(url).upload("abc");
  expect([status, headers.get("retry-after"), body.code, body.retryable]).toEqual([
    503,
    "5",
    "storage_unavailable",
    true,
  ]);
});

test("an upload that is given up while its bytes arrive leaves nothing", async () => {
  const place = freshPlace();
  const { store } = openStore(place);
  const { url, gateway } = await startFileBroker({ wrap: () => store });
  const files = fileCalls(url);
  const { body } = await files.begin(1_000);
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const streamed = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new Uint8Array(100));
      await gate;
      controller.enqueue(new Uint8Array(100));
      controller.close();
    },
  });
  const patch = files.call("PATCH", `/v1/uploads/${body.id}`, streamed, { "upload-offset": "0" });
  await until(async () => (await files.call("DELETE", `/v1/uploads/${body.id}`)).status === 204);
  await gateway.fileUpkeep.tick();
  open();
  expect((await patch).body.code).toBe("upload_not_found");
  expect(server.keys(place)).toEqual([]);
});

test("a wrong key or bucket ends the start with what to do, and without the secret", async () => {
  const place = freshPlace();
  const secretAccessKey = "not-the-secret";
  const wrong = openStore(place, { credentials: { accessKeyId: "S3RVER", secretAccessKey } }).store;
  await expect(wrong.prepare()).rejects.toThrow(
    "(403 SignatureDoesNotMatch): the secret of the key is wrong",
  );
  const unknown = openStore(place, { credentials: { accessKeyId: "AKIA", secretAccessKey } }).store;
  await expect(unknown.prepare()).rejects.toThrow("the key is unknown");
  await expect(openStore({ ...place, bucket: "another" }).store.prepare()).rejects.toThrow("no such bucket");
  const endpoint = encodeURIComponent(server.url);
  const run = errand(freshDir(), ["serve"], {
    ERRAND_PORT: "0",
    ERRAND_OPERATOR_TOKEN: OPERATOR,
    ERRAND_FILES: `s3://another?endpoint=${endpoint}`,
    AWS_ACCESS_KEY_ID: "S3RVER",
    AWS_SECRET_ACCESS_KEY: "S3RVER-secret",
  });
  expect(await run.ended()).toBe(78);
  expect(run.stderr()).toContain("errand: the bucket another at http://127.0.0.1:");
  expect(run.stdout() + run.stderr()).not.toContain("S3RVER-secret");
});

test("the broker starts without the bucket, says so, and stores files when it is there", async () => {
  const proxy = await startCuttingProxy(server.port);
  const { store, logged } = openStore(freshPlace(proxy.port));
  proxy.cut(1_000, 0);
  await store.prepare();
  expect(logged).toHaveLength(1);
  proxy.cut(0, 0);
  const { url } = await startFileBroker({ wrap: () => store });
  expect((await fileCalls(url).upload("abc")).status).toBe(201);
});

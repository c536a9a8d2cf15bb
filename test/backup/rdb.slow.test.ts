/** Reads real snapshots: every type of value that Redis stores, in each of its forms. */
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Crc64 } from "../../src/backup/crc64.ts";
import { type RdbEntry, readRdb } from "../../src/backup/rdb.ts";
import { RdbError } from "../../src/backup/rdb-strings.ts";
import { takeSnapshot } from "../../src/backup/snapshot.ts";
import { connectServer } from "../../src/redis/connect.ts";
import { type OwnRedis, startOwnRedis } from "../support/own-redis.ts";

const LATER = Date.now() + 3_600_000;
const many = (count: number, ...of: readonly ((n: number) => string)[]): string[] =>
  Array.from({ length: count }, (_, n) => of.map((make) => make(n))).flat();
const member = (n: number) => `member ${n}`;

async function fill(redis: Redis): Promise<void> {
  const set = (key: string, value: string) => redis.set(key, value);
  await set("text", "some text");
  for (const number of ["12", "-3000", "70000", "99999999999"]) await set(`number:${number}`, number);
  await set("12345", "a key that is a number");
  await set("compressed", "abcabc".repeat(5_000));
  await set(`compressed:${"key".repeat(100)}`, "1");
  await set("long", Buffer.alloc(300_000, "\u0000\u0001ÿ-xyz").toString("latin1"));
  await set("bytes", "\u0000\r\n$EOF:");
  await redis.set("expires", "soon", "PXAT", LATER);
  for (const [size, count] of [
    ["small", 5],
    ["large", 3_000],
  ] as const) {
    await redis.rpush(`list:${size}`, ...many(count, member));
    await redis.sadd(`set:${size}`, ...many(count, member));
    await redis.sadd(`intset:${size}`, ...many(Math.min(count, 500), String));
    await redis.zadd(`zset:${size}`, ...many(count, (n) => String(n / 3), member));
    await redis.hset(`hash:${size}`, ...many(count, member, String));
    for (let n = 0; n < count / 10; n += 1) await redis.xadd(`stream:${size}`, "*", "field", member(n));
  }
  await redis.rpush("list:wide", "x".repeat(20_000), "short");
  await redis.zadd("zset:infinite", "-inf", "a", "+inf", "b", "0.1", "x".repeat(100));
  await redis.xgroup("CREATE", "stream:large", "group", "0");
  await redis.xgroup("CREATE", "stream:large", "idle", "$");
  await redis.xreadgroup("GROUP", "group", "one", "COUNT", 40, "STREAMS", "stream:large", ">");
  await redis.xreadgroup("GROUP", "group", "two", "COUNT", 5, "STREAMS", "stream:large", ">");
  await redis.xtrim("stream:large", "MAXLEN", 100);
}

/** The bytes of a snapshot, with what follows its end. */
async function snapshotOf(own: OwnRedis): Promise<Buffer> {
  const passed: Uint8Array[] = [];
  const redis = connectServer(own.target, "commands");
  async function* recorded() {
    for await (const chunk of takeSnapshot(redis, new AbortController().signal)) {
      passed.push(Buffer.from(chunk));
      yield chunk;
    }
  }
  await entriesIn(recorded());
  return Buffer.concat(passed);
}

async function* inPieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const namesIn = (entries: readonly RdbEntry[], of: number): string[] =>
  entries.filter(({ database }) => database === of).map(({ key }) => key.toString());

async function entriesIn(chunks: AsyncIterable<Uint8Array>): Promise<RdbEntry[]> {
  const found: RdbEntry[] = [];
  for await (const entry of (await readRdb(chunks)).entries) found.push(entry);
  return found;
}

/** Where the mark of the end is, before the checksum: bytes of the checksum may look like it. */
function endOf(rdb: Buffer): number {
  let at = rdb.lastIndexOf(0xff);
  const isEnd = () =>
    new Crc64()
      .update(rdb.subarray(0, at + 1))
      .digest()
      .equals(rdb.subarray(at + 1, at + 9));
  while (at >= 0 && !isEnd()) at = rdb.lastIndexOf(0xff, at - 1);
  return at;
}

test("a snapshot has every value as DUMP has it; one that was cut or changed is refused", async () => {
  const own = await startOwnRedis("everysec");
  await fill(own.redis);
  const other = new Redis({ path: own.target.socket, password: own.target.password, db: 3 });
  onTestFinished(() => other.disconnect());
  await other.set("elsewhere", "1");
  const rdb = await snapshotOf(own);
  const names = await own.redis.keys("*");
  expect(names.length).toBeGreaterThan(20);
  for (const size of [1_000_000, 4_099, 7]) {
    const found = await entriesIn(inPieces(rdb, size));
    expect(namesIn(found, 3)).toEqual(["elsewhere"]);
    expect(namesIn(found, 0).sort()).toEqual(names.sort());
    for (const { database, key, value, expiresAtMs } of found) {
      if (database !== 0) continue;
      const name = key.toString();
      // DUMP adds a version and a checksum.
      const dump = await own.redis.dumpBuffer(name);
      expect(dump?.subarray(0, -10).equals(value), name.slice(0, 50)).toBe(true);
      expect(expiresAtMs).toBe(name === "expires" ? LATER : null);
    }
  }
  // Redis writes a file first, and sends its size instead of a mark at its end.
  await own.redis.config("SET", "repl-diskless-sync", "no");
  const fromDisk = await entriesIn(inPieces(await snapshotOf(own), 65_536));
  expect(namesIn(fromDisk, 0).sort()).toEqual(names);

  const end = endOf(rdb);
  expect(end).toBeGreaterThan(0);
  for (const length of [0, 5, 9, 500, Math.floor(rdb.length / 2), end, end + 3]) {
    const cut = entriesIn(inPieces(rdb.subarray(0, length), 65_536));
    await expect(cut, `${length} bytes`).rejects.toThrow(RdbError);
  }
  rdb.write("S", rdb.indexOf("some text"));
  await expect(entriesIn(inPieces(rdb, 65_536))).rejects.toThrow("the checksum of the snapshot is wrong");
});

test("a type that is not known is refused, with the key's name", async () => {
  const bytes = Buffer.concat([Buffer.from("REDIS0011"), Buffer.of(99, 3), Buffer.from("new")]);
  await expect(entriesIn(inPieces(bytes, 100))).rejects.toThrow(/the key new has a type \(99\)/);
});

test("the checksum is that of Redis", () => {
  const crc = new Crc64().update(Buffer.from("12345")).update(Buffer.from("6789"));
  expect(crc.digest().reverse().toString("hex")).toBe("e9c6d914c4b8d9ca");
});

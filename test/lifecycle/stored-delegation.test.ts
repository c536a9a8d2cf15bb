import { createConnection, createServer } from "node:net";
import { Redis } from "ioredis";
import { expect, inject, onTestFinished, test } from "vitest";
import type { MoveName } from "../../src/lifecycle/states.ts";
import { readRecord } from "../../src/lifecycle/stored-delegation.ts";
import { databaseOf } from "../../src/redis/connect.ts";
import { openLifecycle } from "../support/lifecycle.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { fieldsOf } from "../support/record.ts";

/** A connection to Redis that delivers a few bytes at a time, so that other work runs in between. */
async function slowRedis(db: number, between: () => Promise<unknown>): Promise<Redis> {
  const server = createServer((near) => {
    const far = createConnection({ path: inject("redisSocket") });
    far.pipe(near);
    let brought = Promise.resolve();
    near.on("data", (bytes) => {
      for (let at = 0; at < bytes.length; at += 50) {
        brought = brought.then(async () => {
          far.write(bytes.subarray(at, at + 50));
          await between();
        });
      }
    });
    near.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const redis = new Redis({ port: address.port, db });
  onTestFinished(() => {
    redis.disconnect();
    server.close();
  });
  return redis;
}

onOneRedis("it delays what the run's one Redis says")(
  "a record is read as of one moment, whatever moves happen during the read",
  async () => {
    const { redis, shards, clock, writer, inState } = await openLifecycle();
    const id = await inState("working");
    const before = await readRecord(redis, shards, id);
    if (!before) throw new Error("no record");
    const artifact = { artifactId: "a", parts: [{ text: "x" }] };
    const chunk = async () => {
      clock.offset_ms += 1_000;
      const params = { fence: before.get("fence") };
      await writer.move({ move: "artifact", id, params, artifacts: [{ artifact, append: true }] });
    };
    const slow = await slowRedis(databaseOf(redis), chunk);
    for (let round = 0; round < 5; round += 1) {
      const record = await readRecord(slow, shards, id);
      const [kept] = JSON.parse(record?.json ?? "{}").artifacts;
      expect(record?.get("version")).toBe(before.get("version") + kept.parts.length);
    }
  },
);

const OF_A_LEASE = ["nonce", "lease_expires_at", "confirm_by"];
const OF_A_QUESTION = ["interrupt", "interrupt_id", "interrupt_expires_at"];
const OF_A_REPLY = ["closed_by", "reply_hash"];

test.each<[string, readonly MoveName[], readonly string[]]>([
  ["it was released", ["lease", "release"], OF_A_LEASE],
  ["it asks a question", ["lease", "interrupt"], OF_A_LEASE],
  ["it is finished", ["lease", "complete"], OF_A_LEASE],
  ["it was answered", ["lease", "interrupt", "answer"], OF_A_QUESTION],
  ["it was canceled with an open question", ["lease", "interrupt", "cancel"], OF_A_QUESTION],
  ["another worker leased it", ["lease", "interrupt", "answer", "lease"], OF_A_REPLY],
])("a record keeps no field of an earlier state when %s", async (_, moves, gone) => {
  const { redis, clock, move, inState } = await openLifecycle();
  const id = await inState("submitted");
  for (const name of moves) {
    clock.offset_ms += 1_000;
    const params = name === "lease" ? { confirm_ms: 1_000 } : name === "interrupt" ? { reply_hash: "h" } : {};
    expect(await move(name, id, params)).toMatchObject({ kind: "ok" });
  }
  const stored = await fieldsOf(redis, `{errand:0}:d:${id}`);
  expect(gone.map((name) => stored[name] ?? "")).toEqual(gone.map(() => ""));
});

import { expect, test } from "vitest";
import { DiskWatch } from "../src/disk-watch.ts";
import { readDiskSpace } from "../src/redis/disk-space.ts";
import { lastWordsOf } from "../src/redis/embedded-log.ts";
import { DISK_LOW_BYTES } from "../src/schema/status.ts";
import { createLog } from "../src/telemetry/log.ts";

test("a disk that gets full is logged once, and again when it has space", async () => {
  const lines: string[] = [];
  const spaces = [DISK_LOW_BYTES, DISK_LOW_BYTES - 1, 0, null, 5, DISK_LOW_BYTES, DISK_LOW_BYTES - 1];
  const watch = new DiskWatch(
    "/data",
    createLog("info", (line) => lines.push(line)),
    async () => {
      const free_bytes = spaces.shift() ?? null;
      return free_bytes === null ? null : { free_bytes, total_bytes: 2 ** 40 };
    },
  );
  while (spaces.length > 0) await watch.check();
  const logged = lines.map((line) => JSON.parse(line));
  expect(logged.map(({ msg, free_bytes }) => [msg.split(";")[0], free_bytes])).toEqual([
    ["the disk of the data directory is nearly full", DISK_LOW_BYTES - 1],
    ["the disk of the data directory has space again", DISK_LOW_BYTES],
    ["the disk of the data directory is nearly full", DISK_LOW_BYTES - 1],
  ]);
  expect(await readDiskSpace("/")).toMatchObject({ free_bytes: expect.any(Number) });
  expect(await readDiskSpace("/nonexistent")).toBeNull();
});

test("Redis' last words are bounded, escaped, and without the password", () => {
  const head = "4711:M 25 Nov 2026 12:00:00.123 #";
  const full =
    "Can't recover from AOF write error when the AOF fsync policy is 'always': No space left on device";
  expect(
    lastWordsOf(`${head} first\n${head} ${full}\n${head} Exiting\u001b[31m ... s3cret\n`, "s3cret"),
  ).toBe(`first / ${full} / Exiting [31m ... …`);
  expect(lastWordsOf("", "s3cret")).toBe("");
  const long = lastWordsOf(`${"x\n".repeat(10)}${"y".repeat(100_000)}`, "s3cret");
  expect(long).toHaveLength(500);
});

import { expect, test } from "vitest";
import type { Readiness } from "../../src/redis/connections.ts";
import { readDiskSpace, withDiskReason } from "../../src/redis/disk-space.ts";
import { lastWordsOf } from "../../src/redis/embedded/log.ts";
import { DISK_LOW_BYTES } from "../../src/schema/status.ts";
import { DiskWatch } from "../../src/serve/disk-watch.ts";
import { createLog } from "../../src/telemetry/log.ts";

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

test("a Redis that is away on a full disk is reported with the disk", async () => {
  const away = { status: "not_ready", reason: "connect ECONNREFUSED" } as const;
  const told = (found: Readiness, free_bytes: number | null, folder: string | null = "/data") =>
    withDiskReason(found, folder, async () =>
      free_bytes === null ? null : { free_bytes, total_bytes: 2 ** 40 },
    );
  const full = "the disk of the data directory is nearly full";
  expect(await told(away, 0)).toEqual({ ...away, reason: `connect ECONNREFUSED; ${full}` });
  expect(await told({ ...away, status: "degraded" }, DISK_LOW_BYTES - 1)).toMatchObject({
    status: "degraded",
    reason: expect.stringContaining(full),
  });
  for (const [found, free, folder] of [
    [away, DISK_LOW_BYTES, "/data"],
    [away, null, "/data"],
    [away, 0, null],
    [{ status: "ready" }, 0, "/data"],
  ] as const) {
    expect(await told(found, free, folder)).toEqual(found);
  }
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

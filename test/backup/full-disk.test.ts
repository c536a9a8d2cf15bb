/** A backup that does not fit on its disk. A limit on the size of files acts as a full disk does: the last write is short. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir, MAIN } from "../support/program.ts";

/** Runs a backup whose file may have 100 blocks of 512 or 1024 bytes. */
const limited = (dataDir: string, file: string) =>
  new Promise<{ code: unknown; stderr: string }>((resolve) => {
    const backup = [process.execPath, MAIN, "backup", file, "--force", "--json", "--data-dir", dataDir];
    const args = ["-c", 'ulimit -f 100; exec "$@"', "sh", ...backup];
    execFile("sh", args, { env: { PATH: process.env.PATH } }, (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    );
  });

test("a backup that the disk has no room for is refused, and the one before it stays", async () => {
  const own = await startOwnRedis("everysec");
  await own.redis.set("{errand}:large", randomBytes(300_000));
  const file = join(freshDir(), "errand.backup");
  await writeFile(file, "the last backup");
  const { code, stderr } = await limited(dirname(own.target.socket), file);
  expect([code, JSON.parse(stderr)]).toMatchObject([
    78,
    { code: "file_error", detail: expect.stringContaining("EFBIG") },
  ]);
  expect(await readFile(file, "utf8")).toBe("the last backup");
  expect(await readdir(dirname(file))).toEqual(["errand.backup"]);
});

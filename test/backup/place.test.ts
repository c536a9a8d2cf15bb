/** Which Redis a backup or a restore uses, when the options and the environment name several. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../cli/fake-host.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";

/** The CLI in an environment whose ERRAND_REDIS_URL is a Redis that does not respond. */
const cli = (dataDir: string, ...argv: string[]) => {
  const { PATH, ERRAND_REDIS_BIN } = process.env;
  const url = `unix:${join(freshDir(), "production.sock")}`;
  const childEnv = { PATH, ERRAND_REDIS_URL: url, ...(ERRAND_REDIS_BIN && { ERRAND_REDIS_BIN }) };
  return run(argv, { env: { dataDir }, childEnv });
};

test("--data-dir wins over ERRAND_REDIS_URL, which wins over a directory that was found", async () => {
  const own = await startOwnRedis("everysec");
  const dataDir = dirname(own.target.socket);
  await own.redis.set("{errand}:some", "1");
  const file = join(freshDir(), "errand.backup");
  expect(await cli(dataDir, "backup", file)).toMatchObject({
    code: 75,
    stderr: expect.stringContaining("production.sock"),
  });
  expect(await cli(dataDir, "backup", file, "--data-dir", dataDir)).toMatchObject({ code: 0 });
  const trial = join(freshDir(), "trial");
  const restored = await cli("/nonexistent", "restore", file, "--data-dir", trial, "--json");
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  expect(JSON.parse(restored.stdout)).toMatchObject({ redis: trial, keys: 1 });
});

test("a directory whose gateway.json names another machine can be copied and changed, because no broker is called", async () => {
  const dataDir = join(freshDir(), ".errand");
  await mkdir(dataDir);
  await writeFile(join(dataDir, "gateway.json"), JSON.stringify({ url: "http://192.0.2.1:4180", pid: 1 }));
  for (const command of [
    ["backup", join(freshDir(), "errand.backup")],
    ["migrate", "--shards", "2"],
  ])
    expect(await cli(dataDir, ...command)).toMatchObject({
      code: 75,
      stderr: expect.stringContaining("production.sock"),
    });
  expect(await cli(dataDir, "list")).toMatchObject({
    code: 78,
    stderr: expect.stringContaining("192.0.2.1"),
  });
});

test("a backup takes the place of no folder and no device, also by force", async () => {
  const folder = freshDir();
  for (const path of [folder, "/dev/null"]) {
    const { code, stderr } = await cli(folder, "backup", path, "--force");
    expect([code, stderr]).toEqual([78, expect.stringContaining("is not a regular file")]);
  }
});

test("a place that is ambiguous or empty is refused", async () => {
  const folder = freshDir();
  for (const command of ["backup", "restore"]) {
    const both = await cli(folder, command, "a.backup", "--data-dir", folder, "--redis-url", "redis://h");
    expect(both).toMatchObject({ code: 64, stderr: expect.stringContaining("--redis-url") });
    const empty = await cli(folder, command, "a.backup", "--data-dir", "");
    expect(empty).toMatchObject({ code: 64, stderr: expect.stringContaining("empty") });
  }
  expect(await readdir(folder)).toEqual([]);
});

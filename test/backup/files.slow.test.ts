/** Backups name stored files without their contents: the commands say where those are, and how many a restore misses. */
import { cp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { DiskStore } from "../../src/engine/files/disk-store.ts";
import { run } from "../cli/fake-host.ts";
import { startBroker } from "../support/broker.ts";
import { fileCalls } from "../support/files.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";

vi.setConfig({ testTimeout: 60_000 });

const { PATH, ERRAND_REDIS_BIN } = process.env;
const cli = (argv: string[], more: Record<string, string> = {}) =>
  run(argv, { childEnv: { PATH, ...(ERRAND_REDIS_BIN && { ERRAND_REDIS_BIN }), ...more } });

/** A broker with three files; closed, and its backup. */
async function world() {
  const own = await startOwnRedis("everysec");
  const dataDir = dirname(own.target.socket);
  const folder = join(dataDir, "files");
  const files = { store: new DiskStore(folder), maxBytes: 1_000, principalBytes: 10_000 };
  const { url, gateway } = await startBroker({ redis: own.target, files });
  const calls = fileCalls(url);
  for (const content of ["one", "two", ""]) expect((await calls.upload(content)).status).toBe(201);
  const file = join(freshDir(), "errand.backup");
  const made = await cli(["backup", file, "--data-dir", dataDir]);
  const json = await cli(["backup", file, "--force", "--json", "--data-dir", dataDir]);
  await gateway.close({ idleGrace: false });
  await own.embedded.stop();
  return { dataDir, folder, file, made, json };
}

test("a backup says where the contents are, and a restore how many are missing", async () => {
  const { folder, file, made, json } = await world();
  expect(made.stderr).toContain(
    `It names 3 stored files, but does not have their contents: copy ${folder} now, after the backup.`,
  );
  expect(JSON.parse(json.stdout).files).toEqual({ count: 3, place: folder, missing: null });
  const checked = await cli(["restore", file, "--check"]);
  expect(checked.stderr).toContain("It names 3 stored files");

  const fresh = join(freshDir(), "restored");
  const without = await cli(["restore", file, "--data-dir", fresh]);
  expect([without.code, without.stderr]).toEqual([
    0,
    expect.stringContaining(
      `2 of 3 stored files have no contents in ${join(fresh, "files")}. Copy your copy of them there. Until then reads answer file_not_found`,
    ),
  ]);
  await cp(folder, join(fresh, "files"), { recursive: true });
  const whole = await cli(["restore", file, "--force", "--data-dir", fresh]);
  expect(whole.stderr).toContain(`The contents of all 3 stored files are in ${join(fresh, "files")}.`);

  await rm(join(fresh, "files"), { recursive: true });
  const off = await cli(["restore", file, "--force", "--json", "--data-dir", fresh], { ERRAND_FILES: "off" });
  expect(JSON.parse(off.stdout).files).toEqual({ count: 3, place: null, missing: 3 });
});

test("a bucket that does not answer is named", async () => {
  const { file } = await world();
  const fresh = join(freshDir(), "restored");
  const done = await cli(["restore", file, "--data-dir", fresh], {
    ERRAND_FILES: "s3://errand-files/a?endpoint=http://127.0.0.1:9",
    AWS_ACCESS_KEY_ID: "k",
    AWS_SECRET_ACCESS_KEY: "s",
  });
  expect([done.code, done.stderr]).toEqual([
    0,
    expect.stringContaining("s3://errand-files/a/ does not answer now"),
  ]);
});

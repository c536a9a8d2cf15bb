/** Files with a right checksum that somebody made: to change other data in a shared Redis, or to fail half-way. */
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BackupWriter } from "../../src/backup/backup-file.ts";
import { run } from "../cli/fake-host.ts";
import { freshDir } from "../support/program.ts";

/** Restores a file with these keys, and expects that it is refused before anything is changed. */
async function refused(keys: readonly [string, number | null][], why: string): Promise<void> {
  const path = join(freshDir(), "made.backup");
  const writer = new BackupWriter(await open(path, "wx"));
  const value = Buffer.from("\u0000\u0001x", "latin1");
  for (const [key, expiresAtMs] of keys) await writer.add([{ key: Buffer.from(key), value, expiresAtMs }]);
  const header = { errand_version: "1", created_at: "", server: "", rdb_version: 1, database: 0 };
  await writer.finish({ ...header, keys: keys.length, delegations: 0 });
  const dataDir = join(freshDir(), "never");
  for (const more of [["--check"], ["--data-dir", dataDir]]) {
    const { code, stderr } = await run(["restore", path, ...more, "--json"]);
    expect([code, JSON.parse(stderr)]).toMatchObject([
      64,
      { code: "backup_damaged", detail: expect.stringContaining(why) },
    ]);
  }
  await expect(stat(dataDir)).rejects.toThrow("ENOENT");
}

test("a file with a key that is not Errand's is refused before anything is changed", () =>
  refused(
    [
      ["{errand}:tokens", null],
      ["sessions:of:another", null],
    ],
    "not Errand's",
  ));

// Redis would refuse it after the data that was there is deleted.
test.each([Number.NaN, Number.POSITIVE_INFINITY, 0.5])("so is a file with a key that expires at %d", (at) =>
  refused([["{errand}:tokens", at]], "expires"),
);

/** A file with a right checksum that somebody made to change other data in a shared Redis. */
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BackupWriter } from "../../src/backup/backup-file.ts";
import { run } from "../cli/fake-host.ts";
import { freshDir } from "../support/program.ts";

test("a file with a key that is not Errand's is refused before anything is changed", async () => {
  const path = join(freshDir(), "made.backup");
  const writer = new BackupWriter(await open(path, "wx"));
  const value = Buffer.from("\u0000\u0001x", "latin1");
  for (const key of ["{errand}:tokens", "sessions:of:another"])
    await writer.add([{ key: Buffer.from(key), value, expiresAtMs: null }]);
  const header = { errand_version: "1", created_at: "", server: "", rdb_version: 1, database: 0 };
  await writer.finish({ ...header, keys: 2, delegations: 0 });
  const dataDir = join(freshDir(), "never");
  for (const more of [["--check"], ["--data-dir", dataDir]]) {
    const { code, stderr } = await run(["restore", path, ...more, "--json"]);
    expect([code, JSON.parse(stderr)]).toMatchObject([
      64,
      { code: "backup_damaged", detail: expect.stringContaining("not Errand's") },
    ]);
  }
  await expect(stat(dataDir)).rejects.toThrow("ENOENT");
});

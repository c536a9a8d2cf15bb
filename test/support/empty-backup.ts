/** A backup without keys, as it is after its file was opened. */
import type { OpenBackup } from "../../src/backup/backup-file.ts";

export const emptyBackup: OpenBackup = {
  header: {
    ...{ errand_backup: 1, errand_version: "1", created_at: "2026-01-01T00:00:00.000Z", server: "Redis 7" },
    // Every server reads it.
    rdb_version: 6,
    ...{ database: 0, keys: 0, delegations: 0, bytes: 0, sha256: "" },
  },
  layout: null,
  entries: async function* () {},
  close: async () => undefined,
};

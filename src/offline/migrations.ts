/** `errand migrate`: opens the Redis that a stopped broker has, and the one that it gets. */
import { type MigrateOptions, migrate } from "../backup/migration/migrate.ts";
import type { Migrations } from "../cli/host.ts";
import { type Env, explained, newDataDir, openStopped, openToWrite } from "./redis.ts";

const sideOf = ({ target }: { readonly target: MigrateOptions["source"]["target"] }) => ({
  target,
  isExclusive: target.socket !== undefined,
});

export const migrations = (env: Env): Migrations => ({
  migrate: ({ to, shards, force, dryRun, signal, onProgress, ...place }) =>
    explained("", async () => {
      const source = await openStopped(env, place);
      try {
        // Opening it would create it.
        const created = dryRun && to !== null ? await newDataDir(env, to) : null;
        const target = to === null || created !== null ? null : await openToWrite(env, to);
        try {
          const done = await migrate({
            ...{ shards, force, dryRun, signal, onProgress },
            source: sideOf(source),
            target: created === null ? target && sideOf(target) : "new",
          });
          const where = target?.where ?? created ?? source.where;
          return { source: source.where, target: where, dry_run: dryRun, ...done };
        } finally {
          await target?.close();
        }
      } finally {
        await source.close();
      }
    }),
});

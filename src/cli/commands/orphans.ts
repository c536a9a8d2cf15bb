/** `errand files orphans`: finds the contents in the store of files that nothing has, and deletes them. */
import type { Command } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { findDataDir } from "../discover.ts";
import type { Place } from "../host.ts";
import { addPlaceOptions, wholeBetween } from "../input/arguments.ts";
import { note, oneLine, print, printJson } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { interruptible } from "../signals.ts";

interface OrphanOptions extends GlobalOptions, Place {
  readonly delete?: boolean;
  readonly max: number;
}

const ABOUT = `
After a restore, the contents of files that are newer than the backup stay in the folder or the bucket, and nothing deletes
them. This command finds contents that no file and no upload has and that have not changed for two days, and with --delete
deletes them. It reads Redis and ERRAND_FILES directly, so it runs where the broker runs, which may go on.

Two brokers must not share a place: each would take the other's contents for its own orphans.`;

export function addOrphans(files: Command, { host }: Cli): void {
  const orphans = files
    .command("orphans")
    .description("find contents in the store that no file has, and delete them (for the operator)")
    .option("--delete", "delete them; otherwise they are only listed")
    .option("--max <n>", "at most so many in one run (default 1000)", wholeBetween(1, 100_000), 1_000);
  addPlaceOptions(
    orphans,
    "the broker's data directory (default: ERRAND_DATA_DIR, then .errand, also in a parent directory)",
    "the broker's external Redis, if it uses one (default: ERRAND_REDIS_URL)",
  )
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand files orphans", "errand files orphans --delete --max 10000"))
    .action(async (_options: unknown, command: Command) => {
      const { delete: isDeleting = false, max, ...options } = command.optsWithGlobals<OrphanOptions>();
      const { json = false, dataDir, redisUrl } = options;
      const isGiven = dataDir !== undefined || redisUrl !== undefined;
      const foundDataDir = isGiven ? undefined : await findDataDir(host.env.dataDir);
      const { orphans } = await host.backups();
      const { place, found, more } = await interruptible((signal) =>
        orphans({ dataDir, foundDataDir, redisUrl, most: max, isDeleting, signal }),
      );
      for (const { name, size, changed_at } of found) {
        if (json) await printJson(host, { name, size, changed_at, deleted: isDeleting });
        else if (!isDeleting) await print(host, `${name}  ${sizeText(size)}  ${changed_at}`);
      }
      if (json) return;
      const bytes = found.reduce((sum, { size }) => sum + size, 0);
      const count = `${found.length} content${found.length === 1 ? "" : "s"} (${sizeText(bytes)})`;
      const done = isDeleting ? `deleted ${count} that no file has` : `${count} that no file has`;
      await note(host, `${done}, in ${oneLine(place)}.`);
      if (more) await note(host, "there may be more: run it again.");
      if (!isDeleting && found.length > 0) await note(host, "--delete deletes them.");
    });
}

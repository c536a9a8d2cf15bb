/** `errand backup`: copies all data of a broker into a file, also while the broker runs. */
import type { Command } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { findDataDir } from "../discover.ts";
import type { Place } from "../host.ts";
import { addPlaceOptions } from "../input/arguments.ts";
import { note, print, printJson } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { backupFilesText } from "../show/stored-files.ts";
import { contentText, progressNotes } from "../show/transfer.ts";
import { interruptible } from "../signals.ts";

interface BackupOptions extends GlobalOptions, Place {
  readonly force?: boolean;
}

const ABOUT = `
The backup is what the broker had stored at one instant: whatever was acknowledged before the command began is in it.
The broker continues meanwhile. The file is complete when it has its name; it contains tasks, replies and secrets, so
only you can read it. It does not contain the operator's token (the file operator-token in the data directory), and of
stored files only the names: copy the folder or the bucket of ERRAND_FILES after the backup. The command says where they
are, with --json as "files".

It reads Redis directly, so it runs where the broker runs, or with the broker's ERRAND_REDIS_URL.`;

export function addBackup(program: Command, { host }: Cli): void {
  const backup = program
    .command("backup")
    .description("copy all data of a broker into a file, also while it runs")
    .argument("<file>", "the file to create")
    .option("--force", "replace the file if it exists");
  addPlaceOptions(
    backup,
    "the broker's data directory (default: ERRAND_DATA_DIR, then .errand, also in a parent directory)",
    "the broker's external Redis, if it uses one (default: ERRAND_REDIS_URL)",
  )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples("errand backup errand-$(date +%F).backup", "errand backup /srv/errand.backup --force --json"),
    )
    .action(async (path: string, _options: unknown, command: Command) => {
      const { force = false, json = false, ...place } = command.optsWithGlobals<BackupOptions>();
      const { dataDir, redisUrl } = place;
      const isGiven = dataDir !== undefined || redisUrl !== undefined;
      const foundDataDir = isGiven ? undefined : await findDataDir(host.env.dataDir);
      const say = progressNotes(host, json);
      const { backUp } = await host.backups();
      const made = await interruptible((signal) =>
        backUp({
          ...{ path, force, dataDir, foundDataDir, redisUrl, signal },
          onProgress: (keys, bytes) => say(() => `${keys} keys, ${sizeText(bytes)} so far`),
        }),
      );
      if (json) return printJson(host, made);
      await print(host, `${path}: ${contentText(made)}`);
      const files = backupFilesText(made.files);
      if (files !== null) await note(host, files);
      await note(host, `sha256 ${made.sha256}; 'errand restore --check ${path}' checks the file.`);
    });
}

/** `errand restore`: brings the data of a backup back, while the broker is stopped. */
import type { Command } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { Interrupted } from "../failure.ts";
import type { Place } from "../host.ts";
import { addPlaceOptions } from "../input/arguments.ts";
import { note, oneLine, print, printJson } from "../show/output.ts";
import { checkedFilesText, restoredFilesText } from "../show/stored-files.ts";
import { localTime } from "../show/time.ts";
import { contentText, progressNotes, startCommand } from "../show/transfer.ts";
import { interruptible } from "../signals.ts";

interface RestoreOptions extends GlobalOptions, Place {
  readonly force?: boolean;
  readonly check?: boolean;
}

const ABOUT = `
The broker must be stopped. The whole file is checked before anything is changed. A restore over existing data is
refused; --force deletes that data (in a shared Redis, only Errand's keys). No broker starts on data whose restore has
not finished.

Everything later than the backup is lost: work that ended since then is done again, and tokens that were revoked since
then are valid again. docs/operations.md says what to do about it.

The contents of stored files are not in a backup. Copy yours to the place of ERRAND_FILES before you restore: the command
says how many are missing there, with --json as "files".`;

const STOPPED =
  "the restore was stopped. If it had begun to write, no broker starts on this data until you run it again.";

export function addRestore(program: Command, { host }: Cli): void {
  const restoreCommand = program
    .command("restore")
    .description("restore a backup into a stopped broker")
    .argument("<file>", "the file that 'errand backup' created")
    .option("--force", "delete the data that is there")
    .option("--check", "only check that the file is complete and unchanged");
  addPlaceOptions(
    restoreCommand,
    "the data directory to restore into (default: ERRAND_DATA_DIR, then .errand)",
    "the Redis to restore into (default: ERRAND_REDIS_URL, then the data directory)",
  )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand restore errand-2026-01-31.backup",
        "errand restore errand-2026-01-31.backup --check",
        "errand restore errand-2026-01-31.backup --data-dir /tmp/trial",
      ),
    )
    .action(async (path: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RestoreOptions>();
      const { force = false, check = false, json = false, dataDir, redisUrl } = options;
      const say = progressNotes(host, json);
      const { restore } = await host.backups();
      const done = await interruptible((signal) =>
        restore({
          ...{ path, force, check, dataDir, redisUrl, signal },
          onProgress: (keys, of) => say(() => `${keys} of ${of} keys restored`),
        }),
      ).catch(async (error: unknown) => {
        if (error instanceof Interrupted && !check) await note(host, STOPPED);
        throw error;
      });
      if (json) return printJson(host, done);
      const sayFiles = async (text: string | null) => (text === null ? undefined : note(host, text));
      const { created_at, errand_version: version, redis } = done;
      if (redis === null) {
        await print(host, `${path}: complete and unchanged; ${contentText(done)}`);
        return sayFiles(checkedFilesText(done.files));
      }
      await print(host, `restored ${contentText(done)} into ${redis}`);
      // Cleaned, because an altered file may have a matching checksum.
      const origin = oneLine(`the backup is of ${localTime(created_at)}, made by errand ${version}`);
      await sayFiles(restoredFilesText(done.files));
      await note(host, `${origin}. Start the broker now: ${startCommand(options)}`);
    });
}

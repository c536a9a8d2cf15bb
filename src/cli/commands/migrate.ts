/** `errand migrate`: moves a stopped broker's data to another Redis, to more shards, or both. */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { findDataDir } from "../discover.ts";
import { Interrupted, usageError } from "../failure.ts";
import type { CliHost, MigrationSummary, Place } from "../host.ts";
import { addPlaceOptions, notEmpty, wholeBetween } from "../input/arguments.ts";
import { secretFromStdin } from "../input/server-credentials.ts";
import { note, print, printJson } from "../show/output.ts";
import { countText, progressNotes, startCommand } from "../show/transfer.ts";
import { interruptible } from "../signals.ts";

interface MigrateOptions extends GlobalOptions, Place {
  readonly to?: string;
  readonly toDataDir?: string;
  readonly shards?: number;
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

const ABOUT = `
Stop the broker on all machines first; it stays stopped for as long as the command runs. --to and --to-data-dir copy all
data and only read the source: to go back, start the broker on the source again. Ids, tokens, leases, idempotency keys
and cursors stay valid. The copy is compared with the source before a broker can start on it.

--shards raises the number of shards, so that the masters of a Cluster share the work. Each agent without unfinished
work moves to its new shard. An agent with unfinished work stays; run the command again when its work is finished.
Delegations stay in their shard. Without --to or --to-data-dir, this changes the data in place: back it up first.

--dry-run writes nothing. Other users of this machine can read command lines: pass a URL with a password in
ERRAND_REDIS_URL, or on stdin (--to -). docs/growing.md has the whole procedure.`;

const STOPPED =
  "the migration was stopped. If it has begun to write, no broker starts on that data until you run the command again.";

/** At most this many agents are named. */
const NAMED = 10;

function namesText(names: readonly string[]): string {
  const rest = names.length - NAMED;
  return `${names.slice(0, NAMED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

/** One line for each change that was made, or that a run without --dry-run would make. */
function linesOf(
  { source, target, shards, moved, stay, dry_run, ...counts }: MigrationSummary,
  isCopy: boolean,
): string[] {
  const would = dry_run ? "would be " : "";
  const lines: string[] = [];
  if (isCopy) {
    lines.push(`${would}copied and compared: ${countText(counts)}, from ${source} to ${target}`);
  }
  if (shards.from !== shards.to) lines.push(`${would}raised from ${shards.from} to ${shards.to} shards`);
  if (moved.length > 0) lines.push(`${would}moved to another shard: ${namesText(moved)}`);
  if (stay.length > 0)
    lines.push(
      `${dry_run ? "would stay" : "left"} in the old shard with unfinished work: ${namesText(stay)}`,
    );
  return lines.length > 0 ? lines : ["there is nothing to do"];
}

/** `place` is where the data is now. */
async function noteWhatToDo(
  host: CliHost,
  { source, shards }: MigrationSummary,
  place: Place,
  isCopy: boolean,
): Promise<void> {
  const setting = shards.to === 1 ? "" : `, with ERRAND_SHARDS=${shards.to}`;
  await note(host, `Start the broker now: ${startCommand(place)}${setting}.`);
  if (!isCopy) return;
  await note(
    host,
    `This command did not write to ${source}. Start no broker there, unless you go back and give up what happens from now on.`,
  );
  await note(
    host,
    "Keep the operator token: the file operator-token of the data directory, or ERRAND_OPERATOR_TOKEN.",
  );
}

/** The URL; `-` stands for the first line of stdin. */
async function urlToCopyTo(host: CliHost, to: string | undefined): Promise<string | undefined> {
  if (to !== "-") return to;
  const [url = ""] = (await secretFromStdin(host, "URL")).trim().split("\n");
  if (url === "") throw usageError("stdin has no URL for --to -");
  return url.trim();
}

export function addMigrate(program: Command, { host }: Cli): void {
  const command = program
    .command("migrate")
    .description("move a stopped broker's data to another Redis, or to more shards")
    .addOption(
      new Option(
        "--to <url>",
        "the Redis to copy to: one server, or nodes of a Cluster, separated by commas; - reads stdin",
      )
        .conflicts("toDataDir")
        .argParser(notEmpty),
    )
    .addOption(
      new Option("--to-data-dir <folder>", "the data directory to copy to, for a private Redis").argParser(
        notEmpty,
      ),
    )
    .option("--shards <n>", "the new number of shards", wholeBetween(1, 256))
    .option("--force", "delete the broker's data that is at the target")
    .option("--dry-run", "only check, and say what would happen");
  addPlaceOptions(
    command,
    "the broker's data directory (default: ERRAND_DATA_DIR, then .errand, also in a parent directory)",
    "the Redis that the broker uses now (default: ERRAND_REDIS_URL)",
  )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand migrate --to redis://redis.internal:6379 --dry-run",
        "errand migrate --to - < target-url",
        "errand migrate --to redis://node1:6379,node2:6379,node3:6379 --shards 16",
        "errand migrate --shards 16 --redis-url redis://node1:6379,node2:6379",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<MigrateOptions>();
      const { toDataDir, shards, force = false, dryRun = false, json = false } = options;
      const { dataDir, redisUrl } = options;
      if (options.to === undefined && toDataDir === undefined && shards === undefined) {
        throw usageError("Nothing to do: pass --to or --to-data-dir, --shards, or both.");
      }
      const toUrl = await urlToCopyTo(host, options.to);
      const to =
        toUrl !== undefined
          ? { redisUrl: toUrl, redisFlag: "--to" }
          : toDataDir !== undefined
            ? { dataDir: toDataDir }
            : null;
      const isGiven = dataDir !== undefined || redisUrl !== undefined;
      const foundDataDir = isGiven ? undefined : await findDataDir(host.env.dataDir);
      const say = progressNotes(host, json);
      const { migrate } = await host.migrations();
      const done = await interruptible((signal) =>
        migrate({
          ...{ to, shards, force, dryRun, signal, dataDir, foundDataDir, redisUrl },
          onProgress: (keys, of) => say(() => `${keys} of about ${of} keys copied`),
        }),
      ).catch(async (error: unknown) => {
        if (error instanceof Interrupted && !dryRun) await note(host, STOPPED);
        throw error;
      });
      if (json) return printJson(host, done);
      const isCopy = to !== null;
      for (const line of linesOf(done, isCopy)) await print(host, line);
      // A directory that was found in a parent directory: the broker would create another one here.
      const isElsewhere = done.source === foundDataDir && foundDataDir !== resolve(".errand");
      const here = { dataDir: isElsewhere ? foundDataDir : dataDir, redisUrl };
      if (!dryRun) await noteWhatToDo(host, done, to ?? here, isCopy);
    });
}

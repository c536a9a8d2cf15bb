/** `errand migrate`: moves a stopped broker's data to another Redis, to more shards, or both. */
import { type Command, Option } from "commander";
import { type Cli, examples, type GlobalOptions } from "../context.ts";
import { findDataDir } from "../discover.ts";
import { Interrupted, usageError } from "../failure.ts";
import type { CliHost, MigrationSummary, Place } from "../host.ts";
import { wholeBetween } from "../input/arguments.ts";
import { addPlaceOptions, notEmpty } from "../input/place.ts";
import { note, print, printJson } from "../show/output.ts";
import { startCommand } from "../show/start-command.ts";
import { countText, progressNotes } from "../show/transfer.ts";
import { interruptible } from "../signals.ts";

interface MigrateOptions extends GlobalOptions, Place {
  readonly to?: string;
  readonly toDataDir?: string;
  readonly shards?: number;
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

const ABOUT = `
The broker must be stopped, on all machines; the pause lasts as long as the command. With --to, all data is copied, and
the source only read: to go back, start the broker on it as before. Everything stays valid: ids, tokens, leases,
idempotency keys, cursors. The copy is compared with the source before a broker can start on it.

With --shards the number of shards grows, so that the work can be spread over the masters of a Cluster. Agents without
unfinished work move to their new shard, and new agents are spread over all. An agent with unfinished work stays where
it is; run the command again when it has none. Delegations stay in their shard. Without --to this changes the data in
place: back it up first.

--dry-run says what would happen, and changes nothing. docs/migrate.md has the whole procedure.`;

const STOPPED =
  "the migration was stopped. If it had begun to write, no broker starts on that data until you run it again.";

/** The most agents that are named. */
const NAMED = 10;

function namesText(names: readonly string[]): string {
  const rest = names.length - NAMED;
  return `${names.slice(0, NAMED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

/** One line for each thing that was done, or would be. */
function linesOf({ source, target, shards, moved, stay, dry_run, ...counts }: MigrationSummary): string[] {
  const would = dry_run ? "would be " : "";
  const lines: string[] = [];
  if (target !== source) {
    lines.push(`${would}copied and compared: ${countText(counts)}, from ${source} to ${target}`);
  }
  if (shards.from !== shards.to)
    lines.push(`${dry_run ? "would have" : "has"} ${shards.to} shards instead of ${shards.from}`);
  if (moved.length > 0) lines.push(`${would}moved to another shard: ${namesText(moved)}`);
  if (stay.length > 0)
    lines.push(`${stay.length === 1 ? "stays" : "stay"} with unfinished work: ${namesText(stay)}`);
  return lines.length > 0 ? lines : ["there is nothing to do"];
}

async function advise(
  host: CliHost,
  { source, target, shards }: MigrationSummary,
  place: Place,
): Promise<void> {
  const needed = shards.to === 1 ? "" : `, with ERRAND_SHARDS=${shards.to}`;
  const start = startCommand(place);
  await note(host, `Start the broker now: ${start}${needed}.`);
  if (source === target) return;
  await note(
    host,
    `${source} is unchanged: start no broker there, unless you go back and give up what happens from now on.`,
  );
  await note(
    host,
    "Keep the operator token: the file operator-token of the data directory, or ERRAND_OPERATOR_TOKEN.",
  );
}

export function addMigrate(program: Command, { host }: Cli): void {
  const command = program
    .command("migrate")
    .description("move a stopped broker's data to another Redis, or to more shards")
    .addOption(
      new Option("--to <url>", "the Redis to copy to: one server, or nodes of a Cluster, separated by commas")
        .conflicts("toDataDir")
        .argParser(notEmpty),
    )
    .addOption(
      new Option("--to-data-dir <folder>", "the data directory to copy to, for a private Redis").argParser(
        notEmpty,
      ),
    )
    .option("--shards <n>", "the number of shards that the broker gets", wholeBetween(1, 256))
    .option("--force", "delete the data that is at the target")
    .option("--dry-run", "only say what would happen");
  addPlaceOptions(
    command,
    "the broker's data directory (default: ERRAND_DATA_DIR, then .errand, also in a parent directory)",
    "the broker's present Redis (default: ERRAND_REDIS_URL)",
  )
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        "errand migrate --to redis://redis.internal:6379 --dry-run",
        "errand migrate --to redis://node1:6379,node2:6379,node3:6379 --shards 16",
        "errand migrate --shards 16 --redis-url redis://node1:6379,node2:6379",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<MigrateOptions>();
      const { to: toUrl, toDataDir, shards, force = false, dryRun = false, json = false } = options;
      const { dataDir, redisUrl } = options;
      if (toUrl === undefined && toDataDir === undefined && shards === undefined) {
        throw usageError("Nothing to do: pass --to or --to-data-dir, --shards, or both.");
      }
      const to =
        toUrl !== undefined ? { redisUrl: toUrl } : toDataDir !== undefined ? { dataDir: toDataDir } : null;
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
      for (const line of linesOf(done)) await print(host, line);
      if (!dryRun) await advise(host, done, to ?? { dataDir, redisUrl });
    });
}

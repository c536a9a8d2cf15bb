/** `errand schedule create`. */
import { type Command, Option } from "commander";
import { Schedules } from "../../client/schedules.ts";
import type { ScheduleInput } from "../../schema/schedule.ts";
import { contextIdSchema, givenInstantSchema } from "../../schema/values.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import { agentName, keyValue, valid, wholeBetween } from "../input/arguments.ts";
import { duration } from "../input/duration.ts";
import { readTask } from "../input/task.ts";
import { note, print, printJson } from "../show/output.ts";
import { localTime } from "../show/time.ts";

const OVERLAPS = ["skip", "queue", "cancel_running"] as const;
const MISSED = ["skip", "one", "all"] as const;

interface CreateOptions extends GlobalOptions {
  readonly cron?: string;
  readonly zone?: string;
  readonly every?: number;
  readonly anchor?: string;
  readonly overlap: (typeof OVERLAPS)[number];
  readonly missed: (typeof MISSED)[number];
  readonly name?: string;
  readonly paused?: boolean;
  readonly idempotencyKey?: string;
  readonly file?: string;
  readonly messageFile?: string;
  readonly priority?: number;
  readonly context?: string;
  readonly ttl?: number;
  readonly startWithin?: number;
  readonly maxAttempts?: number;
  readonly meta?: Readonly<Record<string, string>>;
}

const ABOUT = `
--cron has five fields: minute, hour, day of the month, month, weekday. A field is *, a number, a range, a list, or one of
these with a step; months and weekdays may be names. Without --zone, it is in UTC.

When clocks change, an expression whose minute or hour begins with * runs whenever the clock shows a time that fits. Any
other expression names times of the day, and runs once at each.

A schedule delegates in your name, for as long as your token is valid. 'errand schedule get' says why it stopped.`;

export function addCreateSchedule(schedule: Command, { host }: Cli): void {
  schedule
    .command("create")
    .description("create a schedule; prints its id")
    .argument("<agent>", "the agent to delegate to", agentName)
    .argument("[task...]", "the task; '-' or no task reads it from stdin")
    .option("--cron <expression>", "when, as five fields; quote it")
    .option("--zone <name>", "the time zone of --cron, for example Europe/Berlin (default: UTC)")
    .option("--every <duration>", "every so often, instead of --cron; at least 1s", duration)
    .option(
      "--anchor <instant>",
      "count --every from this instant (default: from now)",
      valid(givenInstantSchema),
    )
    .addOption(
      new Option("--overlap <what>", "a tick while an earlier delegation has not ended")
        .choices(OVERLAPS)
        .default("queue"),
    )
    .addOption(new Option("--missed <what>", "ticks that the broker missed").choices(MISSED).default("one"))
    .option("--name <text>", "a name for people")
    .option("--paused", "create it paused")
    .option("--priority <n>", "0 to 9, higher first (default 5)", wholeBetween(0, 9))
    .option("--context <id>", "the conversation that the delegations belong to", valid(contextIdSchema))
    .option("--ttl <duration>", "fail one unless it finishes within this time (default: 7 days)", duration)
    .option("--start-within <duration>", "fail one unless a worker takes it within this time", duration)
    .option("--max-attempts <n>", "maximum number of attempts (default: the agent's)", wholeBetween(1, 100))
    .option("--meta <key=value>", "metadata for the agent; may be repeated", keyValue)
    .option("--file <path>", "read the task from a file")
    .option("--message-file <path>", "send an A2A Message from a JSON file; '-' reads stdin")
    .option("--idempotency-key <key>", "repeating a key returns the same schedule (default: a random key)")
    .addHelpText("after", ABOUT)
    .addHelpText(
      "after",
      examples(
        'errand schedule create scout "read the news" --cron "30 9 * * MON-FRI" --zone Europe/Berlin',
        'errand schedule create janitor "delete old branches" --cron "0 3 * * SUN" --overlap skip',
        'errand schedule create prober "is the site up?" --every 5m --ttl 5m --missed skip',
      ),
    )
    .action(async (agent: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CreateOptions>();
      const calendar = calendarIn(options);
      const delegation = { target: agent, ...(await readTask(host, words, options)), ...fieldsOf(options) };
      const { name, overlap, missed, paused = false, idempotencyKey } = options;
      const input = { ...calendar, ...(name !== undefined && { name }), overlap, missed, paused, delegation };
      const made = await new Schedules(await connect(host, options)).create(input, { idempotencyKey });
      if (options.json) return printJson(host, made);
      await print(host, made.id);
      if (made.next.length > 0) await note(host, `next: ${made.next.map(localTime).join(", ")}`);
    });
}

function calendarIn({ cron, zone, every, anchor }: CreateOptions): Partial<ScheduleInput> {
  if ((cron === undefined) === (every === undefined))
    throw usageError("give either --cron or --every", 'For example --cron "0 9 * * *", or --every 10m.');
  if (cron !== undefined && anchor !== undefined) throw usageError("--anchor requires --every");
  if (cron !== undefined) return { cron, ...(zone !== undefined && { time_zone: zone }) };
  if (zone !== undefined) throw usageError("--zone requires --cron");
  return { every_seconds: every, ...(anchor !== undefined && { anchor }) };
}

function fieldsOf({ priority, context, ttl, startWithin, maxAttempts, meta }: CreateOptions) {
  return {
    ...(priority !== undefined && { priority }),
    ...(context !== undefined && { context_id: context }),
    ...(ttl !== undefined && { ttl_seconds: ttl }),
    ...(startWithin !== undefined && { start_within_seconds: startWithin }),
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(meta !== undefined && { metadata: meta }),
  };
}

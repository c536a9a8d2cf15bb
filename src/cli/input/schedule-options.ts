/** The options that say when a schedule delegates, of `errand schedule create` and `change`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { LIMITS } from "../../schema/limits.ts";
import { givenInstantSchema } from "../../schema/values.ts";
import { usageError } from "../failure.ts";
import { valid } from "./arguments.ts";
import { secondsIn } from "./duration.ts";

const OVERLAPS = ["skip", "queue", "cancel_running"] as const;
const MISSED = ["skip", "one", "all"] as const;

export interface CalendarOptions {
  readonly cron?: string;
  readonly zone?: string;
  readonly every?: number;
  readonly anchor?: string;
  readonly overlap?: (typeof OVERLAPS)[number];
  readonly missed?: (typeof MISSED)[number];
  readonly name?: string;
}

const LEAST = LIMITS.schedule_every_seconds.value;

function period(value: string): number {
  const seconds = secondsIn(value);
  if (seconds !== undefined && seconds >= LEAST && Number.isInteger(seconds)) return seconds;
  throw new InvalidArgumentError(
    `It must be a duration of whole seconds, at least ${LEAST}s, for example 90s, 30m, 1h30m or 3d.`,
  );
}

export const addCalendarOptions = (command: Command): Command =>
  command
    .option("--cron <expression>", "when, as five fields; quote it")
    .option("--zone <name>", "the time zone of --cron, for example Europe/Berlin (default: UTC)")
    .option("--every <duration>", `every so often, instead of --cron; at least ${LEAST}s`, period)
    .option(
      "--anchor <instant>",
      "count --every from this instant (default: from now)",
      valid(givenInstantSchema),
    )
    .addOption(
      new Option(
        "--overlap <what>",
        "a tick while an earlier delegation has not ended (default: queue)",
      ).choices(OVERLAPS),
    )
    .addOption(new Option("--missed <what>", "ticks that the broker missed (default: one)").choices(MISSED))
    .option("--name <text>", "a name for people");

/** The settings that the options name. The broker says what does not fit together. */
export function calendarFields({ cron, zone, every, anchor, overlap, missed, name }: CalendarOptions) {
  if (cron !== undefined && every !== undefined) throw oneCalendar();
  if (cron !== undefined && anchor !== undefined) throw usageError("--anchor requires --every");
  if (every !== undefined && zone !== undefined) throw usageError("--zone requires --cron");
  return {
    ...(name !== undefined && { name }),
    ...(cron !== undefined && { cron }),
    ...(zone !== undefined && { time_zone: zone }),
    ...(every !== undefined && { every_seconds: every }),
    ...(anchor !== undefined && { anchor }),
    ...(overlap !== undefined && { overlap }),
    ...(missed !== undefined && { missed }),
  };
}

export const oneCalendar = () =>
  usageError("give either --cron or --every", 'For example --cron "0 9 * * *", or --every 10m.');

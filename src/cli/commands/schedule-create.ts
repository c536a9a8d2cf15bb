/** `errand schedule create`. */
import type { Command } from "commander";
import { Schedules } from "../../client/schedules.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { agentName } from "../input/arguments.ts";
import {
  addTermsOptions,
  addWorkOptions,
  type DelegationOptions,
  delegationFields,
} from "../input/delegation-options.ts";
import {
  addCalendarOptions,
  type CalendarOptions,
  calendarFields,
  oneCalendar,
} from "../input/schedule-options.ts";
import { readTask } from "../input/task.ts";
import { note, print, printJson } from "../show/output.ts";
import { localTime } from "../show/time.ts";

interface CreateOptions extends GlobalOptions, CalendarOptions, DelegationOptions {
  readonly paused?: boolean;
  readonly idempotencyKey?: string;
}

export const ABOUT_CALENDARS = `
--cron has five fields: minute, hour, day of the month, month, weekday. A field is *, a number, a range, a list, or one of
these with a step; months and weekdays may be names. Without --zone, it is in UTC.

When clocks change, an expression whose minute or hour begins with * runs whenever the clock shows a time that fits. Any
other expression names times of the day, and runs once at each.

A schedule delegates in your name, for as long as your token is valid. 'errand schedule get' says why it stopped.`;

export function addCreateSchedule(schedule: Command, { host }: Cli): void {
  const create = schedule
    .command("create")
    .description("create a schedule; prints its id")
    .argument("<agent>", "the agent to delegate to", agentName)
    .argument("[task...]", "the task; '-' or no task reads it from stdin");
  addCalendarOptions(create).option("--paused", "create it paused");
  addTermsOptions(addWorkOptions(create))
    .option("--idempotency-key <key>", "repeating a key returns the same schedule (default: a random key)")
    .addHelpText("after", ABOUT_CALENDARS)
    .addHelpText(
      "after",
      examples(
        'errand schedule create scout "read the news" --cron "30 9 * * MON-FRI" --zone Europe/Berlin',
        'errand schedule create janitor "delete old branches" --cron "0 3 * * SUN" --overlap skip',
        'errand schedule create prober "is the site up?" --every 5m --ttl 5m --missed skip',
        'errand schedule create lead "review main" --cron "0 6 * * *" --budget cost=2USD --on-budget ask',
      ),
    )
    .action(async (agent: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CreateOptions>();
      const { cron, every, paused = false, idempotencyKey } = options;
      if ((cron === undefined) === (every === undefined)) throw oneCalendar();
      const work = { ...(await readTask(host, words, options)), ...(await delegationFields(host, options)) };
      const input = { ...calendarFields(options), paused, delegation: { target: agent, ...work } };
      const made = await new Schedules(await connect(host, options)).create(input, { idempotencyKey });
      if (options.json) return printJson(host, made);
      await print(host, made.id);
      if (made.next.length > 0) await note(host, `next: ${made.next.map(localTime).join(", ")}`);
    });
}

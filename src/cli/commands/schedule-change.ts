/** `errand schedule change`. Limit: what it delegates is read and sent back whole, so of two changes at once one is lost. */
import type { Command } from "commander";
import { Schedules } from "../../client/schedules.ts";
import { delegateRequestSchema } from "../../schema/delegation.ts";
import type { Schedule, SchedulePatchInput } from "../../schema/schedule.ts";
import { nearestName } from "../../util/similar.ts";
import { type Cli, connect, examples, type GlobalOptions } from "../context.ts";
import { usageError } from "../failure.ts";
import type { CliHost } from "../host.ts";
import { agentName, SCHEDULE, scheduleId, withoutDefaults } from "../input/arguments.ts";
import {
  addTermsOptions,
  addWorkOptions,
  type DelegationOptions,
  delegationFields,
} from "../input/delegation-options.ts";
import { addCalendarOptions, type CalendarOptions, calendarFields } from "../input/schedule-options.ts";
import { readTask } from "../input/task.ts";
import { print, printJson } from "../show/output.ts";
import { scheduleDetails } from "../show/schedule-text.ts";
import { ABOUT_CALENDARS } from "./schedule-create.ts";

interface ChangeOptions extends GlobalOptions, CalendarOptions, DelegationOptions {
  readonly agent?: string;
  readonly reset?: readonly string[];
}

/** Settings of the schedule that can be reset; the others are of its delegation. */
const OWN = ["name", "time_zone", "anchor", "overlap", "missed"] as const;
const { target: _target, task: _task, message: _message, ...RESETTABLE } = delegateRequestSchema.shape;
const OF_DELEGATION = Object.keys(RESETTABLE);

export function addChangeSchedule(schedule: Command, { host }: Cli): void {
  const change = schedule
    .command("change")
    .description("change settings of a schedule; what is not given stays")
    .argument("<id>", SCHEDULE, scheduleId)
    .argument("[task...]", "another task; '-' reads it from stdin");
  addCalendarOptions(change).option("--agent <name>", "delegate to another agent", agentName);
  withoutDefaults(addTermsOptions(addWorkOptions(change)))
    .option(
      "--reset <settings...>",
      "reset these settings to their defaults, for example name, time_zone, budget or ttl_seconds",
    )
    .addHelpText("after", ABOUT_CALENDARS)
    .addHelpText(
      "after",
      examples(
        'errand schedule change sch_… --cron "0 7 * * MON-FRI"',
        "errand schedule change sch_… --budget cost=5USD --on-budget ask",
        'errand schedule change sch_… "read the news, and the weather" --reset ttl_seconds',
      ),
    )
    .action(async (id: string, words: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ChangeOptions>();
      const { own, ofDelegation } = resetsOf(options.reset ?? []);
      const work = await workIn(host, words, options);
      const calendar = { ...own, ...calendarFields(options) };
      const changesWork = Object.keys(work).length > 0 || ofDelegation.length > 0;
      if (Object.keys(calendar).length === 0 && !changesWork)
        throw usageError("nothing to change", "Pass an option, or another task.");
      const schedules = new Schedules(await connect(host, options));
      const patch: SchedulePatchInput = changesWork
        ? { ...calendar, delegation: changedWork(await schedules.get(id), work, ofDelegation) }
        : calendar;
      const changed = await schedules.patch(id, patch);
      await (options.json ? printJson(host, changed) : print(host, scheduleDetails(host, changed)));
    });
}

async function workIn(host: CliHost, words: string[], options: ChangeOptions) {
  const { agent, file, messageFile } = options;
  const hasTask = words.length > 0 || file !== undefined || messageFile !== undefined;
  return {
    ...(agent !== undefined && { target: agent }),
    ...(hasTask && (await readTask(host, words, options))),
    ...(await delegationFields(host, options)),
  };
}

type Delegation = NonNullable<SchedulePatchInput["delegation"]>;

/** What it delegated before, with the changes. */
function changedWork(
  { delegation: before }: Schedule,
  work: Partial<Delegation>,
  resets: readonly string[],
): Delegation {
  const hasTask = "task" in work || "message" in work;
  const dropped = [...resets, ...(hasTask ? ["task", "message"] : [])];
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !dropped.includes(name)));
  if (kept.callback !== undefined && work.callback === undefined) {
    throw usageError(
      "the schedule has a callback, whose secrets cannot be read again",
      "Repeat --callback with --callback-secret and --callback-token, or pass --reset callback.",
    );
  }
  return { target: String(before.target), ...kept, ...work };
}

function resetsOf(names: readonly string[]) {
  const own = OWN.filter((name) => names.includes(name));
  const ofDelegation = names.filter((name) => OF_DELEGATION.includes(name));
  const unknown = names.find((name) => ![...OWN, ...OF_DELEGATION].includes(name));
  if (unknown !== undefined) {
    const nearest = nearestName(unknown, [...OWN, ...OF_DELEGATION]);
    throw usageError(
      `--reset: '${unknown}' is no setting of a schedule`,
      nearest === undefined
        ? `They are ${[...OWN, ...OF_DELEGATION].join(", ")}.`
        : `Did you mean ${nearest}?`,
    );
  }
  return { own: Object.fromEntries(own.map((name) => [name, null])), ofDelegation };
}

/** `errand schedule`: delegates again and again: create, list, get, change, runs, run, pause, resume, delete. */
import type { Command } from "commander";
import { whenText } from "../../client/schedule-text.ts";
import { Schedules } from "../../client/schedules.ts";
import type { Schedule, ScheduleRun } from "../../schema/schedule.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { SCHEDULE, scheduleId } from "../input/arguments.ts";
import { addTableOptions, type Column, printRows, type TableOptions } from "../show/list-table.ts";
import { type Painter, print, printJson } from "../show/output.ts";
import { runText, scheduleDetails, targetOf } from "../show/schedule-text.ts";
import { localTime, whenText as nextText } from "../show/time.ts";
import { addChangeSchedule } from "./schedule-change.ts";
import { addCreateSchedule } from "./schedule-create.ts";

export function addSchedule(program: Command, cli: Cli): void {
  const schedule = program
    .command("schedule")
    .description("delegate again and again, at times of a calendar")
    .addHelpText(
      "after",
      examples(
        'errand schedule create scout "read the news" --cron "30 9 * * MON-FRI" --zone Europe/Berlin',
        "errand schedule list",
      ),
    );
  addCreateSchedule(schedule, cli);
  addList(schedule, cli);
  addGet(schedule, cli);
  addRuns(schedule, cli);
  addRun(schedule, cli);
  addChangeSchedule(schedule, cli);
  addTurn(schedule, cli, "pause", "make no more ticks until it is resumed");
  addTurn(schedule, cli, "resume", "continue with the next tick, also of one that is blocked");
  addDelete(schedule, cli);
}

const statePaint = ({ state }: Schedule, { green, yellow, red }: Painter) =>
  ({ active: green, paused: yellow, blocked: red })[state];

const SCHEDULES: readonly Column<Schedule>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id, isWhole: true },
  { name: "state", cell: ({ state }) => state, paint: statePaint },
  { name: "agent", cell: targetOf },
  { name: "runs", cell: whenText, isText: true },
  { name: "next", cell: ({ next: [at] }, wide) => (at === undefined ? "-" : nextText(at, wide)) },
  { name: "last", cell: lastText, shown: "wide" },
  { name: "owner", cell: ({ owner }) => owner, shown: "wide" },
  { name: "title", cell: ({ name }) => name ?? "-", isText: true, shown: "wide" },
];

function lastText({ last_runs: [run] }: Schedule): string {
  return run ? runText(run) : "-";
}

const RUNS: readonly Column<ScheduleRun>[] = [
  { name: "at", cell: ({ at }) => localTime(at) },
  { name: "kind", cell: ({ kind }) => kind },
  {
    name: "result",
    cell: (run) => runText(run),
    identifier: ({ delegation_id }) => delegation_id ?? "-",
  },
];

function addList(schedule: Command, { host }: Cli): void {
  const list = schedule.command("list").description("list your schedules, or for the operator all");
  addTableOptions(list, SCHEDULES)
    .addHelpText("after", examples("errand schedule list", "errand schedule list --json | jq -r .id"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const found = await new Schedules(await connectToRead(host, options)).list();
      if (options.json) {
        for (const one of found) await printJson(host, one);
        return;
      }
      await printRows(host, found, SCHEDULES, options, "no schedules yet");
    });
}

function addGet(schedule: Command, { host }: Cli): void {
  schedule
    .command("get")
    .description("show a schedule: what it delegates, its next times, its last runs")
    .argument("<id>", SCHEDULE, scheduleId)
    .addHelpText("after", examples("errand schedule get sch_…"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const found = await new Schedules(await connectToRead(host, options)).get(id);
      await (options.json ? printJson(host, found) : print(host, scheduleDetails(host, found)));
    });
}

function addRuns(schedule: Command, { host }: Cli): void {
  const runs = schedule
    .command("runs")
    .description("list what a schedule has delegated, newest first, and what it left out and why")
    .argument("<id>", SCHEDULE, scheduleId);
  addTableOptions(runs, RUNS)
    .addHelpText("after", examples("errand schedule runs sch_…", "errand schedule runs sch_… -o name"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<TableOptions>();
      const found = await new Schedules(await connectToRead(host, options)).runs(id);
      if (options.json) {
        for (const one of found) await printJson(host, one);
        return;
      }
      await printRows(host, found, RUNS, options, "no runs yet");
    });
}

function addRun(schedule: Command, { host }: Cli): void {
  schedule
    .command("run")
    .description("delegate now, outside the calendar; prints the delegation's id")
    .argument("<id>", SCHEDULE, scheduleId)
    .addHelpText("after", examples("errand get $(errand schedule run sch_…) --wait"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const run = await new Schedules(await connect(host, options)).run(id);
      await (options.json ? printJson(host, run) : print(host, run.delegation_id ?? "-"));
    });
}

function addTurn(schedule: Command, { host }: Cli, verb: "pause" | "resume", description: string): void {
  schedule
    .command(verb)
    .description(description)
    .argument("<id>", SCHEDULE, scheduleId)
    .addHelpText("after", examples(`errand schedule ${verb} sch_…`))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const schedules = new Schedules(await connect(host, options));
      const found = await (verb === "pause" ? schedules.pause(id) : schedules.resume(id));
      const [next] = found.next;
      const text = next === undefined ? `${verb}d ${id}` : `${verb}d ${id}; next at ${localTime(next)}`;
      await (options.json ? printJson(host, found) : print(host, text));
    });
}

function addDelete(schedule: Command, { host }: Cli): void {
  schedule
    .command("delete")
    .description("delete a schedule and its history; its delegations stay")
    .argument("<id>", SCHEDULE, scheduleId)
    .addHelpText("after", examples("errand schedule delete sch_…"))
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      await new Schedules(await connect(host, options)).delete(id);
      await (options.json ? printJson(host, { deleted: id }) : print(host, `deleted ${id}`));
    });
}

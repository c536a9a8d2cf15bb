/** A schedule as text for a person: when it runs, what it delegates, and how its last runs went. */
import * as z from "zod";
import { amountsText } from "../../client/budget-text.ts";
import { whenText } from "../../client/schedule-text.ts";
import { budgetSchema, onBudgetSchema } from "../../schema/budget.ts";
import type { Schedule, ScheduleRun } from "../../schema/schedule.ts";
import type { CliHost } from "../host.ts";
import { oneLine, withCommand } from "./output.ts";
import { wrapWidth } from "./terminal-width.ts";
import { wrapRows } from "./text.ts";
import { localTime } from "./time.ts";

const OVERLAPS = {
  skip: "is left out",
  queue: "is delegated all the same",
  cancel_running: "cancels the earlier one",
} as const;
const MISSED = {
  skip: "are left out",
  one: "make one, the newest",
  all: "are made, the newest 100",
} as const;

export function runText({ delegation_id, skipped, kind, since }: ScheduleRun): string {
  if (delegation_id !== null) return kind === "manual" ? `${delegation_id} (run by hand)` : delegation_id;
  const why =
    {
      overlap: "left out: the earlier delegation has not ended",
      missed: since === undefined ? "missed" : `missed, with those since ${localTime(since)}`,
    }[skipped ?? ""] ?? `refused: ${skipped}`;
  return why;
}

export const targetOf = ({ delegation }: Schedule): string =>
  typeof delegation.target === "string" ? delegation.target : "?";

function taskOf({ delegation: { task, message } }: Schedule): string {
  if (typeof task === "string") return task;
  return message === undefined ? "" : JSON.stringify(message);
}

const budgetedSchema = z.object({ budget: budgetSchema, on_budget: onBudgetSchema.optional() });

/** `7 tokens, asks for more`: what each of its delegations may use. */
function budgetRow({ delegation }: Schedule): string[][] {
  const { budget, on_budget } = budgetedSchema.safeParse(delegation).data ?? {};
  if (budget === undefined) return [];
  return [["budget", `${amountsText(budget)}${on_budget === "ask" ? ", asks for more" : ""}`]];
}

export function scheduleDetails(host: CliHost, schedule: Schedule): string {
  const { id, name, owner, state, problem, next, last_runs, overlap, missed } = schedule;
  const rows = [
    ["schedule", id],
    ...(name === null ? [] : [["name", oneLine(name)]]),
    ["owner", owner],
    ["state", state],
    ...(problem ? [["problem", oneLine(`${problem.message} (${problem.code})`)]] : []),
    ["runs", whenText(schedule)],
    ...next.map((at, index) => [index === 0 ? "next" : "", localTime(at)]),
    ["agent", targetOf(schedule)],
    ["task", oneLine(taskOf(schedule))],
    ...budgetRow(schedule),
    ["overlap", `a tick before the earlier delegation has ended ${OVERLAPS[overlap]}`],
    ["missed", `ticks that were missed ${MISSED[missed]}`],
    ...last_runs.map((run, index) => [index === 0 ? "last" : "", `${localTime(run.at)}  ${runText(run)}`]),
  ];
  if (state !== "active") rows.push(["", `continue with 'errand schedule resume ${id}'`]);
  return withCommand(host, wrapRows(rows, wrapWidth(host)));
}

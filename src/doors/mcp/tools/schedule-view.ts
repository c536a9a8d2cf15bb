/** A schedule as a model reads it. Limit: what it delegates is shown whole only if it fits. */
import * as z from "zod";
import { type Schedule, scheduleRunSchema } from "../../../schema/schedule.ts";
import type { ByteBudget } from "./content.ts";

export const scheduleViewSchema = z
  .object({
    schedule_id: z.string(),
    name: z.string(),
    owner: z.string(),
    state: z.string(),
    problem: z.object({ code: z.string(), message: z.string(), at: z.string() }),
    cron: z.string(),
    time_zone: z.string(),
    every_seconds: z.number(),
    overlap: z.string(),
    missed: z.string(),
    /** What it delegates, with the arguments of delegate_task; absent if it is too long. */
    delegation: z.record(z.string(), z.unknown()),
    /** Whom it delegates to, and the beginning of the task. */
    agent: z.string(),
    task_preview: z.string(),
    /** The next three times. */
    next: z.array(z.string()),
    /** The newest runs, newest first: the delegation that each made, or why it made none. */
    runs: z.array(scheduleRunSchema),
  })
  .partial();
export type ScheduleView = z.infer<typeof scheduleViewSchema>;

const TASK_BYTES = 200;

export function toScheduleView(schedule: Schedule, budget: ByteBudget): ScheduleView {
  const { id, name, owner, state, problem, cron, time_zone, every_seconds } = schedule;
  const { overlap, missed, next, last_runs } = schedule;
  const { target, ...rest } = schedule.delegation;
  const delegation = { agent: target, ...rest };
  const { text: task_preview } = budget.cut(String(rest.task ?? "(a message)"), TASK_BYTES);
  const isWhole = budget.spendIfFits(delegation);
  return {
    schedule_id: id,
    ...(name !== null && { name }),
    owner,
    state,
    ...(problem && { problem }),
    ...(cron !== undefined && { cron }),
    ...(time_zone !== undefined && { time_zone }),
    ...(every_seconds !== undefined && { every_seconds }),
    ...{ overlap, missed },
    ...{ agent: String(target), task_preview },
    ...(isWhole && { delegation }),
    ...{ next, runs: last_runs },
  };
}

export function scheduleText(view: ScheduleView): string {
  const { schedule_id, name, state, problem, cron, time_zone, every_seconds } = view;
  const { agent, task_preview, delegation, next = [], runs = [] } = view;
  const when = cron === undefined ? `every ${every_seconds} s` : `${cron} (${time_zone})`;
  const called = name === undefined ? "" : ` "${name}"`;
  return [
    `Schedule ${schedule_id}${called}: ${when} to ${agent}, ${state}. Task: ${task_preview}`,
    ...(problem ? [`${problem.code}: ${problem.message}`] : []),
    ...(delegation ? [`Delegates: ${JSON.stringify(delegation)}`] : []),
    ...(next.length > 0 ? [`Next: ${next.join(", ")}`] : []),
    ...runs.map(
      ({ at, kind, delegation_id, skipped }) =>
        `- ${at} ${kind}: ${delegation_id ?? `left out (${skipped ?? "unknown"})`}`,
    ),
  ].join("\n");
}

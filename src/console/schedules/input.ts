/** What the form of a schedule sends. */
import type { Schedule, ScheduleInput, SchedulePatchInput } from "../../schema/schedule.ts";
import { toSeconds } from "../agents/duration.ts";

/** The text of a field; empty: none, or the field is not shown. */
export type Text = (name: string) => string;

type Calendar = Pick<ScheduleInput, "cron" | "time_zone" | "every_seconds">;

const calendarOf = (text: Text, isCron: boolean): Calendar =>
  isCron
    ? { cron: text("cron"), time_zone: text("time_zone") }
    : { every_seconds: toSeconds(Number(text("every")), text("every_unit")) };

const OVERLAPS = ["queue", "skip", "cancel_running"] as const;
const MISSED = ["one", "skip", "all"] as const;
const choiceOf = <T extends string>(choices: readonly T[], given: string): T | undefined =>
  choices.find((one) => one === given);

export function inputOf(text: Text, isCron: boolean): ScheduleInput {
  return {
    ...(text("name") !== "" && { name: text("name") }),
    ...calendarOf(text, isCron),
    delegation: { target: text("target"), task: text("task") },
    overlap: choiceOf(OVERLAPS, text("overlap")),
    missed: choiceOf(MISSED, text("missed")),
  };
}

export const taskOf = ({ delegation: { task } }: Schedule): string => (typeof task === "string" ? task : "");

/** Whether agent and task stay: of a message the form has no parts, and the secrets of a callback cannot be sent again. */
export const isFixed = ({ delegation }: Schedule): boolean =>
  delegation.message !== undefined || delegation.callback !== undefined;

/** Exactly what was changed. */
export function patchOf(before: Schedule, text: Text, isCron: boolean): SchedulePatchInput {
  const [overlap, missed] = [choiceOf(OVERLAPS, text("overlap")), choiceOf(MISSED, text("missed"))];
  const calendar = calendarOf(text, isCron);
  const { target, task } = before.delegation;
  const isOtherWork = !isFixed(before) && (target !== text("target") || task !== text("task"));
  return {
    ...(text("name") !== (before.name ?? "") && { name: text("name") || null }),
    ...(JSON.stringify(calendar) !== JSON.stringify(calendarBefore(before, isCron)) && calendar),
    ...(overlap !== before.overlap && { overlap }),
    ...(missed !== before.missed && { missed }),
    ...(isOtherWork && { delegation: { ...before.delegation, target: text("target"), task: text("task") } }),
  };
}

const calendarBefore = ({ cron, time_zone, every_seconds }: Schedule, isCron: boolean): object =>
  isCron ? { cron, time_zone } : { every_seconds };

/** Reads schedules. Their owner and the operator may change them; approvers and viewers see all, as they see delegations. */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { SCHEDULE_ID, type Schedule, type ScheduleRun } from "../../schema/schedule.ts";
import { toInstant } from "../../schema/values.ts";
import { isOfEarlierAgent, type Principal, seesAll } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { parseCursor, toCursor } from "../list-cursor.ts";
import { nextTimes } from "./check.ts";
import type { ScheduleAt } from "./store.ts";
import type { StoredRun, StoredSchedule } from "./stored-schedule.ts";

type Needs = Pick<Broker, "agents" | "schedules">;

/** How many of its newest runs a schedule shows. */
const LAST_RUNS = 5;

export const noSchedule = (id: string): ErrandError =>
  new ErrandError("not_found", `There is no schedule '${id}'.`, {
    recovery: "List your schedules to find its id.",
  });

/** For a stranger it does not exist. `what`: what only its owner and the operator may do. */
export async function findSchedule(
  broker: Needs,
  principal: Principal,
  id: string,
  what: string | null = null,
): Promise<ScheduleAt> {
  const stored = await broker.schedules.store.find(id);
  const found =
    stored && (await isOfEarlierAgent(broker, principal, stored.schedule.created_at)) ? null : stored;
  const isOwner = principal.kind === "operator" || found?.schedule.owner === principal.text;
  if (!found || !(isOwner || seesAll(principal))) throw noSchedule(id);
  if (!isOwner && what !== null)
    throw new ErrandError("forbidden", `Only the owner of the schedule and the operator may ${what}.`);
  return found;
}

export async function describeSchedule(broker: Needs, principal: Principal, id: string): Promise<Schedule> {
  return describe(broker, await findSchedule(broker, principal, id));
}

async function describe({ schedules }: Needs, { schedule, now }: ScheduleAt): Promise<Schedule> {
  const { id, owner, state, problem, settings, last } = schedule;
  const { name, delegation, overlap, missed, ...calendar } = settings;
  return {
    ...{ id, name: name ?? null, owner, state },
    problem: problem && { ...problem, at: toInstant(problem.at) },
    ...calendar,
    delegation: withoutSecrets(delegation),
    ...{ overlap, missed },
    next: state === "active" ? nextTimes(settings, Math.max(now, last)) : [],
    last_runs: (await schedules.store.runs(id, LAST_RUNS)).map(toRun),
    created_at: toInstant(schedule.created_at),
    updated_at: toInstant(schedule.updated_at),
  };
}

/** Of a callback, only where it goes. */
function withoutSecrets({ callback, ...delegation }: StoredSchedule["settings"]["delegation"]) {
  if (typeof callback !== "object" || callback === null || !("url" in callback)) return delegation;
  return { ...delegation, callback: { url: callback.url } };
}

export const toRun = ({ since, at, ...run }: StoredRun): ScheduleRun => ({
  ...run,
  at: toInstant(at),
  ...(since !== undefined && { since: toInstant(since) }),
});

export async function runsOf(broker: Needs, principal: Principal, id: string): Promise<ScheduleRun[]> {
  await findSchedule(broker, principal, id);
  return (await broker.schedules.store.runs(id, LIMITS.schedule_runs.value)).map(toRun);
}

export interface SchedulePage {
  readonly schedules: Schedule[];
  readonly next_cursor: string | null;
}

/** A principal's own schedules, or all of them for those who see everything. */
export async function listSchedules(
  broker: Needs,
  principal: Principal,
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
): Promise<SchedulePage> {
  const after = cursor === undefined ? null : parseCursor(cursor, SCHEDULE_ID);
  const ids = await broker.schedules.store.ids(seesAll(principal) ? null : principal.text, after, limit);
  const schedules: Schedule[] = [];
  let bytes = 0;
  for (const id of ids.slice(0, limit)) {
    const found = await broker.schedules.store.find(id);
    if (!found || (await isOfEarlierAgent(broker, principal, found.schedule.created_at))) continue;
    const schedule = await describe(broker, found);
    bytes += JSON.stringify(schedule).length;
    if (bytes > LIMITS.page_bytes.value && schedules.length > 0)
      return { schedules, next_cursor: cursorAt(schedules) };
    schedules.push(schedule);
  }
  return { schedules, next_cursor: ids.length > limit ? cursorAt(schedules) : null };
}

function cursorAt(schedules: readonly Schedule[]): string | null {
  const last = schedules.at(-1);
  return last ? toCursor({ at: Date.parse(last.created_at), id: last.id }) : null;
}

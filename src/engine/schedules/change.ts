/**
 * Creates, changes, pauses, resumes and deletes schedules, and runs one now. Limit: the delegation is checked as a submit
 * would be, in the name of the owner; whether it is still accepted shows at each tick.
 */
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { LIMITS } from "../../schema/limits.ts";
import { type SchedulePatch, type ScheduleRequest, scheduleRequestSchema } from "../../schema/schedule.ts";
import { lowerPriority, type Principal, requireDelegator, toPrincipal } from "../access/access.ts";
import type { Identity } from "../access/revocations.ts";
import { check } from "../delegations/delegate.ts";
import { bodyHash, derivedId, requireKey } from "../delegations/idempotency.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { type Advances, findTick, liveOf, submitRun } from "./advance.ts";
import { requireCalendar } from "./check.ts";
import { LATE_MS } from "./plan.ts";
import { findSchedule, noSchedule } from "./read.ts";
import type { ScheduleAt, ScheduleChange } from "./store.ts";
import {
  dueAfter,
  type Settings,
  type StoredRun,
  type StoredSchedule,
  settingsOf,
} from "./stored-schedule.ts";

const ID_LENGTH = 26;

type Changes = Advances & AuditWriter;

export interface Creator {
  readonly principal: Principal;
  readonly identity: Identity;
  readonly idempotencyKey?: string | undefined;
}

/** Returns whether an earlier request with the same key created it. */
export async function createSchedule(
  broker: Changes,
  { principal, identity, idempotencyKey }: Creator,
  request: ScheduleRequest,
  /** The delegation without defaults. */
  delegation: Record<string, unknown>,
): Promise<{ schedule: StoredSchedule; replayed: boolean }> {
  requireDelegator(principal);
  if (idempotencyKey !== undefined) requireKey(idempotencyKey);
  const id = `sch_${idempotencyKey === undefined ? randomId(ID_LENGTH) : derivedId(principal.text, idempotencyKey)}`;
  const body = bodyHash({ ...request, delegation });
  // Before the checks: what was created stays created, even if it would be refused by now.
  const earlier = idempotencyKey === undefined ? null : await broker.schedules.store.find(id);
  if (earlier) return { schedule: requireBody(earlier.schedule, body), replayed: true };
  const now = await broker.schedules.store.now();
  requireCalendar(request, now);
  await check(broker, principal, request.delegation);
  const settings = settingsOf(request, delegation, now);
  const state = request.paused ? "paused" : "active";
  const owner = principal.text;
  const fields = {
    ...{
      owner,
      token: broker.tokens.holderOf(identity),
      body,
      settings: textOf(settings),
      state,
      problem: "",
    },
    ...{ last: now, pending: "", tick_run: "", manual_run: "", created_at: now, updated_at: now },
  };
  const due = request.paused ? null : dueAfter(settings, now);
  const made = await broker.schedules.store.create(id, owner, fields, { at: now, due });
  if (made === "too_many") {
    const maximum = LIMITS.schedules.value;
    throw new ErrandError("limit_reached", `You have ${maximum} schedules, which is the limit.`, {
      details: { limit: "schedules", maximum },
      recovery: "Delete schedules that are no longer used.",
    });
  }
  const found = await broker.schedules.store.find(id);
  if (!found) throw noSchedule(id);
  const schedule = requireBody(found.schedule, body);
  await broker.schedules.setWakes(schedule);
  if (made === "created")
    await audit(broker, principal, "schedule.create", id, { target: request.delegation.target });
  return { schedule, replayed: made === "exists" };
}

function requireBody(schedule: StoredSchedule, body: string): StoredSchedule {
  if (schedule.body === body) return schedule;
  throw new ErrandError(
    "idempotency_conflict",
    `This Idempotency-Key was used with another body, for ${schedule.id}.`,
  );
}

function textOf(settings: Settings): string {
  const text = JSON.stringify(settings);
  const maximum = LIMITS.schedule_bytes.value;
  if (Buffer.byteLength(text) <= maximum) return text;
  throw new ErrandError("invalid_request", `The schedule exceeds ${maximum} bytes as JSON.`, {
    details: {
      issues: [{ path: "delegation", reason: `at most ${maximum} bytes as JSON, with the other settings` }],
    },
  });
}

/** Repeats the change while others change the schedule at the same time. */
async function change(
  broker: Changes,
  principal: Principal,
  id: string,
  action: "schedule.update" | "schedule.pause" | "schedule.resume",
  next: (found: ScheduleAt) => Promise<ScheduleChange> | ScheduleChange,
): Promise<StoredSchedule> {
  for (;;) {
    const found = await findSchedule(broker, principal, id, "change it");
    const { fields, ...more } = await next(found);
    const changed = { ...more, fields: { ...fields, updated_at: found.now } };
    if (!(await broker.schedules.store.exchange(found.schedule, changed))) continue;
    const after = await findSchedule(broker, principal, id, "change it");
    await broker.schedules.setWakes(after.schedule);
    await audit(broker, principal, action, id, { owner: after.schedule.owner });
    return after.schedule;
  }
}

/** A tick that is being made stays due; a schedule that is not active has nothing else. */
const dueOf = (
  { schedule, now }: ScheduleAt,
  settings: Settings,
  last: number,
  isActive: boolean,
): number | null => (schedule.pending ? now : isActive ? dueAfter(settings, last) : null);

export const pauseSchedule = (broker: Changes, principal: Principal, id: string): Promise<StoredSchedule> =>
  change(broker, principal, id, "schedule.pause", (found) => ({
    fields: { state: "paused", problem: "" },
    due: dueOf(found, found.schedule.settings, found.schedule.last, false),
  }));

/** It continues from now, without the ticks in between; and from now on, this token stands for its owner. */
export const resumeSchedule = (
  broker: Changes,
  { principal, identity }: Creator,
  id: string,
): Promise<StoredSchedule> =>
  change(broker, principal, id, "schedule.resume", async (found) => {
    const { settings, state } = found.schedule;
    const last = state === "active" ? found.schedule.last : found.now;
    const fields = { state: "active", problem: "", last, token: broker.tokens.holderOf(identity) };
    const late = await lateTick(broker, found);
    if (!late) return { fields, due: dueOf(found, settings, last, true) };
    const more = late.delegation_id === null ? {} : { tick_run: late.delegation_id };
    return { fields: { ...fields, ...more, pending: "" }, due: dueAfter(settings, last), run: late };
  });

/** What became of a tick that was being made when the schedule was paused, if it is too late to make it now. */
async function lateTick(broker: Advances, { schedule, now }: ScheduleAt): Promise<StoredRun | null> {
  const { pending, state } = schedule;
  if (state === "active" || !pending || now - pending.at <= LATE_MS) return null;
  const delegation_id = await findTick(broker, schedule, pending.at);
  const skipped = delegation_id === null ? "missed" : null;
  return { kind: "tick", at: pending.at, delegation_id, skipped };
}

/** A changed calendar counts from now. */
export const patchSchedule = (
  broker: Changes,
  principal: Principal,
  id: string,
  patch: SchedulePatch,
  /** The new delegation without defaults. */
  delegation: Record<string, unknown> | undefined,
): Promise<StoredSchedule> =>
  change(broker, principal, id, "schedule.update", async (found) => {
    const { schedule, now } = found;
    const before = schedule.settings;
    const request = merged(before, delegation === undefined ? patch : { ...patch, delegation });
    requireCalendar(request, now);
    if (patch.delegation) {
      const limits = await broker.tokens.limitsOf(schedule.token);
      const max_priority = lowerPriority(principal.maxPriority, limits.max_priority);
      const owner = toPrincipal(schedule.owner, { ...limits, max_priority });
      await check(broker, owner, request.delegation);
    }
    const settings = settingsOf(request, delegation ?? before.delegation, now);
    const last = isSameCalendar(before, settings) ? schedule.last : now;
    return {
      fields: { settings: textOf(settings), last },
      due: dueOf(found, settings, last, schedule.state === "active"),
    };
  });

/** The kind of calendar that the patch does not have gives way. */
function merged(before: Settings, patch: Readonly<Record<string, unknown>>): ScheduleRequest {
  const { cron, time_zone, every_seconds, anchor, ...rest } = before;
  const isCron = patch.cron ?? (cron !== undefined && (patch.every_seconds ?? null) === null);
  const base = isCron ? { ...rest, cron, time_zone } : { ...rest, every_seconds, anchor };
  const members = Object.entries({ ...base, ...patch }).filter(
    ([, value]) => value !== null && value !== undefined,
  );
  const parsed = readAs(scheduleRequestSchema, Object.fromEntries(members));
  if (parsed.success) return parsed.data;
  throw invalidRequest(parsed.error, { where: "body", whole: "The schedule" });
}

const CALENDAR = ["cron", "time_zone", "every_seconds", "anchor"] as const;
const isSameCalendar = (one: Settings, other: Settings): boolean =>
  CALENDAR.every((name) => one[name] === other[name]);

/** Safe to repeat. A tick that is being made may still be made. */
export async function deleteSchedule(broker: Changes, principal: Principal, id: string): Promise<void> {
  const { schedule } = await findSchedule(broker, principal, id, "delete it");
  const { owner } = schedule;
  const deleted = await broker.schedules.store.delete(id, owner);
  await broker.schedules.removeWakes(id);
  if (deleted) await audit(broker, principal, "schedule.delete", id, { owner });
}

/** Delegates at once, outside the calendar, also while it is paused; the overlap does not matter. */
export async function runSchedule(
  broker: Changes,
  { principal, idempotencyKey }: Creator,
  id: string,
): Promise<StoredRun> {
  if (idempotencyKey !== undefined) requireKey(idempotencyKey);
  const { schedule, now } = await findSchedule(broker, principal, id, "run it");
  const key = idempotencyKey === undefined ? randomId(ID_LENGTH) : derivedId(principal.text, idempotencyKey);
  const delegation_id = await submitRun(broker, schedule, `run ${key}`, now, principal);
  const { store } = broker.schedules;
  for (;;) {
    const found = await store.find(id);
    const run = { kind: "manual" as const, at: now, delegation_id, skipped: null };
    // A schedule that was deleted meanwhile has no history.
    if (!found) return run;
    const runs = idempotencyKey === undefined ? [] : await store.runs(id, LIMITS.schedule_runs.value);
    const earlier = runs.find((one) => one.delegation_id === delegation_id);
    if (earlier) return earlier;
    const { settings, last, state, manual_run } = found.schedule;
    const due = dueOf(found, settings, last, state === "active");
    const live = [...(await liveOf(broker, manual_run)), delegation_id];
    const fields = { manual_run: live.slice(-LIMITS.schedule_runs.value).join(" ") };
    if (!(await store.exchange(found.schedule, { fields, due, run }))) continue;
    await audit(broker, principal, "schedule.run", id, { owner: schedule.owner, delegation_id });
    return run;
  }
}

/**
 * Makes the ticks of a schedule that are due. Wakes and the sweep call it, at any gateway, at any time, as often as they
 * like; no tick is lost, and none is made twice.
 *
 * A schedule has `last`, the tick up to which everything is decided, and `seq`, which grows with every change. Every
 * change below is one script that compares `seq` (exchange.lua), so of several gateways that act on what they read, one
 * succeeds, and the others read again. The next tick is always the first of the calendar after `last`.
 *
 * 1. A tick that is left out (missed, overlap) moves `last` onto it and adds a line to the history, in one change.
 * 2. A tick that is made is first claimed: `pending` names it, and the delegations that it cancels. From now on it is
 *    decided: nobody leaves it out any more, even if the earlier delegation ends meanwhile.
 * 3. Whoever finds a `pending` cancels these delegations, and submits. Both are safe to repeat: the idempotency key is
 *    the schedule and the tick, so several gateways get the same delegation.
 * 4. Then one change moves `last` onto the tick, removes `pending`, and adds the line with the delegation's id.
 *
 * A tick that waits, for example because a queue is full, is made only while the schedule is active and its token is valid.
 * Otherwise it is looked up by its key, because it may have been submitted before.
 *
 * If a gateway dies before 2, the tick is still the next one. If it dies between 2 and 4, `pending` is found by the next
 * wake, or by the sweep, which looks at every schedule that is due. A slow gateway that submits after 4 gets the same
 * delegation, and its change fails. A refusal that may pass leaves `pending` for later; any other blocks the schedule, and
 * its `problem` says why.
 * Limit: an idempotency key is kept for a day, so the death between 3 and 4 of a broker that stays away for longer than a day
 * may repeat that tick, if its delegation has ended and is deleted.
 */

import { readRecord } from "../../lifecycle/stored-delegation.ts";
import { isOutOfMemory, isUnavailable } from "../../redis/errors.ts";
import { delegateRequestSchema } from "../../schema/delegation.ts";
import { ERRORS, ErrandError } from "../../schema/errors.ts";
import { invalidRequest, readAs } from "../../schema/issues.ts";
import { toInstant } from "../../schema/values.ts";
import { calendarOf } from "../../util/calendar/ticks.ts";
import { sleep } from "../../util/timing.ts";
import { lowerPriority, type Principal, toPrincipal } from "../access/access.ts";
import { warn } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { cancelIfLive } from "../delegations/cancel.ts";
import { delegate, findDelegated, type Submits } from "../delegations/delegate.ts";
import { planOf } from "./plan.ts";
import type { ScheduleAt, ScheduleChange } from "./store.ts";
import { dueAfter, type Pending, type Problem, type StoredSchedule } from "./stored-schedule.ts";

export type Advances = Submits & Reads & Pick<Broker, "retentionMs" | "schedules" | "tokens">;

/** More than the ticks that `missed: all` makes take; the sweep continues after so many. */
const MAX_STEPS = 250;
/** A wake may come early by as much as the clocks of this machine and of Redis differ. */
const EARLY_MS = 500;
/** After this time, the sweep takes over a tick that is being made. */
const TAKE_OVER_MS = 2_000;
const RETRY_MS = 5_000;

/** Returns whether it should be woken again: a schedule that is gone or not active needs no wakes. */
export async function advance(broker: Advances, id: string): Promise<boolean> {
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const found = await broker.schedules.store.find(id);
    if (!found) return false;
    if (!(await step(broker, found, steps === 0))) return found.schedule.state === "active";
  }
  return true;
}

/** Returns whether there may be more to do at once. */
async function step(broker: Advances, { schedule, now }: ScheduleAt, isFirst: boolean): Promise<boolean> {
  if (schedule.pending) return make(broker, schedule, schedule.pending, now);
  if (schedule.state !== "active") return false;
  const { settings, last } = schedule;
  const change = (more: ScheduleChange) => broker.schedules.store.exchange(schedule, more);
  const plan = planOf(calendarOf(settings), settings.missed, last, now);
  if (plan.kind === "wait") {
    if (!isFirst || plan.at === null || plan.at - now > EARLY_MS) return false;
    await sleep(plan.at - now);
    return true;
  }
  const { at } = plan;
  const leftOut = (skipped: string, since = at) => ({
    fields: { last: at },
    due: dueAfter(settings, at),
    run: { kind: "tick" as const, at, delegation_id: null, skipped, ...(since !== at && { since }) },
  });
  if (plan.kind === "missed") {
    await change(leftOut("missed", plan.since));
    return true;
  }
  const problem = await whyNot(broker, schedule, now);
  if (problem) {
    await change(blocked(problem));
    return false;
  }
  const running = settings.overlap === "queue" ? [] : await unfinished(broker, schedule);
  if (settings.overlap === "skip" && running.length > 0) {
    await change(leftOut("overlap"));
    return true;
  }
  const pending: Pending = { at, cancels: running };
  await change({ fields: { pending: JSON.stringify(pending) }, due: now + TAKE_OVER_MS });
  return true;
}

/** Steps 3 and 4. */
async function make(
  broker: Advances,
  schedule: StoredSchedule,
  { at, cancels }: Pending,
  now: number,
): Promise<boolean> {
  const { id, settings } = schedule;
  const last = Math.max(schedule.last, at);
  const due = schedule.state === "active" ? dueAfter(settings, last) : null;
  const run = { kind: "tick" as const, at, delegation_id: null, skipped: null };
  const change = (more: ScheduleChange) => broker.schedules.store.exchange(schedule, more);
  const refuse = (problem: Problem) => {
    const { fields } = blocked(problem);
    const skipped = { ...run, skipped: problem.code };
    return change({ fields: { ...fields, last, pending: "" }, due: null, run: skipped });
  };
  try {
    const problem = await whyNot(broker, schedule, now);
    const mayDelegate = problem === null && schedule.state === "active";
    if (!mayDelegate && (await findTick(broker, schedule, at)) === null) {
      // A resume decides about the tick of a paused schedule.
      if (schedule.state === "active" && problem) await refuse(problem);
      else await change({ due: null });
      return false;
    }
    const reason = `the next tick of schedule ${id}`;
    for (const earlier of cancels) await cancelIfLive(broker, schedule.owner, earlier, { reason });
    const delegation_id = await submitRun(broker, schedule, tickKey(at), at);
    await change({
      fields: { last, pending: "", tick_run: delegation_id, problem: "" },
      due,
      run: { ...run, delegation_id },
    });
    return true;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const problem = problemOf(error, now);
    if (mayPass(error)) {
      if (!(error instanceof ErrandError)) warn(broker, error, "a tick of a schedule failed");
      await change({ fields: { problem: JSON.stringify(problem) }, due: now + RETRY_MS });
      return false;
    }
    await refuse(problem);
    return false;
  }
}

const tickKey = (at: number): string => `tick ${toInstant(at)}`;
const keyOf = (id: string, key: string): string => `schedule ${id} ${key}`;

/** The delegation that the tick has made; null: none. */
export async function findTick(
  broker: Advances,
  { id, owner }: StoredSchedule,
  at: number,
): Promise<string | null> {
  const made = await findDelegated(broker, toPrincipal(owner), keyOf(id, tickKey(at)));
  return made?.id ?? null;
}

/** Delegates in the name of the owner; safe to repeat with the same key. Returns the delegation's id. */
export async function submitRun(
  broker: Advances,
  { id, owner, token, settings }: StoredSchedule,
  key: string,
  at: number,
  /** Who runs it by hand, and may delegate no more than otherwise. */
  by?: Principal,
): Promise<string> {
  const parsed = readAs(delegateRequestSchema, settings.delegation);
  if (!parsed.success) throw invalidRequest(parsed.error, { whole: "The delegation", under: "delegation" });
  const schedule = { id, at: toInstant(at) };
  const request = { ...parsed.data, metadata: { ...parsed.data.metadata, schedule } };
  try {
    const idempotencyKey = keyOf(id, key);
    const limits = await broker.tokens.limitsOf(token);
    const principal = toPrincipal(owner, {
      max_priority: lowerPriority(by?.maxPriority, limits.max_priority),
      budgets: (by?.text === owner ? by.budgets : undefined) ?? limits.budgets,
    });
    const { record } = await delegate(broker, principal, request, {
      idempotencyKey,
      body: schedule.id,
    });
    return record.id;
  } catch (error) {
    // It was made, has ended, and is deleted.
    const made =
      error instanceof ErrandError && error.code === "already_finished" ? error.context : undefined;
    if (made?.delegation_id === undefined) throw error;
    return made.delegation_id;
  }
}

/** Why the owner may no longer delegate; null: nothing is known against it. */
async function whyNot(
  { tokens }: Pick<Broker, "tokens">,
  { owner, token }: StoredSchedule,
  now: number,
): Promise<Problem | null> {
  if (await tokens.isHolder(token)) return null;
  const message = `The token with which ${owner} started the schedule was revoked or replaced, or has expired.`;
  return { code: "unauthenticated", message, at: now };
}

const blocked = (problem: Problem) => ({
  fields: { state: "blocked", problem: JSON.stringify(problem), updated_at: problem.at },
  due: null,
});

/** Its delegations that have not ended: that of its newest tick, and those of manual runs. */
const unfinished = (broker: Pick<Broker, "redis" | "shards">, { tick_run, manual_run }: StoredSchedule) =>
  liveOf(
    broker,
    [tick_run, ...manual_run].filter((id) => id !== ""),
  );

export async function liveOf(
  { redis, shards }: Pick<Broker, "redis" | "shards">,
  ids: readonly string[],
): Promise<string[]> {
  const records = await Promise.all(ids.map((id) => readRecord(redis, shards, id)));
  return records.flatMap((record) => (record && !record.finished ? [record.id] : []));
}

/** Anything that is not said to stay so, such as a full queue. */
const mayPass = (error: unknown): boolean =>
  isOutOfMemory(error) || !(error instanceof ErrandError) || ERRORS[error.code].retryable;

function problemOf(error: unknown, at: number): Problem {
  if (error instanceof ErrandError) return { code: error.code, message: error.message, at };
  const code = isOutOfMemory(error) ? "overloaded" : "internal";
  return { code, message: ERRORS[code].title, at };
}

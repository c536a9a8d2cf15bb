/**
 * The instants of a calendar: every N seconds from an anchor, or a cron expression in a time zone.
 *
 * When clocks change, cron decides as Vixie's cron does. An expression whose minute or hour begins with `*` repeats: it
 * runs whenever the clock on the wall shows a time that fits: not in the hour that is skipped, and twice in the hour that
 * is repeated. Any other expression names times of the day, and each of them happens once: a skipped one at the change, a
 * repeated one the first time.
 */
import { type Cron, nextWallTime, parseCron } from "./cron.ts";
import { changeBetween, offsetAt } from "./zone.ts";

export type Calendar =
  | { readonly every_ms: number; readonly anchor_ms: number }
  | { readonly cron: Cron; readonly zone: string };

export interface CalendarText {
  readonly cron?: string | undefined;
  readonly time_zone?: string | undefined;
  readonly every_seconds?: number | undefined;
  readonly anchor?: string | undefined;
}

/** Of settings that were checked before. */
export function calendarOf({ cron, time_zone = "UTC", every_seconds = 1, anchor }: CalendarText): Calendar {
  if (cron !== undefined) return { cron: parseCron(cron), zone: time_zone };
  return { every_ms: every_seconds * 1000, anchor_ms: anchor === undefined ? 0 : Date.parse(anchor) };
}

/** The first tick after `ms`; null: there is none. */
export function nextTick(calendar: Calendar, ms: number): number | null {
  if ("every_ms" in calendar) {
    const { every_ms, anchor_ms } = calendar;
    return anchor_ms + Math.max(0, Math.floor((ms - anchor_ms) / every_ms) + 1) * every_ms;
  }
  return calendar.cron.repeats ? nextRepeated(calendar, ms) : nextOfDay(calendar, ms);
}

type InZone = Extract<Calendar, { cron: Cron }>;

/** Goes from one change of the clocks to the next; in between, the clock on the wall runs as any clock. */
function nextRepeated({ cron, zone }: InZone, ms: number): number | null {
  let from = ms;
  let isIncluded = false;
  for (;;) {
    const offset = offsetAt(zone, from);
    const wall = nextWallTime(cron, isIncluded ? from + offset - 1 : from + offset);
    if (wall === null) return null;
    const change = changeBetween(zone, from, wall - offset);
    if (change === null) return wall - offset;
    from = change;
    isIncluded = true;
  }
}

function nextOfDay({ cron, zone }: InZone, ms: number): number | null {
  let wall: number | null = ms + offsetAt(zone, ms);
  for (;;) {
    wall = nextWallTime(cron, wall);
    if (wall === null) return null;
    const at = instantOf(zone, wall);
    if (at > ms) return at;
  }
}

/** Far enough that a zone's offset before and after a change are found, whatever the offset. */
const AROUND = 36 * 3_600_000;

/** The first instant at which the clock on the wall shows this, or has gone past it. */
function instantOf(zone: string, wall: number): number {
  const before = offsetAt(zone, wall - AROUND);
  const after = offsetAt(zone, wall + AROUND);
  for (const offset of [before, after]) if (offsetAt(zone, wall - offset) === offset) return wall - offset;
  return changeBetween(zone, wall - Math.max(before, after), wall - Math.min(before, after)) ?? wall - before;
}

/** The next ticks after `ms`, at most `count`. */
export function nextTicks(calendar: Calendar, ms: number, count: number): number[] {
  const ticks: number[] = [];
  for (
    let tick = nextTick(calendar, ms);
    tick !== null && ticks.length < count;
    tick = nextTick(calendar, tick)
  )
    ticks.push(tick);
  return ticks;
}

/** The newest ticks after `from`, up to and with `to`; at most `count`. The cost does not grow with the time between. */
export function newestTicks(calendar: Calendar, from: number, to: number, count: number): number[] {
  for (let span = 60_000; ; span *= 4) {
    const start = Math.max(from, to - span);
    const ticks: number[] = [];
    for (let tick = nextTick(calendar, start); tick !== null && tick <= to; tick = nextTick(calendar, tick))
      ticks.push(tick);
    if (start === from || ticks.length >= count) return ticks.slice(-count);
  }
}

/** The time axis of a waterfall: where an instant is drawn, its ticks, and the long silences that are drawn short. */

/** A silence that is drawn short. The last one of live work goes on. */
export interface Cut {
  readonly from: number;
  readonly to: number;
}

/** A shorter silence is drawn as it is. */
const LONG_MS = 300_000;
/** A silence is cut if it lasts this many times as long as everything else. */
const TIMES = 6;
/** The rest must be worth the room. */
const LEAST_MS = 5_000;
/** More of them would be a rhythm, not an exception. */
const MAX_CUTS = 3;

/** When something happened: the first and the last time, and the longest silences between. */
export interface Base {
  readonly start: number;
  readonly last: number;
  readonly gaps: readonly Cut[];
}

export function baseOf(start: number, instants: Iterable<number>): Base {
  const sorted = [...instants].filter((instant) => instant > start).sort((a, b) => a - b);
  const gaps = sorted.map((to, index): Cut => ({ from: sorted[index - 1] ?? start, to }));
  return { start, last: sorted.at(-1) ?? start, gaps: gaps.sort(longestFirst).slice(0, MAX_CUTS) };
}

const msOf = ({ from, to }: Cut): number => to - from;
const longestFirst = (a: Cut, b: Cut): number => msOf(b) - msOf(a);

/** The silences up to `end` to draw short, in order: the few that would leave no room for everything else. */
export function cutsOf({ start, last, gaps }: Base, end: number): readonly Cut[] {
  const all = [...gaps, { from: last, to: end }].sort(longestFirst).slice(0, MAX_CUTS);
  let rest = end - start;
  let cuts = 0;
  for (const [index, gap] of all.entries()) {
    rest -= msOf(gap);
    if (msOf(gap) > Math.max(LONG_MS, TIMES * rest) && rest >= LEAST_MS) cuts = index + 1;
  }
  return joined(all.slice(0, cuts).sort((a, b) => a.from - b.from));
}

/** Two silences with only a moment between them are one: their lengths would have no room beside each other. */
function joined(cuts: readonly Cut[]): readonly Cut[] {
  const all: Cut[] = [];
  for (const cut of cuts) {
    const before = all.at(-1);
    if (before && cut.from - before.to <= SECOND) all[all.length - 1] = { from: before.from, to: cut.to };
    else all.push(cut);
  }
  return all;
}

/** The axis of work that ended. */
export const endedAxis = (base: Base): Axis => axisOf(base.start, base.last, cutsOf(base, base.last));

/**
 * The axis of live work. It ends on the tick after now, so that it moves seldom; after a long silence it ends now, which
 * moves nothing on it.
 */
export function liveAxis(base: Base, now: number): Axis {
  const end = Math.max(now, base.last);
  const cuts = cutsOf(base, end);
  if (cuts.at(-1)?.to === end && end > base.last) return axisOf(base.start, end, cuts);
  const cutMs = cuts.reduce((sum, cut) => sum + msOf(cut), 0);
  // With a little room after now.
  const ms = Math.max(SECOND, end - base.start - cutMs) * 1.01;
  const step = stepOf(ms);
  return axisOf(base.start, base.start + cutMs + Math.ceil(ms / step) * step, cuts);
}

export interface Axis {
  readonly start: number;
  readonly end: number;
  readonly cuts: readonly Cut[];
  /** How long the axis is, as drawn. */
  readonly drawnMs: number;
  /** Between 0 and 1, also for an instant outside. */
  readonly place: (instant: number) => number;
}

/** A cut is as wide as this share of everything else. */
const CUT_SHARE = 0.12;

export function axisOf(start: number, end: number, cuts: readonly Cut[] = []): Axis {
  const whole = Math.max(1, end - start);
  const rest = Math.max(1, whole - cuts.reduce((sum, cut) => sum + msOf(cut), 0));
  const cutMs = rest * CUT_SHARE;
  const drawnMs = rest + cutMs * cuts.length;
  const place = (instant: number): number => {
    let drawn = instant - start;
    for (const { from, to } of cuts) {
      if (instant <= from) break;
      const inside = Math.min(instant, to) - from;
      drawn += (inside / (to - from)) * cutMs - inside;
    }
    return Math.min(1, Math.max(0, drawn / drawnMs));
  };
  return { start, end, cuts, drawnMs, place };
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY),
];
const MOST_TICKS = 4;

/** The time between two ticks, so that there are few. */
export const stepOf = (ms: number): number =>
  STEPS.find((step) => ms / step <= MOST_TICKS) ?? Math.ceil(ms / DAY / MOST_TICKS) * DAY;

export interface Tick {
  readonly at: number;
  readonly place: number;
  readonly label: string;
}

/** Closer to each other or to the end, two labels would overlap. */
const APART = 0.13;

export function ticksOf({ start, end, cuts, drawnMs, place }: Axis): readonly Tick[] {
  const step = stepOf(drawnMs);
  const labels = cuts.map((cut) => (place(cut.from) + place(cut.to)) / 2);
  const isNear = (one: number, other: number) => Math.abs(one - other) < APART;
  const ticks: Tick[] = [];
  let from = start;
  for (const cut of [...cuts, { from: end, to: end }]) {
    const first = Math.ceil((from - start) / step);
    for (let n = first; start + n * step <= cut.from; n += 1) {
      const at = start + n * step;
      const tick = { at, place: place(at), label: tickText(n * step, step) };
      if (tick.place - (ticks.at(-1)?.place ?? -1) >= APART && !labels.some((at) => isNear(at, tick.place)))
        ticks.push(tick);
    }
    from = cut.to;
  }
  return ticks;
}

/** `0:30`, `5 min`, `1:05 h`, `3 d`: the unit fits the distance of the ticks. */
function tickText(ms: number, step: number): string {
  if (ms === 0) return "0";
  if (step < SECOND) return ms < SECOND ? `${ms} ms` : `${ms / SECOND} s`;
  if (step < MINUTE) return clockText(ms);
  if (ms < HOUR) return `${ms / MINUTE} min`;
  if (step < HOUR) return `${Math.floor(ms / HOUR)}:${two(Math.floor(ms / MINUTE) % 60)} h`;
  return ms % DAY === 0 ? `${ms / DAY} d` : `${ms / HOUR} h`;
}

const two = (part: number): string => String(part).padStart(2, "0");

/** `0:07`, `12:07`, `1:02:07`. */
export function clockText(ms: number): string {
  const seconds = Math.floor(ms / SECOND);
  const minutes = Math.floor(seconds / 60);
  const start = minutes < 60 ? `${minutes}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}`;
  return `${start}:${two(seconds % 60)}`;
}

/** The attempts of a delegation as lanes, the scale of their time, and the tick nearest to a place. */
import { isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { largestUnit } from "../ui/words.ts";

export interface Lane {
  readonly attempt: number;
  readonly events: DelegationEvent[];
  /** From and to, in milliseconds since 1970; a null end: the lease goes on. */
  readonly leases: [number, number | null][];
}

/** Events that end a lease; the attempt after one may be another. */
const ENDS_LEASE: readonly string[] = ["released", "lease_expired", "retrying", "interrupted", "parked"];
/** A question that is held does not end the lease. */
const isHeld = ({ status, expires_at }: DelegationEvent): boolean =>
  status === "interrupted" && expires_at !== undefined;
const ENDS_ATTEMPT: readonly string[] = ["lease_expired", "retrying"];

export function lanesOf(events: readonly DelegationEvent[]): readonly Lane[] {
  let lane: Lane = { attempt: 1, events: [], leases: [] };
  const lanes = [lane];
  let leasedAt: number | null = null;
  for (const event of events) {
    const at = Date.parse(event.at);
    const status = event.status ?? "";
    if (status === "reclaimed") lane = goOn(lanes, lane);
    if (status === "leased" || status === "reclaimed") leasedAt = at;
    lane.events.push(event);
    const ends = isTerminal(event.state) || (ENDS_LEASE.includes(status) && !isHeld(event));
    if (leasedAt !== null && ends) {
      lane.leases.push([leasedAt, at]);
      leasedAt = null;
    }
    if (ENDS_ATTEMPT.includes(status)) {
      lane = { attempt: lane.attempt + 1, events: [], leases: [] };
      lanes.push(lane);
    }
  }
  if (leasedAt !== null) lane.leases.push([leasedAt, null]);
  return lanes.filter(({ events: own, leases }) => own.length > 0 || leases.length > 0);
}

/** The attempt before goes on, because its lapsed lease was reclaimed; `lane` is what began after the lapse. */
function goOn(lanes: Lane[], lane: Lane): Lane {
  const before = lanes.at(-2);
  // The events may begin later.
  if (!before) return lane;
  lanes.pop();
  before.events.push(...lane.events);
  return before;
}

const LONG_MS = 60_000;
/** A longer pause is drawn as if it were this long. */
const SHORT_MS = 6_000;

/** A pause that is drawn short: its place between 0 and 1, and how long it was. */
export interface Break {
  readonly at: number;
  readonly label: string;
}

/** Instants on a line, on which long pauses are short. */
export interface Line {
  readonly last: number;
  /** The place of each instant, in milliseconds from the first one. */
  readonly places: ReadonlyMap<number, number>;
  readonly breaks: readonly { readonly at: number; readonly ms: number }[];
  readonly length: number;
}

export function lineOf(instants: readonly number[]): Line {
  const sorted = [...new Set(instants)].sort((a, b) => a - b);
  const places = new Map<number, number>();
  const breaks: { at: number; ms: number }[] = [];
  let length = 0;
  for (const [index, instant] of sorted.entries()) {
    const pause = instant - (sorted[index - 1] ?? instant);
    if (pause > LONG_MS) breaks.push({ at: length + SHORT_MS / 2, ms: pause });
    length += drawnLength(pause);
    places.set(instant, length);
  }
  return { last: sorted.at(-1) ?? 0, places, breaks, length };
}

const drawnLength = (pause: number): number => (pause > LONG_MS ? SHORT_MS : pause);

/** The line up to `end`, with places from 0 to 1. The end may be now, and move on: this does not look at every instant. */
export function scaleOf({ last, places, breaks, length }: Line, end: number) {
  const pause = Math.max(0, end - last);
  const whole = Math.max(1, length + drawnLength(pause));
  const isBroken = pause > LONG_MS;
  const all = isBroken ? [...breaks, { at: length + SHORT_MS / 2, ms: pause }] : breaks;
  return {
    place: (instant: number): number => (places.get(instant) ?? whole) / whole,
    breaks: all.map(({ at, ms }): Break => ({ at: at / whole, label: largestUnit(ms) })),
  };
}

/** An event in its lane. */
export interface Tick {
  readonly event: DelegationEvent;
  readonly attempt: number;
  /** Between 0 and 1. */
  readonly place: number;
}

/** The index of the tick nearest to the place: of this attempt, or of all if it has none. */
export function nearestOf(
  ticks: readonly Pick<Tick, "attempt" | "place">[],
  attempt: number,
  place: number,
): number {
  const hasTicks = ticks.some((tick) => tick.attempt === attempt);
  let nearest = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, tick] of ticks.entries()) {
    if (hasTicks && tick.attempt !== attempt) continue;
    const distance = Math.abs(tick.place - place);
    if (distance >= least) continue;
    nearest = index;
    least = distance;
  }
  return nearest;
}

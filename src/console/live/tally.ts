/** The live delegations, counted: all of them, and those of each agent. */
import { computed, type Signal } from "@preact/signals";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { inView } from "../data/flights.ts";
import { count, PHASES, type Phase } from "../ui/words.ts";
import { byNeed, instantOf } from "./need.ts";

export interface Tally {
  readonly working: number;
  readonly asking: number;
  readonly queued: number;
}

export interface Group extends Tally {
  readonly target: string;
  /** Since when the oldest has been queued; null if none is. */
  readonly oldestAt: string | null;
  /** The rows to show, and of how many. */
  readonly rows: readonly Signal<Flight>[];
  readonly total: number;
}

/** Rows of a group. */
const SHOWN = 5;

/** By agent, in the order of the names, so that no group moves. */
export const groups = computed<ReadonlyMap<string, Group>>(() => {
  const byTarget = new Map<string, Signal<Flight>[]>();
  for (const flight of inView.value) {
    // The target of a delegation never changes.
    const { target } = flight.peek();
    const group = byTarget.get(target);
    if (group) group.push(flight);
    else byTarget.set(target, [flight]);
  }
  return new Map(
    [...byTarget]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([target, flights]) => [target, { target, ...tallyOf(flights), ...rowsOf(byNeed(flights)) }]),
  );
});

export const tally = computed<Tally>(() => tallyOf(inView.value));

function tallyOf(flights: readonly Signal<Flight>[]): Tally {
  const number = (phase: Phase) => flights.filter(({ value }) => PHASES[value.state] === phase).length;
  return { working: number("working"), asking: number("asks"), queued: number("queued") };
}

/** Of delegations in the order of need. */
function rowsOf(flights: readonly Signal<Flight>[]): Pick<Group, "rows" | "total" | "oldestAt"> {
  const oldest = flights.find(({ value }) => value.state === "submitted");
  const oldestAt = oldest ? instantOf(oldest.value) : null;
  return {
    rows: flights.slice(0, SHOWN),
    total: flights.length,
    // The first may be one that starts later.
    oldestAt: oldestAt !== null && Date.parse(oldestAt) <= now.peek() ? oldestAt : null,
  };
}

/** `1 working, 3 asking, 2 queued`. */
export const tallyText = ({ working, asking, queued }: Tally): string =>
  Object.entries({ working, asking, queued })
    .filter(([, number]) => number > 0)
    .map(([word, number]) => count(number, word, word))
    .join(", ");

/** The live delegations, counted: all of them, and those of each agent. */
import { computed, type Signal } from "@preact/signals";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { inView } from "../data/flights.ts";
import { count, PHASES, type Phase } from "../ui/words.ts";

export interface Tally {
  readonly working: number;
  readonly asking: number;
  readonly queued: number;
}

export interface Group extends Tally {
  readonly target: string;
  /** Since when the oldest has been queued; null if none is. */
  readonly oldestAt: string | null;
  /** The rows to show, and how many are left out. */
  readonly rows: readonly Signal<Flight>[];
  readonly more: number;
}

/** Rows of a group; at least KEPT of them show work in progress, if there is any. */
const SHOWN = 5;
const KEPT = 3;

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
      .map(([target, flights]) => [
        target,
        { target, ...tallyOf(flights), ...oldestOf(flights), ...rowsOf(flights) },
      ]),
  );
});

export const tally = computed<Tally>(() => tallyOf(inView.value));

function tallyOf(flights: readonly Signal<Flight>[]): Tally {
  const number = (phase: Phase) => flights.filter(({ value }) => PHASES[value.state] === phase).length;
  return { working: number("working"), asking: number("asks"), queued: number("queued") };
}

function oldestOf(flights: readonly Signal<Flight>[]): Pick<Group, "oldestAt"> {
  const readyAt = flights
    .filter(({ value }) => value.state === "submitted")
    .map(({ value }) => value.not_before_at ?? value.created_at)
    .filter((at) => Date.parse(at) <= now.peek());
  return { oldestAt: readyAt.sort((a, b) => Date.parse(a) - Date.parse(b))[0] ?? null };
}

/** Delegations in progress or just ended come first, then the newest queued ones. */
function rowsOf(flights: readonly Signal<Flight>[]): Pick<Group, "rows" | "more"> {
  const isQueued = ({ value }: Signal<Flight>) => value.state === "submitted";
  const queued = flights.filter(isQueued);
  const active = flights.filter((flight) => !isQueued(flight));
  const rows = [...active.slice(0, Math.max(KEPT, SHOWN - queued.length)), ...queued].slice(0, SHOWN);
  return { rows, more: flights.length - rows.length };
}

/** `1 working, 3 asking, 2 queued`. */
export const tallyText = ({ working, asking, queued }: Tally): string =>
  Object.entries({ working, asking, queued })
    .filter(([, number]) => number > 0)
    .map(([word, number]) => count(number, word, word))
    .join(", ");

/** The live delegations, counted: all of them, and those of each agent. */
import { computed, type Signal } from "@preact/signals";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { inView } from "../data/flights.ts";
import { count, PHASES, type Phase } from "../ui/words.ts";

export interface Tally {
  readonly working: number;
  readonly asks: number;
  readonly queued: number;
  /** Since when the oldest has been queued; null if none is. */
  readonly oldestAt: string | null;
}

export interface Group extends Tally {
  readonly target: string;
  /** The rows to show, and how many are left out. */
  readonly rows: readonly Signal<Flight>[];
  readonly more: number;
}

/** Rows of a group, and how many of them are at least kept for work in progress if there is that much. */
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
      .map(([target, flights]) => [target, { target, ...tallyOf(flights), ...rowsOf(flights) }]),
  );
});

export const tally = computed<Tally>(() => {
  const all = [...groups.value.values()];
  const sum = (name: "working" | "asks" | "queued") => all.reduce((total, group) => total + group[name], 0);
  return { working: sum("working"), asks: sum("asks"), queued: sum("queued"), oldestAt: null };
});

function tallyOf(flights: readonly Signal<Flight>[]): Tally {
  const counts: Record<Phase, number> = {
    ...{ queued: 0, working: 0, asks: 0 },
    ...{ completed: 0, failed: 0, canceled: 0 },
  };
  let oldestAt: string | null = null;
  for (const { value } of flights) {
    const phase = PHASES[value.state];
    counts[phase] += 1;
    const readyAt = value.not_before_at ?? value.created_at;
    if (phase !== "queued" || Date.parse(readyAt) > now.peek()) continue;
    if (oldestAt === null || Date.parse(readyAt) < Date.parse(oldestAt)) oldestAt = readyAt;
  }
  const { working, asks, queued } = counts;
  return { working, asks, queued, oldestAt };
}

/** What is in progress or has just ended comes first; the newest of what is queued follows. */
function rowsOf(flights: readonly Signal<Flight>[]): Pick<Group, "rows" | "more"> {
  const isQueued = ({ value }: Signal<Flight>) => value.state === "submitted";
  const queued = flights.filter(isQueued);
  const active = flights.filter((flight) => !isQueued(flight));
  const rows = [...active.slice(0, Math.max(KEPT, SHOWN - queued.length)), ...queued].slice(0, SHOWN);
  return { rows, more: flights.length - rows.length };
}

/** `1 working, 3 asking, 2 queued`. */
export const tallyText = ({ working, asks, queued }: Tally): string =>
  [...Object.entries({ working, asking: asks, queued })]
    .filter(([, number]) => number > 0)
    .map(([word, number]) => count(number, word, word))
    .join(", ");

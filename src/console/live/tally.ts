/** The live delegations, counted: all of them, and those of each agent. */
import { computed, type Signal } from "@preact/signals";
import { now } from "../data/clock.ts";
import { inView } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
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
  readonly rows: readonly Signal<ListedDelegation>[];
  readonly total: number;
}

/** Rows of a group. */
const SHOWN = 5;

/** By agent, in the order of the names, so that no group moves. */
export const groups = computed<ReadonlyMap<string, Group>>(() => {
  const byTarget = new Map<string, Signal<ListedDelegation>[]>();
  for (const listed of inView.value) {
    // The target of a delegation never changes.
    const { target } = listed.peek();
    const group = byTarget.get(target);
    if (group) group.push(listed);
    else byTarget.set(target, [listed]);
  }
  return new Map(
    [...byTarget]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([target, delegations]) => [
        target,
        { target, ...tallyOf(delegations), ...rowsOf(byNeed(delegations)) },
      ]),
  );
});

export const tally = computed<Tally>(() => tallyOf(inView.value));

function tallyOf(delegations: readonly Signal<ListedDelegation>[]): Tally {
  const number = (phase: Phase) => delegations.filter(({ value }) => PHASES[value.state] === phase).length;
  return { working: number("working"), asking: number("asks"), queued: number("queued") };
}

/** Of delegations in the order of need. */
function rowsOf(
  delegations: readonly Signal<ListedDelegation>[],
): Pick<Group, "rows" | "total" | "oldestAt"> {
  const oldest = delegations.find(({ value }) => value.state === "submitted");
  const oldestAt = oldest ? instantOf(oldest.value) : null;
  return {
    rows: delegations.slice(0, SHOWN),
    total: delegations.length,
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

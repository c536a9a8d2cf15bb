/** The live delegations by what happens to them, and how many there are. */
import { computed, type Signal } from "@preact/signals";
import { asking, inView } from "../data/delegations.ts";
import { asks, type ListedDelegation } from "../data/listed.ts";
import { answerable } from "../needs/mine.ts";
import { maySteer } from "../session/rights.ts";
import { count } from "../ui/words.ts";
import { byNeed } from "./need.ts";

type Listed = Signal<ListedDelegation>;

export interface Work {
  /** Work in progress and what ended just now, the oldest first. */
  readonly working: readonly Listed[];
  /** What waits for its parts, the oldest first: nobody works on it, and it is in no queue. */
  readonly awaiting: readonly Listed[];
  /** In the order of the queue. */
  readonly queued: readonly Listed[];
}

export const work = computed<Work>(() => {
  const working: Listed[] = [];
  const awaiting: Listed[] = [];
  const queued: Listed[] = [];
  for (const listed of inView.value) {
    const { state } = listed.value;
    if (state === "submitted") queued.push(listed);
    else if (state === "awaiting_children") awaiting.push(listed);
    else if (!asks(state)) working.push(listed);
  }
  return { working: working.reverse(), awaiting: awaiting.reverse(), queued: byNeed(queued) };
});

/** The delegations that ask somebody else. What asks the reader is in "Needs you". */
export const askingOthers = computed(() => asking.value.filter(({ value }) => !maySteer(value)));

/** `163 delegations: 1 working, 3 asking, 2 queued`. */
export const headText = computed(() => {
  const counts = {
    working: work.value.working.filter(({ value }) => value.state === "working").length,
    asking: answerable.value.length + askingOthers.value.length,
    "waiting for parts": work.value.awaiting.length,
    queued: work.value.queued.length,
  };
  const parts = Object.entries(counts).filter(([, number]) => number > 0);
  const all = count(inView.value.length, "delegation");
  return [all, parts.map(([word, number]) => count(number, word, word)).join(", ")]
    .filter(Boolean)
    .join(": ");
});

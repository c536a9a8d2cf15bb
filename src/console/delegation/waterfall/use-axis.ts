import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type Delegation, isTerminal } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { now } from "../../data/clock.ts";
import { type Axis, baseOf, endedAxis, liveAxis } from "./axis.ts";
import type { Node } from "./node.ts";

/** The axis of the delegation and what is under it. While one of them is live, it changes only when it must. */
export function useAxis(
  { created_at }: Delegation,
  nodes: ReadonlyMap<string, Node>,
  events: readonly DelegationEvent[] | null,
): { readonly axis: Axis; readonly isLive: boolean } {
  const base = useMemo(
    () => baseOf(Date.parse(created_at), instantsOf(nodes, events ?? [])),
    [nodes, events, created_at],
  );
  const isLive = useMemo(() => [...nodes.values()].some(({ state }) => !isTerminal(state)), [nodes]);
  const axis = useMemo(() => {
    let shown = endedAxis(base);
    if (!isLive) return computed(() => shown);
    return computed(() => {
      const next = liveAxis(base, now.value);
      if (!isSame(shown, next)) shown = next;
      return shown;
    });
  }, [base, isLive]);
  return { axis: axis.value, isLive };
}

/** A silence that goes on moves nothing. */
const isSame = (shown: Axis, next: Axis): boolean =>
  shown.cuts.length === next.cuts.length &&
  shown.cuts.every(({ from }, index) => from === next.cuts[index]?.from) &&
  (shown.end === next.end || (endsCut(shown) && endsCut(next)));

const endsCut = ({ cuts, end }: Axis): boolean => cuts.at(-1)?.to === end;

/** All instants at which something happened. Of the events, only those of the delegation itself are known from the start. */
function* instantsOf(nodes: ReadonlyMap<string, Node>, events: readonly DelegationEvent[]): Iterable<number> {
  for (const { at } of events) yield Date.parse(at);
  for (const { created_at, leased_at, finished_at, questions } of nodes.values()) {
    for (const at of [created_at, leased_at, finished_at]) if (at !== null) yield Date.parse(at);
    for (const { askedAt, answeredAt } of questions)
      for (const at of [askedAt, answeredAt]) if (at !== null) yield at;
  }
}

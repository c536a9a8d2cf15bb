/** The selected rows of a search, for one action on all of them. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Delegation } from "../../schema/delegation.ts";
import { actOf, isOffered } from "./acts.ts";

/** A selection has at most this many. */
export const MOST = 1_000;

export interface Selection {
  /** Those of the list that are still as they were when they were selected, in its order. */
  readonly chosen: readonly Delegation[];
  readonly has: (delegation: Delegation) => boolean;
  /** `isRange`: with those between it and the one that was toggled before. */
  readonly toggle: (delegation: Delegation, isRange: boolean) => void;
  readonly all: () => void;
  readonly none: () => void;
}

/** Who selected a failed delegation did not select one that was repeated meanwhile. */
const signOf = (delegation: Delegation): string => `${actOf(delegation)} ${delegation.redriven_as}`;

const signs = (some: readonly Delegation[]): ReadonlyMap<string, string> =>
  new Map(some.slice(0, MOST).map((one) => [one.id, signOf(one)]));

export function useSelected(found: readonly Delegation[]): Selection {
  const selected = useSignal<ReadonlyMap<string, string>>(new Map());
  const last = useRef<string | null>(null);
  const has = (one: Delegation) => actOf(one) !== null && selected.value.get(one.id) === signOf(one);
  const chosen = selected.value.size === 0 ? [] : found.filter(has);
  // What has left the list, or changed, is not selected when it comes back.
  useEffect(() => {
    // As it is now: a key may have come since the list was drawn.
    const now = found.filter(has);
    if (now.length !== selected.peek().size) selected.value = signs(now);
  });
  const toggle = (one: Delegation, isRange: boolean) => {
    const at = found.indexOf(one);
    const from = isRange ? found.findIndex(({ id }) => id === last.current) : -1;
    const between = from === -1 ? [] : found.slice(Math.min(from, at), Math.max(from, at) + 1);
    const changed = new Set([one, ...between.filter(isOffered)]);
    // As it is now: two keys may come before the list is drawn again.
    const others = found.filter((other) => has(other) && !changed.has(other));
    selected.value = signs(has(one) ? others : [...others, ...changed]);
    last.current = one.id;
  };
  return {
    chosen,
    has,
    toggle,
    all: () => {
      selected.value = signs(found.filter(isOffered));
    },
    none: () => {
      selected.value = new Map();
    },
  };
}

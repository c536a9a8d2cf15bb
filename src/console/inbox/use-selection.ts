/** Which question is shown beside the list. It stays until the reader chooses another, whatever comes and goes. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Asked } from "../needs/rows.ts";
import type { Group } from "./equal.ts";

interface Chosen {
  readonly group: Group;
  readonly asked: Asked;
}

/** `isComplete`: all questions were read. Before, the first of them may not be there yet, and none is shown. */
export function useSelection(groups: readonly Group[], isComplete: boolean) {
  const id = useSignal<string | null>(null);
  const last = useRef<Chosen | null>(null);
  // Nothing waits any more.
  if (groups.length === 0) last.current = null;
  const chosen = find(groups, id.value) ?? last.current ?? (isComplete ? first(groups) : null);
  last.current = chosen;
  const select = (asked: string) => {
    last.current = null;
    id.value = asked;
  };
  // By itself it was never chosen, so that the next one may come when it is gone from the list and nobody looks.
  if (chosen && id.peek() === null) id.value = chosen.asked.id;
  return { chosen, select };
}

function find(groups: readonly Group[], id: string | null): Chosen | null {
  if (id === null) return null;
  for (const group of groups) {
    const asked = group.members.find((one) => one.id === id);
    if (asked) return { group, asked };
  }
  return null;
}

function first([group]: readonly Group[]): Chosen | null {
  return group ? { group, asked: group.members[0] } : null;
}

/** The questions that wait for the reader, each with the note that stands in its place when it is no longer open. */
import { expiryOf } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { type Note, notes } from "./outcomes.ts";

export interface Asked {
  /** Of the question. */
  readonly id: string;
  readonly listed: ListedDelegation;
  readonly note?: Note;
}

/** The soonest to expire first. `open`: the ids of the questions. */
export function askedRows(
  questions: readonly ListedDelegation[],
  open: ReadonlySet<string | undefined>,
): readonly Asked[] {
  const over = notes
    .entries()
    .flatMap(([id, note]) => (open.has(id) ? [] : { id, listed: note.listed, note }));
  const asked = questions.flatMap((listed) => (listed.interrupt ? { id: listed.interrupt.id, listed } : []));
  return over.length === 0
    ? asked
    : [...asked, ...over].sort((a, b) => expiryOf(a.listed) - expiryOf(b.listed));
}

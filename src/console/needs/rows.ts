/** The questions that wait for the reader, each with the note that stands in its place when it is no longer open. */
import { expiryOf } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { rememberAsked } from "./last-asked.ts";
import { answerable, isForOthers } from "./mine.ts";
import { closed, type Note, notes } from "./outcomes.ts";

export interface Asked {
  /** Of the question. */
  readonly id: string;
  readonly listed: ListedDelegation;
  readonly note?: Note;
}

export type IsOpen = (id: string) => boolean;

/** The open questions that the reader may answer, and all rows. */
export function askedNow() {
  const questions = answerable.value;
  for (const listed of questions) rememberAsked(listed);
  const open = new Set(questions.map(({ interrupt }) => interrupt?.id));
  const isOpen: IsOpen = (id) => open.has(id);
  return { questions, isOpen, rows: askedRows(questions, open) };
}

/** What became of a question; undefined: it is open. A row that keeps its place may be older than that. */
export const outcomeOf = ({ id, listed, note }: Asked, isOpen: IsOpen): Note | undefined =>
  isOpen(id) ? undefined : (note ?? closed(listed));

/** What waits for the approvals of others comes last, and else the soonest to expire first. `open`: the ids of the questions. */
function askedRows(
  questions: readonly ListedDelegation[],
  open: ReadonlySet<string | undefined>,
): readonly Asked[] {
  const over = notes
    .entries()
    .flatMap(([id, note]) => (open.has(id) ? [] : { id, listed: note.listed, note }));
  const asked = questions.flatMap((listed) => (listed.interrupt ? { id: listed.interrupt.id, listed } : []));
  const isLast = ({ listed }: Asked) => Number(isForOthers(listed));
  return [...asked, ...over].sort((a, b) => isLast(a) - isLast(b) || expiryOf(a.listed) - expiryOf(b.listed));
}

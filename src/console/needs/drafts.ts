/** Answers that the reader began and has not sent. A form that may hold a secret is never stored. */
import { effect, type Signal, signal, untracked } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as z from "zod";
import { hasQuestions } from "../data/delegations.ts";
import { draftOf, forgetDrafts, keepDraft, storeDrafts } from "../data/drafts.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { answerable } from "./mine.ts";
import { pending, unsent } from "./outcomes.ts";

export interface Draft {
  readonly text: Signal<string>;
  /** Whether the form of the action is open. */
  readonly isEditing: Signal<boolean>;
  /** The edited arguments, or the data of the answer. */
  readonly value: Signal<unknown>;
}

const KIND = "answer/";
const storedSchema = z.object({ text: z.string(), isEditing: z.boolean(), value: z.unknown() });

/** By question and request: a question may have a card and a place in its delegation, and both are one form. */
const known = new Map<string, Draft>();

/** `start`: the value before anybody typed. `isSecret`: nothing of it is stored. */
export function useDraft(question: string, request: string, start: unknown, isSecret: boolean): Draft {
  const key = `${KIND}${question}/${request}`;
  return useMemo(() => known.get(key) ?? begin(key, start, isSecret), [key]);
}

function begin(key: string, start: unknown, isSecret: boolean): Draft {
  const before = isSecret ? undefined : storedSchema.safeParse(draftOf(key)).data;
  const draft: Draft = {
    text: signal(before?.text ?? ""),
    isEditing: signal(before?.isEditing ?? false),
    value: signal(before === undefined ? start : before.value),
  };
  const { text, isEditing, value } = draft;
  const first = JSON.stringify(start);
  keepDraft(key, () => {
    const now = { text: text.value, isEditing: isEditing.value, value: value.value };
    const isEmpty = now.text === "" && !now.isEditing && JSON.stringify(now.value) === first;
    return isSecret || isEmpty ? undefined : now;
  });
  known.set(key, draft);
  return draft;
}

/** Once a question is over, nobody needs what was typed. */
function forgetOthers(open: ReadonlySet<string>): void {
  const isOver = (key: string) => key.startsWith(KIND) && !open.has(key.split("/", 2)[1] ?? "");
  for (const key of known.keys()) if (isOver(key)) known.delete(key);
  forgetDrafts(isOver);
}

/** Keeps drafts of all kinds while somebody is signed in. */
export function watchDrafts(): () => void {
  const stop = storeDrafts();
  const forget = effect(() => {
    // An answer that is on its way may be taken back, and one that was not sent may be sent again.
    const open = new Set([...answerable.value.flatMap(idOf), ...pending.keys(), ...unsent.keys()]);
    if (hasQuestions.value) untracked(() => forgetOthers(open));
  });
  return () => {
    forget();
    stop();
    known.clear();
  };
}

const idOf = ({ interrupt }: ListedDelegation): string[] => (interrupt ? [interrupt.id] : []);

/**
 * Answers that the reader began and has not sent. They survive another view and a reload of the tab, and end with the
 * session. A form that may hold a secret is never stored. Limit: beyond 200 000 characters, the oldest are dropped.
 */
import { effect, type Signal, signal, untracked } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as z from "zod";
import { hasQuestions } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { session } from "../session/session.ts";
import { mine } from "./mine.ts";
import { pending, unsent } from "./outcomes.ts";

export interface Draft {
  readonly text: Signal<string>;
  /** Whether the form of the action is open. */
  readonly isEditing: Signal<boolean>;
  /** The edited arguments, or the data of the answer. */
  readonly value: Signal<unknown>;
}

const STORE = "errand-drafts";
const MAX_CHARACTERS = 200_000;
/** Somebody who types does not wait for each letter to be stored. */
const STORE_MS = 300;

const storedSchema = z.object({
  session: z.string(),
  drafts: z.array(
    z.object({ key: z.string(), text: z.string(), isEditing: z.boolean(), value: z.unknown() }),
  ),
});
type Stored = z.infer<typeof storedSchema>["drafts"][number];

interface Known {
  readonly draft: Draft;
  /** As it is stored; null: there is nothing to store. */
  readonly read: () => Stored | null;
  readonly stop: () => void;
}

/** By question and request; the latest ones last. */
const known = new Map<string, Known>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** `start`: the value before anybody typed. `isSecret`: nothing of it is stored. */
export function useDraft(question: string, request: string, start: unknown, isSecret: boolean): Draft {
  const key = `${question}/${request}`;
  return useMemo(() => known.get(key)?.draft ?? begin(key, start, isSecret), [key]);
}

function begin(key: string, start: unknown, isSecret: boolean): Draft {
  const before = isSecret ? undefined : readStored().find((one) => one.key === key);
  const draft: Draft = {
    text: signal(before?.text ?? ""),
    isEditing: signal(before?.isEditing ?? false),
    value: signal(before === undefined ? start : before.value),
  };
  const { text, isEditing, value } = draft;
  const first = JSON.stringify(start);
  const read = (): Stored | null => {
    const now = { key, text: text.value, isEditing: isEditing.value, value: value.value };
    const isEmpty = now.text === "" && !now.isEditing && JSON.stringify(now.value) === first;
    return isSecret || isEmpty ? null : now;
  };
  const stop = effect(() => {
    read();
    // It begins as it is stored.
    if (!known.has(key)) return;
    clearTimeout(timer);
    timer = setTimeout(() => store(), STORE_MS);
  });
  known.set(key, { draft, read, stop });
  return draft;
}

/** Once a question is over, nobody needs what was typed. */
function forgetOthers(open: ReadonlySet<string>): void {
  const isOver = (key: string) => !open.has(key.split("/", 1)[0] ?? "");
  for (const [key, { stop }] of known) {
    if (!isOver(key)) continue;
    stop();
    known.delete(key);
  }
  store((key) => !isOver(key));
}

/** Stores what was typed when the page is left, and forgets all when the session ends. */
export function watchDrafts(): () => void {
  const leave = () => store();
  addEventListener("pagehide", leave);
  const forget = effect(() => {
    // An answer that is on its way may be taken back, and one that was not sent may be sent again.
    const open = new Set([...mine.value.flatMap(idOf), ...pending.keys(), ...unsent.keys()]);
    if (hasQuestions.value) untracked(() => forgetOthers(open));
  });
  return () => {
    removeEventListener("pagehide", leave);
    forget();
    clearTimeout(timer);
    for (const { stop } of known.values()) stop();
    known.clear();
    sessionStorage.removeItem(STORE);
  };
}

const idOf = ({ interrupt }: ListedDelegation): string[] => (interrupt ? [interrupt.id] : []);

/** `isWanted`: of the stored ones that no form has shown since the page was loaded, those to keep. */
function store(isWanted: (key: string) => boolean = () => true): void {
  clearTimeout(timer);
  const id = session.peek()?.id;
  if (id === undefined) return;
  const shown = [...known.values()].flatMap(({ read }) => untracked(read) ?? []);
  const drafts = [...readStored().filter(({ key }) => !known.has(key) && isWanted(key)), ...shown]
    // One that is too large by itself takes the place of no other.
    .filter((draft) => JSON.stringify(draft).length <= MAX_CHARACTERS / 2);
  while (drafts.length > 0 && JSON.stringify(drafts).length > MAX_CHARACTERS) drafts.shift();
  try {
    if (drafts.length === 0) sessionStorage.removeItem(STORE);
    else sessionStorage.setItem(STORE, JSON.stringify({ session: id, drafts }));
  } catch {
    // The tab may store nothing more; what was typed is still in the page.
  }
}

/** Of another session: none. */
function readStored(): readonly Stored[] {
  try {
    const { data } = storedSchema.safeParse(JSON.parse(sessionStorage.getItem(STORE) ?? "null"));
    return data?.session === session.peek()?.id ? (data?.drafts ?? []) : [];
  } catch {
    return [];
  }
}

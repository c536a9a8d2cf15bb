/**
 * What the reader typed and has not sent. It survives another view and a reload of the tab, and ends with the session. What
 * may be a secret is never kept. Limit: beyond 200 000 characters, the oldest are dropped.
 */
import { effect, untracked } from "@preact/signals";
import * as z from "zod";
import { DRAFTS, session } from "../session/session.ts";

const MAX_CHARACTERS = 200_000;
/** Somebody who types does not wait for each letter to be stored. */
const STORE_MS = 300;

const storedSchema = z.object({
  session: z.string(),
  drafts: z.array(z.object({ key: z.string(), value: z.unknown() })),
});
type Stored = z.infer<typeof storedSchema>["drafts"][number];

interface Kept {
  /** Undefined: there is nothing to keep. */
  readonly read: () => unknown;
  readonly stop: () => void;
}

/** By key; the latest ones last. */
const kept = new Map<string, Kept>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** What was typed before under this key; undefined: nothing. Whoever reads it checks its shape. */
export function draftOf(key: string): unknown {
  const { read } = kept.get(key) ?? {};
  return read ? untracked(read) : readStored().find((one) => one.key === key)?.value;
}

/** Keeps what `read` returns, a value for JSON; undefined: nothing. It reads signals, and is called when they change. */
export function keepDraft(key: string, read: () => unknown): void {
  kept.get(key)?.stop();
  kept.delete(key);
  const stop = effect(() => {
    read();
    // It begins as it is stored.
    const own = kept.get(key);
    if (!own) return;
    kept.delete(key);
    kept.set(key, own);
    clearTimeout(timer);
    timer = setTimeout(() => store(), STORE_MS);
  });
  kept.set(key, { read, stop });
}

/** Nobody needs them any more. */
export function forgetDrafts(isOver: (key: string) => boolean): void {
  for (const [key, { stop }] of kept) {
    if (!isOver(key)) continue;
    stop();
    kept.delete(key);
  }
  store((key) => !isOver(key));
}

/** Stores what was typed when the page is left, and forgets all when the session ends. */
export function storeDrafts(): () => void {
  const leave = () => store();
  addEventListener("pagehide", leave);
  return () => {
    removeEventListener("pagehide", leave);
    clearTimeout(timer);
    for (const { stop } of kept.values()) stop();
    kept.clear();
    sessionStorage.removeItem(DRAFTS);
  };
}

/** `isWanted`: of the stored ones that no form has shown since the page was loaded, those to keep. */
function store(isWanted: (key: string) => boolean = () => true): void {
  clearTimeout(timer);
  const id = session.peek()?.id;
  if (id === undefined) return;
  const shown = [...kept].flatMap(([key, { read }]) => {
    const value = untracked(read);
    return value === undefined ? [] : [{ key, value }];
  });
  const drafts = [...readStored().filter(({ key }) => !kept.has(key) && isWanted(key)), ...shown]
    // One that is too large by itself takes the place of no other.
    .filter((draft) => JSON.stringify(draft).length <= MAX_CHARACTERS / 2);
  while (drafts.length > 0 && JSON.stringify(drafts).length > MAX_CHARACTERS) drafts.shift();
  try {
    if (drafts.length === 0) sessionStorage.removeItem(DRAFTS);
    else sessionStorage.setItem(DRAFTS, JSON.stringify({ session: id, drafts }));
  } catch {
    // The tab may store nothing more; what was typed is still in the page.
  }
}

/** Of another session: none. */
function readStored(): readonly Stored[] {
  try {
    const { data } = storedSchema.safeParse(JSON.parse(sessionStorage.getItem(DRAFTS) ?? "null"));
    return data?.session === session.peek()?.id ? (data?.drafts ?? []) : [];
  } catch {
    return [];
  }
}

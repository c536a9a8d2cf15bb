/** The settled questions, page by page, the newest first; new ones are added at the top as they come. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AnswersFilter, SettledQuestion } from "../../schema/answered.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import type { Connection } from "../data/connection.ts";
import { useSoonAfter } from "../data/use-soon-after.ts";
import { checkSession, session } from "../session/session.ts";

const PAGE = 50;
/** A filter may fit few of many; after this many pages it stops, and the reader can go on. */
const MAX_PAGES = 10;
/** Answers that come together are read together. */
const TOGETHER_MS = 500;

export const keyOf = ({ delegation_id, interrupt_id }: SettledQuestion): string =>
  `${delegation_id} ${interrupt_id}`;

interface Read {
  readonly found: readonly SettledQuestion[];
  /** Of the next page; null: all were read. */
  readonly cursor: string | null | undefined;
}

/** Whether the event settles a question. */
const settles = (event: DelegationEvent): boolean =>
  event.status === "answered" || (event.type === "DELEGATION_FAILED" && event.interrupt_id !== undefined);

/** Reads until there is a page of them, or no more. */
async function readOn(
  { pages }: Connection,
  filter: AnswersFilter,
  { found, cursor }: Read,
  abort: AbortSignal,
): Promise<Read> {
  const all = [...found];
  let next = cursor;
  for (let page = 0; page < MAX_PAGES && next !== null && all.length < found.length + PAGE; page += 1) {
    const read = await pages.answers({ ...filter, cursor: next, limit: PAGE }, abort);
    all.push(...read.answers);
    next = read.next_cursor;
  }
  return { found: all, cursor: next };
}

/** What was read, with the newest at its top; only the newest if others between them were not read. */
function withNewest(before: Read, newest: Read): Read {
  // Of many, none that is new fits.
  if (newest.found.length === 0 && newest.cursor !== null) return before;
  const known = new Set(before.found.map(keyOf));
  const fresh = newest.found.filter((one) => !known.has(keyOf(one)));
  const isJoined = fresh.length < newest.found.length || newest.cursor === null;
  return isJoined ? { found: [...fresh, ...before.found], cursor: before.cursor } : newest;
}

export function useAnswers(filter: AnswersFilter) {
  const read = useSignal<Read>({ found: [], cursor: undefined });
  const isReading = useSignal(false);
  const error = useSignal<unknown>(null);
  const connection = session.value?.connection;
  const key = JSON.stringify(filter);
  /** Aborts with the filter. */
  const search = useRef(new AbortController());
  /** An answer came while a page was read. */
  const isStale = useRef(false);
  const run = async (work: (connection: Connection, abort: AbortSignal) => Promise<Read>) => {
    if (!connection) return;
    const { signal: abort } = search.current;
    isReading.value = true;
    try {
      const found = await work(connection, abort);
      if (abort.aborted) return;
      read.value = found;
      error.value = null;
    } catch (failure) {
      if (abort.aborted) return;
      checkSession(failure);
      error.value = failure;
    }
    isReading.value = false;
    if (isStale.current && error.peek() === null) refresh();
  };
  const more = () => void run((to, abort) => readOn(to, filter, read.peek(), abort));
  const refresh = () => {
    isStale.current = isReading.peek();
    if (isStale.current) return;
    void run(async (to, abort) => {
      const newest = await readOn(to, filter, { found: [], cursor: undefined }, abort);
      return withNewest(read.peek(), newest);
    });
  };
  useEffect(() => {
    read.value = { found: [], cursor: undefined };
    isReading.value = false;
    isStale.current = false;
    search.current = new AbortController();
    more();
    return () => search.current.abort();
  }, [connection, key]);
  useSoonAfter(settles, refresh, TOGETHER_MS);
  return {
    found: read.value.found,
    isComplete: read.value.cursor === null,
    isReading: isReading.value,
    error: error.value,
    more,
    /** Repeats what failed: the first page, or what is new. */
    again: read.value.cursor === undefined ? more : refresh,
  };
}

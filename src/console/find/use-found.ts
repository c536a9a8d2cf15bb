/** The delegations of a search, page by page. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Delegation, DelegationFilter } from "../../schema/delegation.ts";
import { checkSession, session } from "../session/session.ts";

const PAGE = 50;
/** A search may look at many delegations before it finds one; after this many pages it stops, and the reader can continue it. */
const MAX_PAGES = 10;

export function useFound(filter: DelegationFilter) {
  const found = useSignal<readonly Delegation[]>([]);
  const cursor = useSignal<string | null | undefined>(undefined);
  const isReading = useSignal(false);
  const error = useSignal<unknown>(null);
  const connection = session.value?.connection;
  const key = JSON.stringify(filter);
  /** Aborts with the search. */
  const search = useRef(new AbortController());

  const read = async () => {
    if (!connection) return;
    const { signal: abort } = search.current;
    isReading.value = true;
    const wanted = found.peek().length + PAGE;
    try {
      for (
        let page = 0;
        page < MAX_PAGES && cursor.peek() !== null && found.peek().length < wanted;
        page += 1
      ) {
        const query = { ...filter, cursor: cursor.peek() ?? undefined, limit: PAGE };
        const { delegations, next_cursor } = await connection.pages.list(query, abort);
        if (abort.aborted) return;
        found.value = [...found.peek(), ...delegations];
        cursor.value = next_cursor;
      }
    } catch (failure) {
      if (abort.aborted) return;
      checkSession(failure);
      error.value = failure;
    }
    isReading.value = false;
  };
  useEffect(() => {
    found.value = [];
    cursor.value = undefined;
    error.value = null;
    search.current = new AbortController();
    void read();
    return () => search.current.abort();
  }, [connection, key]);
  return {
    found: found.value,
    isComplete: cursor.value === null,
    isReading: isReading.value,
    error: error.value,
    more: () => void read(),
  };
}

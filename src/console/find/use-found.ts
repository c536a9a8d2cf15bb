/** The delegations of a search, page by page. Each stays in its row, as it is now. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Delegation, type DelegationFilter, isTerminal } from "../../schema/delegation.ts";
import type { DelegationEvent } from "../../schema/event.ts";
import { onEvents } from "../data/stream.ts";
import { checkSession, session } from "../session/session.ts";
import { onChanged } from "./run.ts";

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
    error.value = null;
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
  useEffect(() => {
    const put = (changed: ReadonlyMap<string, Delegation>) => {
      if (changed.size > 0) found.value = found.peek().map((one) => changed.get(one.id) ?? one);
    };
    const quiet = onEvents((events) => put(afterEvents(found.peek(), events ?? [])));
    const listen = (changed: Delegation) => put(new Map([[changed.id, changed]]));
    onChanged.add(listen);
    return () => {
      quiet();
      onChanged.delete(listen);
    };
  }, []);
  return {
    found: found.value,
    isComplete: cursor.value === null,
    isReading: isReading.value,
    error: error.value,
    more: () => void read(),
    key,
  };
}

/** Of the delegations, those whose state is another after the events. */
export function afterEvents(
  found: readonly Delegation[],
  events: readonly DelegationEvent[],
): ReadonlyMap<string, Delegation> {
  const latest = new Map(events.map((event) => [event.delegation_id, event]));
  if (latest.size === 0) return new Map();
  return new Map(
    found.flatMap((one) => {
      const event = latest.get(one.id);
      if (!event || event.seq <= one.version || event.state === one.state) return [];
      const { state, seq: version, at } = event;
      const error = event.type === "DELEGATION_FAILED" ? event.error : null;
      const finished_at = isTerminal(state) ? at : null;
      return [[one.id, { ...one, state, version, updated_at: at, finished_at, error }]];
    }),
  );
}

/** Something read from the broker for a component: the value when it is there, or why it is not. */
import { effect, untracked, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Connection, lostSince } from "../data/connection.ts";
import { checkSession, session } from "../session/session.ts";
import { isAbsence } from "./problem.tsx";

type Read<T> = (connection: Connection, abort: AbortSignal) => Promise<T>;

/**
 * Reads when `key` changes. Reads again when `version` changes or `reload` is called: the old value stays until the new one
 * is there, and a reading under way ends first, so that frequent changes do not keep the page from ever showing one.
 */
export function useLoaded<T>(key: string, read: Read<T>, version: unknown = null) {
  const value = useSignal<{ key: string; value: T } | null>(null);
  const error = useSignal<unknown>(null);
  const latest = useRef(read);
  latest.current = read;
  const again = useRef<() => void>(() => undefined);
  const shown = useRef(version);
  const connection = session.value?.connection;
  useEffect(() => {
    if (!connection) return;
    const abort = new AbortController();
    let isReading = false;
    let isStale = false;
    const readNow = async (): Promise<void> => {
      isStale = true;
      if (isReading) return;
      isReading = true;
      while (isStale && !abort.signal.aborted) {
        isStale = false;
        try {
          const found = await latest.current(connection, abort.signal);
          if (abort.signal.aborted) return;
          value.value = { key, value: found };
          error.value = null;
        } catch (failure) {
          if (abort.signal.aborted) return;
          checkSession(failure);
          error.value = failure;
        }
      }
      isReading = false;
    };
    again.current = () => void readNow();
    void readNow();
    // If the broker was away, the request is repeated when it is back.
    const quiet = effect(() => {
      if (lostSince.value === null && isAbsence(error.peek())) untracked(() => void readNow());
    });
    return () => {
      abort.abort();
      quiet();
    };
  }, [connection, key]);
  useEffect(() => {
    if (shown.current !== version) again.current();
    shown.current = version;
  }, [version]);
  return {
    value: value.value?.key === key ? value.value.value : null,
    error: error.value,
    reload: () => again.current(),
  };
}

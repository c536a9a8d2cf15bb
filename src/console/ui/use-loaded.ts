/** Something read from the broker for a component: the value when it is there, or why it is not. */
import { effect, untracked, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ErrandApiError } from "../../client/errors.ts";
import { type Connection, lostSince } from "../data/connection.ts";
import { checkSession, session } from "../session/session.ts";
import { isAbsence } from "./problem.tsx";

/** In seconds: how long after each failure that may pass it is read again; then after `LAST`. */
const AGAIN = [2, 5, 15];
const LAST = 30;

const mayPass = (error: unknown): boolean =>
  isAbsence(error) || (error instanceof ErrandApiError && error.retryable);

type Read<T> = (connection: Connection, abort: AbortSignal) => Promise<T>;

/**
 * Reads when `key` changes. Reads again when `version` changes or `reload` is called: the old value stays until the new one
 * is there, and a reading under way ends first, so that frequent changes do not keep the page from ever showing one. Reads
 * again after an error that may pass.
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
    let failures = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readNow = async (): Promise<void> => {
      isStale = true;
      clearTimeout(timer);
      if (isReading) return;
      isReading = true;
      while (isStale && !abort.signal.aborted) {
        isStale = false;
        try {
          const found = await latest.current(connection, abort.signal);
          if (abort.signal.aborted) return;
          value.value = { key, value: found };
          error.value = null;
          failures = 0;
        } catch (failure) {
          if (abort.signal.aborted) return;
          checkSession(failure);
          error.value = failure;
          if (!mayPass(failure)) continue;
          timer = setTimeout(readNow, 1000 * (AGAIN[failures] ?? LAST));
          failures = Math.min(failures + 1, AGAIN.length);
        }
      }
      isReading = false;
    };
    again.current = () => void readNow();
    void readNow();
    // If the broker was away, the request is repeated at once when it is back.
    const quiet = effect(() => {
      if (lostSince.value === null && isAbsence(error.peek())) untracked(() => void readNow());
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
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

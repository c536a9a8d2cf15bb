/** Something read from the broker for a component: the value when it is there, or why it is not. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Connection } from "../data/connection.ts";
import { checkSession, session } from "../session/session.ts";

/** Reads again when `key` changes or `reload` is called; the old value stays until the new one is there. */
export function useLoaded<T>(key: string, read: (connection: Connection, abort: AbortSignal) => Promise<T>) {
  const value = useSignal<{ key: string; value: T } | null>(null);
  const error = useSignal<unknown>(null);
  const round = useSignal(0);
  const connection = session.value?.connection;
  useEffect(() => {
    if (!connection) return;
    const abort = new AbortController();
    read(connection, abort.signal).then(
      (found) => {
        if (abort.signal.aborted) return;
        value.value = { key, value: found };
        error.value = null;
      },
      (failure: unknown) => {
        if (abort.signal.aborted) return;
        checkSession(failure);
        error.value = failure;
      },
    );
    return () => abort.abort();
  }, [connection, key, round.value]);
  return {
    value: value.value?.key === key ? value.value.value : null,
    error: error.value,
    reload: () => {
      round.value += 1;
    },
  };
}

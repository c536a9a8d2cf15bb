import { type Signal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type * as z from "zod";
import type { Connection } from "../data/connection.ts";
import { draftOf, keepDraft } from "../data/drafts.ts";
import { session } from "../session/session.ts";

/**
 * A hook for what the reader types, in this shape. It survives another view and a reload, and is one signal for each key, so
 * that an action whose view was left still finds it. As long as it equals `start`, nothing is kept.
 */
export function keptAs<T>(schema: z.ZodType<T>) {
  const known = new Map<string, { readonly value: Signal<T>; readonly start: string }>();
  let of: Connection | undefined;
  return function useKept(key: string, start: T): Signal<T> {
    return useMemo(() => {
      const connection = session.peek()?.connection;
      if (of !== connection) known.clear();
      of = connection;
      const before = known.get(key);
      if (before && JSON.stringify(before.value.peek()) !== before.start) return before.value;
      const stored = schema.safeParse(draftOf(key));
      const value = signal(stored.success ? stored.data : start);
      const first = JSON.stringify(start);
      known.set(key, { value, start: first });
      keepDraft(key, () => (JSON.stringify(value.value) === first ? undefined : value.value));
      return value;
    }, [key]);
  };
}

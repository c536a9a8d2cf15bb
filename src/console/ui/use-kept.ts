import { type Signal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type * as z from "zod";
import { draftOf, keepDraft } from "../data/drafts.ts";

/** A value that the reader types: it survives another view and a reload. As long as it equals `start`, nothing is kept. */
export function useKept<T>(key: string, schema: z.ZodType<T>, start: T): Signal<T> {
  return useMemo(() => {
    const first = JSON.stringify(start);
    const before = schema.safeParse(draftOf(key));
    const value = signal(before.success ? before.data : start);
    keepDraft(key, () => (JSON.stringify(value.value) === first ? undefined : value.value));
    return value;
  }, [key]);
}

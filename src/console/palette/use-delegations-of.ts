/** The delegations that fit what is typed: by id at once among those in view, and at the broker by id or by words. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ErrandApiError } from "../../client/errors.ts";
import { type Delegation, delegationFilterSchema } from "../../schema/delegation.ts";
import { delegationIdSchema } from "../../schema/values.ts";
import type { Connection } from "../data/connection.ts";
import { inView } from "../data/delegations.ts";
import type { ListedDelegation } from "../data/listed.ts";
import { checkSession, session } from "../session/session.ts";

/** After the last key. */
const PAUSE_MS = 250;
/** Of each kind. */
export const MOST = 8;
/** With fewer characters nearly everything fits. */
const LEAST = 2;

/** The end of an id, as the page shows it. */
const ID_END = /^…?[0-9a-z]{6,}$/i;

export function useDelegationsOf(text: string) {
  const found = useSignal<{ text: string; delegations: readonly Delegation[]; error: unknown } | null>(null);
  const { connection } = session.value ?? {};
  const isWanted = text.length >= LEAST;
  useEffect(() => {
    if (!connection || !isWanted) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const delegations = await search(connection, text, stop.signal);
        found.value = { text, delegations, error: null };
      } catch (error) {
        if (stop.signal.aborted) return;
        checkSession(error);
        found.value = { text, delegations: [], error };
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [connection, text]);
  const current = found.value?.text === text ? found.value : null;
  return {
    delegations: isWanted ? merged(inViewBy(text), current?.delegations ?? []) : [],
    isReading: isWanted && current === null,
    error: current?.error ?? null,
  };
}

function inViewBy(text: string): readonly ListedDelegation[] {
  if (!ID_END.test(text)) return [];
  const end = text.replace("…", "").toLowerCase();
  return inView.value.map((listed) => listed.peek()).filter(({ id }) => id.toLowerCase().endsWith(end));
}

type Found = ListedDelegation | Delegation;

/** Each once. */
const merged = (first: readonly Found[], second: readonly Found[]): readonly Found[] => [
  ...new Map([...first, ...second].map((one) => [one.id, one])).values(),
];

async function search(
  { delegator, pages }: Connection,
  text: string,
  signal: AbortSignal,
): Promise<readonly Delegation[]> {
  if (delegationIdSchema.safeParse(text).success) {
    try {
      return [await delegator.get(text, { signal })];
    } catch (error) {
      if (error instanceof ErrandApiError && error.status === 404) return [];
      throw error;
    }
  }
  const q = delegationFilterSchema.shape.q.safeParse(text).data;
  return q === undefined ? [] : (await pages.list({ q, limit: MOST }, signal)).delegations;
}

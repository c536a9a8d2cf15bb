/** One delegation, read again soon after each of its events, and while a worker may extend its lease without one. */
import { useEffect } from "preact/hooks";
import { now } from "../data/clock.ts";
import { useSoonAfter } from "../data/use-soon-after.ts";
import { useLoaded } from "../ui/use-loaded.ts";

/** An agent may report progress many times a second. */
const PAUSE_MS = 250;
/** The shortest time between two readings of a lease. */
const LEASE_MS = 2_000;

export function useDelegation(id: string) {
  const loaded = useLoaded(id, ({ delegator }, signal) => delegator.get(id, { signal }));
  const { reload, value } = loaded;
  useSoonAfter((event) => event.delegation_id === id, reload, PAUSE_MS);
  // Half of the time that is left: often enough to show a lease that is not extended as it ends.
  const leaseEnds = Date.parse(value?.lease?.expires_at ?? "");
  useEffect(() => {
    if (Number.isNaN(leaseEnds)) return;
    const timer = setTimeout(reload, Math.max(LEASE_MS, (leaseEnds - now.peek()) / 2));
    return () => clearTimeout(timer);
  }, [value]);
  return loaded;
}

import { useEffect } from "preact/hooks";
import { now } from "../data/clock.ts";
import type { Flight } from "../data/flight.ts";
import { refresh } from "../data/flights.ts";
import { session } from "../session/session.ts";
import { Left } from "../ui/age.tsx";
import { Said } from "../ui/said.tsx";
import { etaOf } from "../ui/words.ts";

/** If a lease seems to end within this time, the page asks the broker whether a heartbeat extended it. */
const SOON_MS = 10_000;
/** The shortest time between two such calls. */
const PAUSE_MS = 2_000;

/** Details of work in progress: the tools used, the estimated time left, and the time left of its lease. */
export function FlightMore({ flight }: { readonly flight: Flight }) {
  const { id, attempt, lease, progress } = flight;
  const ends = Date.parse(lease?.expires_at ?? "");
  useEffect(() => {
    if (Number.isNaN(ends)) return;
    const ask = () => {
      if (!document.hidden && session.value) void refresh(session.value.connection, id);
    };
    const timer = setInterval(ask, Math.max(PAUSE_MS, ends - now.peek() - SOON_MS));
    return () => clearInterval(timer);
  }, [lease]);
  return (
    <span class="flight-more">
      {attempt > 1 && <span>attempt {attempt}</span>}
      {progress?.tools_used?.length ? <Said>{progress.tools_used.join(", ")}</Said> : null}
      {progress?.eta_seconds !== undefined && <span>{etaOf(flight)}</span>}
      {lease && (
        <span>
          lease <Left until={lease.expires_at} />
        </span>
      )}
    </span>
  );
}

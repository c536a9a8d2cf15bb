import { now } from "../data/clock.ts";
import { lostSince } from "../data/connection.ts";

const PATIENCE_MS = 2_000;

/** Says that the broker is away, once that lasts longer than a moment. */
export function Reconnecting() {
  void now.value;
  const since = lostSince.value;
  const isAway = since !== null && Date.now() - since >= PATIENCE_MS;
  return (
    <p class={isAway ? "reconnecting" : "sr-only"} role="status">
      {isAway ? "Reconnecting … What you see may be old." : ""}
    </p>
  );
}

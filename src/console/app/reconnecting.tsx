import { isAway } from "../data/away.ts";

/** Says that the broker is away, once that lasts longer than a moment. */
export function Reconnecting() {
  return (
    <p class={isAway.value ? "reconnecting" : "sr-only"} role="status">
      {isAway.value ? "Reconnecting … What you see may be old." : ""}
    </p>
  );
}

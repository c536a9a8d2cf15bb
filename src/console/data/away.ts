/** Whether the broker has been away for longer than a moment, so that what the page shows may be old. */
import { computed } from "@preact/signals";
import { now } from "./clock.ts";
import { lostSince } from "./connection.ts";

const PATIENCE_MS = 2_000;

export const isAway = computed(() => {
  // Computed again at every tick of the clock.
  void now.value;
  return lostSince.value !== null && Date.now() - lostSince.value >= PATIENCE_MS;
});

/** The broker's time in steps, for lines of many words that need not change every second. */
import { computed } from "@preact/signals";
import { now } from "../data/clock.ts";

const STEP_MS = 10_000;

export const calmNow = computed(() => Math.floor(now.value / STEP_MS) * STEP_MS);

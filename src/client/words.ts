/** Names and times as people say them. */
import type { Presence } from "../schema/presence.ts";
import { UNITS } from "../util/duration-text.ts";

export { durationText } from "../util/duration-text.ts";

/** `caller:alice` as `alice`. Others keep their kind, as in `approver alice`: names of two kinds may be alike. */
export const nameOf = (principal: string): string => principal.replace(/^caller:/, "").replace(":", " ");

/** The largest unit of a duration: `4 s`, `3 min`, `2 d`. */
export function largestUnit(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  for (const [unit, size] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${seconds} s`;
}

/** The time left, rounded to its unit, so that a full day does not become `23 h` at once. */
export function timeLeft(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  // From 59.5 min on, it is an hour.
  const found = UNITS.find(([, size], index) => seconds >= size - (UNITS[index + 1]?.[1] ?? 1) / 2);
  return found ? `${Math.round(seconds / found[1])} ${found[0]}` : `${seconds} s`;
}

/** `2 workers are paused: not signed in, next try in 4 min`. */
export function pausedWorkers(paused: Presence["paused"], now = Date.now()): string {
  const { workers = 1, until = "", reason = "they cannot work" } = paused ?? {};
  const who = workers === 1 ? "a worker is" : `${workers} workers are`;
  return `${who} paused: ${reason}, next try in ${timeLeft(Date.parse(until) - now)}`;
}

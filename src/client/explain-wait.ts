/** Says in a sentence why a delegation waits. */
import type { Agent } from "../schema/agent.ts";
import type { Delegation } from "../schema/delegation.ts";

/**
 * Why nobody works on the delegation now, in one sentence; null if somebody does, or if it is finished. Without the
 * `agent`, less is known. `now` is in milliseconds since 1970.
 *
 * @example
 * ```ts
 * explainWait(await delegator.get(id), await admin.getAgent("scout")); // "scout is paused."
 * ```
 */
export function explainWait(
  delegation: Pick<Delegation, "state" | "target" | "delegator" | "not_before_at" | "interrupt">,
  agent?: Pick<Agent, "paused" | "presence" | "limits" | "counts" | "delivery">,
  now = Date.now(),
): string | null {
  const { state, target, delegator, not_before_at, interrupt } = delegation;
  if (interrupt !== null) {
    const left = timeLeft(Date.parse(interrupt.expires_at) - now);
    return `Waiting for an answer from ${nameOf(delegator)} or an approver, ${left} left.`;
  }
  if (state !== "submitted") return null;
  const starts = Date.parse(not_before_at ?? "") - now;
  if (starts > 0) return `It may start in ${timeLeft(starts)}.`;
  if (agent === undefined) return `Waiting for a worker of ${target}.`;
  const { paused, presence, limits, counts, delivery } = agent;
  if (paused) return `${target} is paused.`;
  if (presence.state !== "online") return unseen(target, presence.last_seen_at, delivery.mode, now);
  const most = limits?.max_working;
  if (typeof most === "number" && counts.working >= most) {
    return `${target} works on ${counts.working} already, and takes ${most} at once.`;
  }
  const before = Math.max(0, counts.waiting - 1);
  return before === 0
    ? `Waiting for a worker of ${target}.`
    : `Waiting for a worker of ${target}: ${before} more in its queue.`;
}

/** `caller:alice` as `alice`. */
export const nameOf = (principal: string): string => principal.slice(principal.indexOf(":") + 1);

function unseen(target: string, seenAt: string | null, mode: "poll" | "push", now: number): string {
  const seen = seenAt === null ? "never seen" : `last seen ${time(now - Date.parse(seenAt))} ago`;
  return mode === "push"
    ? `${target} cannot be reached (${seen}).`
    : `Nobody is polling for ${target} (${seen}).`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

function time(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
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

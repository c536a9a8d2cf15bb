/** Says in a sentence why a delegation waits. */
import type { Agent } from "../schema/agent.ts";
import type { Delegation } from "../schema/delegation.ts";
import { duration, nameOf, timeLeft } from "./words.ts";

/**
 * Why nobody works on the delegation now, in one sentence; null if somebody does, or if it is finished. Pass the
 * `agent`, and the `retry_at` of the newest event that has one, for a more exact reason. `now` is in milliseconds since
 * 1970.
 *
 * @example
 * ```ts
 * // "scout is paused until the operator resumes it."
 * explainWait(await delegator.get(id), await admin.getAgent("scout"));
 * ```
 */
export function explainWait(
  delegation: Pick<Delegation, "state" | "target" | "delegator" | "not_before_at" | "interrupt"> & {
    readonly retry_at?: string | null | undefined;
  },
  agent?: Pick<Agent, "paused" | "presence" | "limits" | "counts" | "delivery">,
  now = Date.now(),
): string | null {
  const { state, target, delegator, not_before_at, interrupt, retry_at } = delegation;
  if (interrupt !== null) {
    const left = timeLeft(Date.parse(interrupt.expires_at) - now);
    return `Waiting for an answer from ${nameOf(delegator)} or an approver, ${left} left.`;
  }
  if (state !== "submitted") return null;
  const starts = Date.parse(not_before_at ?? "") - now;
  if (starts > 0) return `It may start in ${timeLeft(starts)}, as requested.`;
  const again = Date.parse(retry_at ?? "") - now;
  if (again > 0) return `The next attempt may start in ${timeLeft(again)}.`;
  if (agent === undefined) return `Waiting for a worker of ${target}.`;
  const { paused, presence, limits, counts, delivery } = agent;
  if (paused) return `${target} is paused until the operator resumes it.`;
  if (presence.state !== "online") return unseen(target, presence.last_seen_at, delivery.mode, now);
  const others = counts.waiting > 1 ? `; ${counts.waiting - 1} more in its queue` : "";
  const most = limits?.max_working;
  return typeof most === "number" && counts.working >= most
    ? `${target} is at its limit of running delegations (max_working ${most})${others}.`
    : `Waiting for a worker of ${target}${others}.`;
}

/** When the next attempt may start, by the newest event that says so. */
export function retryAtOf(events: readonly { readonly [field: string]: unknown }[]): string | null {
  const at = events.findLast(({ retry_at }) => typeof retry_at === "string")?.retry_at;
  return typeof at === "string" ? at : null;
}

function unseen(target: string, seenAt: string | null, mode: "poll" | "push", now: number): string {
  const seen = seenAt === null ? "never seen" : `last seen ${duration(now - Date.parse(seenAt))} ago`;
  return mode === "push"
    ? `${target} cannot be reached (${seen}).`
    : `No worker is polling ${target} (${seen}).`;
}

/** Says in a sentence why a delegation waits. */
import type { Agent } from "../schema/agent.ts";
import type { Delegation } from "../schema/delegation.ts";
import type { StreamEvent } from "../schema/event.ts";
import { type WaitingAgent, waitCause } from "./wait-cause.ts";
import { largestUnit, nameOf, pausedWorkers, timeLeft } from "./words.ts";

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
  delegation: Pick<
    Delegation,
    | "state"
    | "target"
    | "delegator"
    | "not_before_at"
    | "interrupt"
    | "awaits"
    | "behind"
    | "effective_priority"
  > & {
    readonly retry_at?: string | null | undefined;
  },
  agent?: Pick<Agent, "paused" | "presence" | "limits" | "counts" | "delivery">,
  now = Date.now(),
): string | null {
  const { target, delegator, not_before_at, interrupt, awaits, retry_at } = delegation;
  if (interrupt !== null) {
    const left = timeLeft(Date.parse(interrupt.expires_at) - now);
    return `Waiting for an answer from ${nameOf(delegator)} or an approver, ${left} left.`;
  }
  if (awaits !== undefined) {
    const { children, left, expires_at } = awaits;
    const which = left === children.length ? "" : `${left} of `;
    const parts = children.length === 1 ? "a part of it" : `${which}${children.length} parts of it`;
    return `Waiting for ${parts} to end, at most ${timeLeft(Date.parse(expires_at) - now)}.`;
  }
  const { effective_priority: aged } = delegation;
  const place = aged === undefined ? "" : `, with priority ${aged} after this wait`;
  const more = agent && agent.counts.waiting > 1 ? `; ${agent.counts.waiting - 1} more in its queue` : "";
  const others = `${more}${place}`;
  switch (waitCause(delegation, agent, now)) {
    case null:
      return null;
    case "delay":
      return `It may start in ${timeLeft(Date.parse(not_before_at ?? "") - now)}, as requested.`;
    case "retry":
      return `The next attempt may start in ${timeLeft(Date.parse(retry_at ?? "") - now)}.`;
    case "conversation":
      return `Waiting for ${delegation.behind} of its conversation to end.`;
    case "paused":
      return `${target} is paused until the operator resumes it.`;
    case "limit":
      return `${target} is at its limit of ${agent?.limits?.max_working} at once${others}.`;
    case "worker_pause":
      return `Of ${target}, ${pausedWorkers(agent?.presence.paused, now)}${others}.`;
    case "busy":
      return `No worker of ${target} is free (${agent?.counts.working} in progress)${others}.`;
    case "unseen":
      return unseen(target, agent, now);
    case "turn":
      return `Waiting for a worker of ${target}${others}.`;
  }
}

/** When the next attempt may start, by the newest event that says so. */
export function retryAtOf(events: readonly StreamEvent[]): string | null {
  const instants = events.map((event) => ("retry_at" in event ? event.retry_at : undefined));
  return instants.findLast((at) => at !== undefined) ?? null;
}

function unseen(target: string, agent: WaitingAgent | undefined, now: number): string {
  const seenAt = agent?.presence.last_seen_at ?? null;
  const seen = seenAt === null ? "never seen" : `last seen ${largestUnit(now - Date.parse(seenAt))} ago`;
  return agent?.delivery.mode === "push"
    ? `${target} cannot be reached (${seen}).`
    : `${target} has no worker (${seen}).`;
}

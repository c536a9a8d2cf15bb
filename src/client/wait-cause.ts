/** Why a queued delegation waits, as data. `explainWait` says it in a sentence, the console's lists in a few words. */
import type { Agent } from "../schema/agent.ts";
import type { Delegation } from "../schema/delegation.ts";

/** What the reason depends on. */
export type WaitingAgent = Pick<Agent, "paused" | "presence" | "limits" | "counts" | "delivery">;

/**
 * `delay`, `retry`: it may not start yet · `conversation`: another one of its conversation is before it · `limit`: the
 * agent works on as many as it may · `busy`: nobody polls, but workers hold leases · `worker_pause`: nobody polls, because workers
 * fail or cannot work · `unseen`: nobody polls · `turn`: others are before it, or nothing more is known.
 */
export type WaitCause =
  | "delay"
  | "retry"
  | "conversation"
  | "paused"
  | "limit"
  | "worker_pause"
  | "busy"
  | "unseen"
  | "turn";

/** Null if the delegation is not queued. `now` is in milliseconds since 1970. */
export function waitCause(
  {
    state,
    not_before_at,
    retry_at,
    behind,
  }: Pick<Delegation, "state" | "not_before_at" | "behind"> & {
    readonly retry_at?: string | null | undefined;
  },
  agent: WaitingAgent | undefined,
  now: number,
): WaitCause | null {
  if (state !== "submitted") return null;
  if (Date.parse(not_before_at ?? "") > now) return "delay";
  if (Date.parse(retry_at ?? "") > now) return "retry";
  if (behind !== undefined) return "conversation";
  if (agent === undefined) return "turn";
  const { paused, presence, limits, counts, delivery } = agent;
  if (paused) return "paused";
  if (counts.working >= (limits?.max_working ?? Number.POSITIVE_INFINITY)) return "limit";
  if (presence.paused && presence.pollers === 0) return "worker_pause";
  if (presence.state === "online") return "turn";
  // A worker that is busy need not poll.
  return counts.working > 0 && delivery.mode === "poll" ? "busy" : "unseen";
}

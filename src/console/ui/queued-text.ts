/** Why a queued delegation waits, in a few words: the short form of `explainWait`. */
import { type WaitingAgent, waitCause } from "../../client/wait-cause.ts";
import { timeLeft } from "../../client/words.ts";
import type { ListedDelegation } from "../data/listed.ts";

type Behind = { readonly behind?: ListedDelegation["behind"] };

/** `queued`, or `queued: no worker`. Without the agent, what the delegation itself says. */
export function queuedText(
  listed: Pick<ListedDelegation, "state" | "not_before_at" | "attempt"> & Behind,
  agent: WaitingAgent | undefined,
  now: number,
): string {
  const state = listed.attempt > 1 ? `queued for attempt ${listed.attempt}` : "queued";
  const reason = reasonOf(listed, agent, now);
  return reason === "" ? state : `${state}: ${reason}`;
}

function reasonOf(
  listed: Pick<ListedDelegation, "state" | "not_before_at"> & Behind,
  agent: WaitingAgent | undefined,
  now: number,
): string {
  const cause = waitCause(listed, agent, now);
  if (cause === "delay") return `starts in ${timeLeft(Date.parse(listed.not_before_at ?? "") - now)}`;
  if (cause === "conversation") return "waits for another of its conversation";
  if (agent === undefined || cause === null) return "";
  if (cause === "limit") return `agent at its limit of ${agent.limits?.max_working}`;
  if (cause === "worker_pause") return "its workers are paused";
  if (cause === "busy") return "no worker is free";
  if (cause === "unseen") return agent.delivery.mode === "push" ? "cannot be reached" : "no worker";
  const { waiting } = agent.counts;
  return cause === "turn" ? (waiting > 1 ? `one of ${waiting.toLocaleString("en")}` : "") : cause;
}

/** Whether work under an agent's name is taken now, in a few words: the same in Live, Agents and Delegate. */
import { largestUnit, pausedWorkers } from "../../client/words.ts";
import type { Agent } from "../../schema/agent.ts";
import { count } from "../ui/words.ts";

export type PresenceAgent = Pick<Agent, "presence" | "paused" | "delivery" | "counts" | "limits" | "slots">;

/**
 * `alarm`: work waits and nobody is there to take it · `busy`: work waits for workers that have enough to do · `recent`: a
 * worker was there a moment ago, and none waits for work now.
 */
export type PresenceSign = "online" | "working" | "busy" | "alarm" | "paused" | "recent" | "unseen";

export interface PresenceText {
  readonly sign: PresenceSign;
  /** Who would take work. */
  readonly who: string;
  /** The same, with how many wait and which workers are paused. */
  readonly text: string;
}

/** `now` is in milliseconds since 1970. */
export function presenceText(agent: PresenceAgent, now: number): PresenceText {
  const { presence, counts } = agent;
  const { sign, text } = withoutQueue(agent, now);
  const paused = presence.paused ? `; ${pausedWorkers(presence.paused, now)}` : "";
  if (counts.waiting === 0) return { sign, who: text, text: `${text}${paused}` };
  const who = sign === "unseen" ? nobody(agent) : text;
  return { sign: withQueue(sign, agent), who, text: `${who}, ${waitingText(counts.waiting)}${paused}` };
}

/** `1 waits`, `38 wait`. */
export const waitingText = (waiting: number): string => count(waiting, "waits", "wait");

function withoutQueue(
  { presence, paused, delivery, counts, limits, slots }: PresenceAgent,
  now: number,
): Omit<PresenceText, "who"> {
  const { state, pollers, last_seen_at } = presence;
  const { working } = counts;
  if (paused) return { sign: "paused", text: "paused" };
  const most = slots?.most ?? limits?.max_working ?? Number.POSITIVE_INFINITY;
  if (working >= most) return { sign: "working", text: `at its limit (${working} of ${most})` };
  if (delivery.mode === "push" && state === "online") return { sign: "online", text: "reachable" };
  if (pollers > 0) return { sign: "online", text: `${count(pollers, "worker")} free` };
  // A worker that is busy need not poll.
  if (working > 0 && delivery.mode === "poll") {
    return { sign: "working", text: `all busy (${working.toLocaleString("en")} working)` };
  }
  if (presence.paused) return { sign: "paused", text: "no free worker" };
  if (state === "online") return { sign: "recent", text: "worker seen just now" };
  const seen =
    last_seen_at === null
      ? "never seen"
      : `away, last seen ${largestUnit(now - Date.parse(last_seen_at))} ago`;
  return { sign: "unseen", text: seen };
}

const nobody = ({ delivery }: PresenceAgent): string =>
  delivery.mode === "push" ? "cannot be reached" : "no worker";

/** Free workers take what waits in a moment; the operator knows of a paused agent. */
function withQueue(sign: PresenceSign, agent: PresenceAgent): PresenceSign {
  if (agent.paused) return "paused";
  if (sign === "unseen" || sign === "paused") return "alarm";
  return sign === "online" ? "online" : "busy";
}

/** The order where not everything is shown: first what needs a person, then what is in progress, then what waits. */
import type { Agent } from "../../schema/agent.ts";
import { asks, type ListedDelegation } from "../data/listed.ts";

const rankOf = ({ state }: ListedDelegation): number => (asks(state) ? 0 : state === "submitted" ? 2 : 1);

/** A question: when it expires. In the queue: since when it is ready, or when it will be. */
export function instantOf({ state, interrupt, not_before_at, created_at }: ListedDelegation): string {
  const instant = asks(state) ? interrupt?.expires_at : state === "submitted" ? not_before_at : null;
  return instant ?? created_at;
}

/** Questions, the soonest to expire first; work in progress or just ended; the queue. Each the oldest first. */
export function byNeed<T extends { readonly value: ListedDelegation }>(delegations: readonly T[]): T[] {
  return delegations
    .map((listed) => ({
      listed,
      rank: rankOf(listed.value),
      at: Date.parse(instantOf(listed.value)),
    }))
    .sort((a, b) => a.rank - b.rank || a.at - b.at)
    .map(({ listed }) => listed);
}

/** With more than this, delegations are grouped by agent, and agents are in the order of need. */
export const MANY = 30;

/** Asking, working, with a queue, polling, seen once, never seen. */
function agentRank({ counts, presence }: Agent): number {
  const { interrupted, working, waiting, delayed } = counts;
  const signs = [
    interrupted > 0,
    working > 0,
    waiting + delayed > 0,
    presence.state === "online",
    presence.last_seen_at !== null,
    true,
  ];
  return signs.indexOf(true);
}

/** A few agents stay in the order of their names. Of many, busy ones come first, and never seen ones last. */
export const agentsByNeed = (agents: readonly Agent[]): readonly Agent[] =>
  agents.length > MANY ? agents.toSorted((a, b) => agentRank(a) - agentRank(b)) : agents;

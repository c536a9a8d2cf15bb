/** The order where not everything is shown: first what needs a person, then what is in progress, then what waits for its parts, then the queue. */
import { asks, type ListedDelegation } from "../data/listed.ts";

const rankOf = ({ state }: ListedDelegation): number =>
  asks(state) ? 0 : state === "submitted" ? 3 : state === "awaiting_children" ? 2 : 1;

/** A question: when it expires. In the queue: since when it is ready, or when it will be. */
export function instantOf({ state, interrupt, not_before_at, created_at }: ListedDelegation): string {
  const instant = asks(state) ? interrupt?.expires_at : state === "submitted" ? not_before_at : null;
  return instant ?? created_at;
}

/** Questions, the soonest to expire first; work in progress or just ended; what waits for parts; the queue. Each the oldest first. */
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

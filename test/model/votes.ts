/** Approvals of several people in the model: whose count, and those that an open question has. */
import type { Item, ModelAgent } from "./item.ts";

/** What an agent needs; null: the first answer. */
export type ModelVotes = { readonly needed: number; readonly notByDelegator: boolean } | null;

export const personOf = (principal: string): string => principal.split(":")[1] ?? principal;

export const countsVote = ({ votes }: Pick<ModelAgent, "votes">, by: string, { delegator }: Item): boolean =>
  votes === null || !votes.notByDelegator || personOf(by) !== personOf(delegator);

/** Whose approvals of this count before `by` gives one; after a change of the agent they may be fewer. */
export const votersOf = (agent: Pick<ModelAgent, "votes">, item: Item, content: string): readonly string[] =>
  item.votes?.content === content ? item.votes.by.filter((by) => countsVote(agent, by, item)) : [];

export const hasVoted = (voters: readonly string[], by: string): boolean =>
  voters.some((one) => personOf(one) === personOf(by));

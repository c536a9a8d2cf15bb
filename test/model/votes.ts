/** Approvals of several people in the model: whose count, and those that an open question has. */
import type { Item, ModelAgent } from "./item.ts";

/** What an agent needs; null: the first answer. */
export type ModelVotes = { readonly needed: number; readonly notByDelegator: boolean } | null;

export const personOf = (principal: string): string => principal.split(":")[1] ?? principal;

export const countsVote = ({ votes }: Pick<ModelAgent, "votes">, by: string, { delegator }: Item): boolean =>
  votes === null || !votes.notByDelegator || personOf(by) !== personOf(delegator);

/** Who has approved this once `by` does, too. */
export function votersWith({ votes }: Pick<Item, "votes">, content: string, by: string): readonly string[] {
  const before = votes?.content === content ? votes.by : [];
  const isNew = !before.some((one) => personOf(one) === personOf(by));
  return isNew ? [...before, by] : before;
}

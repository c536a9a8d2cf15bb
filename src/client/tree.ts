/**
 * A delegation and its descendants, level by level. Limit: not a snapshot; a delegation that you may not see is left
 * out with everything below it.
 */
import type { Delegation, DelegationFilter } from "../schema/delegation.ts";

/** One delegation of a tree. */
export interface Branch {
  readonly delegation: Delegation;
  /** 0 for the requested delegation, 1 for its children. */
  readonly depth: number;
}

/** Parents before their children, the oldest of a level first. */
export async function* readTree(
  root: Delegation,
  list: (filter: DelegationFilter) => AsyncIterable<Delegation>,
): AsyncGenerator<Branch, void> {
  yield { delegation: root, depth: 0 };
  let parents = [root.id];
  for (let depth = 1; parents.length > 0; depth += 1) {
    const level: string[] = [];
    for (const parent_id of parents) {
      const children: Delegation[] = [];
      // The list is newest first.
      for await (const child of list({ parent_id })) children.push(child);
      for (const delegation of children.reverse()) {
        level.push(delegation.id);
        yield { delegation, depth };
      }
    }
    parents = level;
  }
}

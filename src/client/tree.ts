/**
 * A delegation and what was delegated under it, level by level. Limit: as each stood when it was read; what you may not
 * see is not there, nor what hangs below it.
 */
import type { Delegation, DelegationFilter } from "../schema/delegation.ts";

/** One delegation of a tree. */
export interface Branch {
  readonly delegation: Delegation;
  /** 0 for the one that was asked for, 1 for its children. */
  readonly depth: number;
}

/** Children after their parents, the oldest of a level first. */
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
      // Newest first, so they are turned around.
      for await (const child of list({ parent_id })) children.push(child);
      for (const delegation of children.reverse()) {
        level.push(delegation.id);
        yield { delegation, depth };
      }
    }
    parents = level;
  }
}

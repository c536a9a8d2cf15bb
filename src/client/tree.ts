/** Trees of delegations: read level by level, and nested. */
import type { Delegation, DelegationFilter } from "../schema/delegation.ts";
import type { Tree } from "../schema/tree.ts";

/** One delegation of a tree. */
export interface Branch {
  readonly delegation: Delegation;
  /** 0 for the requested delegation, 1 for its children. */
  readonly depth: number;
}

/** How a tree is read. */
interface Reads {
  readonly nodes: (id: string) => Promise<Tree>;
  readonly list: (filter: DelegationFilter) => AsyncIterable<Delegation>;
  /** Null: it was deleted. */
  readonly find: (id: string) => Promise<Delegation | null>;
}

/**
 * A delegation and its descendants: parents before their children, the oldest of a level first. Limit: not a snapshot; a
 * delegation that you may not read is left out, but not what you may read below it.
 */
export async function* readTree(
  root: Delegation,
  { nodes, list, find }: Reads,
): AsyncGenerator<Branch, void> {
  const known = (await nodes(root.id)).nodes;
  yield { delegation: root, depth: 0 };
  let parents = [root.id];
  for (let depth = 1; parents.length > 0; depth += 1) {
    const level: string[] = [];
    for (const parent_id of parents) {
      const children: Delegation[] = [];
      for await (const child of list({ parent_id })) children.push(child);
      const listed = new Set(children.map(({ id }) => id));
      // A list has only what the caller delegated or works on.
      const others = known.filter((node) => node.parent_id === parent_id && !listed.has(node.id));
      for (const { id, readable } of others) {
        level.push(id);
        const delegation = readable ? await find(id) : null;
        if (delegation) children.push(delegation);
      }
      children.sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
      for (const delegation of children) {
        if (listed.has(delegation.id)) level.push(delegation.id);
        yield { delegation, depth };
      }
    }
    parents = level;
  }
}

/** One delegation, and those delegated under it in the order in which they were read. */
export interface Nested<One> {
  readonly one: One;
  readonly below: Nested<One>[];
  /** Its parent was not read: it was erased meanwhile, or may not be seen. It stands below the root. */
  readonly isOrphan: boolean;
}

/** Undefined if the root is not among them. */
export function nest<One extends { readonly id: string; readonly parent_id: string | null }>(
  found: readonly One[],
  rootId: string,
): Nested<One> | undefined {
  const ids = new Set(found.map(({ id }) => id));
  const byId = new Map(
    found.map((one): [string, Nested<One>] => {
      const isOrphan = one.id !== rootId && !ids.has(one.parent_id ?? "");
      return [one.id, { one, below: [], isOrphan }];
    }),
  );
  const root = byId.get(rootId);
  for (const node of byId.values()) {
    if (node === root) continue;
    (byId.get(node.one.parent_id ?? "") ?? root)?.below.push(node);
  }
  return root;
}

/** Delegations under their parents, in whatever order they were read. */

/** One delegation, and those delegated under it in the order in which they were read. */
export interface Nested<One> {
  readonly one: One;
  readonly below: Nested<One>[];
  /** Its parent was not read: it was erased meanwhile, or may not be seen. It stands below the root. */
  readonly isApart: boolean;
}

/** Undefined if the root is not among them. */
export function nest<One extends { readonly id: string; readonly parent_id: string | null }>(
  found: readonly One[],
  rootId: string,
): Nested<One> | undefined {
  const ids = new Set(found.map(({ id }) => id));
  const byId = new Map(
    found.map((one): [string, Nested<One>] => {
      const isApart = one.id !== rootId && !ids.has(one.parent_id ?? "");
      return [one.id, { one, below: [], isApart }];
    }),
  );
  const root = byId.get(rootId);
  for (const node of byId.values()) {
    if (node === root) continue;
    (byId.get(node.one.parent_id ?? "") ?? root)?.below.push(node);
  }
  return root;
}

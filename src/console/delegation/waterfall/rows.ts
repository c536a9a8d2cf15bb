/** The rows of a waterfall: who is under whom, in which order, and the lines that lead there. */
import { type Nested, nest } from "../../../client/tree.ts";
import type { Node } from "./node.ts";

export interface Row {
  readonly node: Node;
  /** Counted from 1. */
  readonly level: number;
  /** Above the delegation that the waterfall is of. */
  readonly isAbove: boolean;
  /** Its parent is gone, or hidden from the reader. */
  readonly isOrphan: boolean;
  /** For each level between the first and its own: whether the line goes on below. */
  readonly lines: readonly boolean[];
  readonly isLast: boolean;
  /** How many are under it, at any depth. */
  readonly below: number;
  readonly isOpen: boolean;
}

interface Given {
  /** From the root to the parent, as far as the reader may see. */
  readonly above: readonly Node[];
  /** The delegation and all under it, in any order. */
  readonly nodes: Iterable<Node>;
  readonly id: string;
  readonly closed: ReadonlySet<string>;
}

/** Each delegation below its parent, the oldest first. */
export function rowsOf({ above, nodes, id, closed }: Given): readonly Row[] {
  const byAge = [...nodes].sort(
    (a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id),
  );
  const root = nest(byAge, id);
  if (root === undefined) return [];
  const sizes = new Map<string, number>();
  sizeOf(root, sizes);
  const rows: Row[] = [];
  for (const node of above) {
    const level = rows.length + 1;
    // Its other children are not shown.
    rows.push({ node, level, ...ABOVE, lines: straight(level) });
  }
  const add = (
    { one, below, isOrphan }: Nested<Node>,
    level: number,
    lines: readonly boolean[],
    isLast: boolean,
  ) => {
    const isOpen = !closed.has(one.id);
    const size = (sizes.get(one.id) ?? 1) - 1;
    rows.push({ node: one, level, isAbove: false, isOrphan, lines, isLast, below: size, isOpen });
    if (!isOpen) return;
    const under = level === 1 ? [] : [...lines, !isLast];
    for (const [index, child] of below.entries()) add(child, level + 1, under, index === below.length - 1);
  };
  add(root, above.length + 1, straight(above.length + 1), true);
  return rows;
}

const ABOVE = { isAbove: true, isOrphan: false, isLast: true, below: 0, isOpen: true } as const;

/** Each above has nothing else below it. */
const straight = (level: number): readonly boolean[] =>
  Array.from({ length: Math.max(0, level - 2) }, () => false);

function sizeOf({ one, below }: Nested<Node>, sizes: Map<string, number>): number {
  const size = below.reduce((sum, child) => sum + sizeOf(child, sizes), 1);
  sizes.set(one.id, size);
  return size;
}

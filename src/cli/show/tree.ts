/**
 * `errand list --tree`: delegations with their children. A tree is drawn once all of it has been read; with --json, it
 * is printed level by level.
 */
import type { Delegator } from "../../client/delegator.ts";
import type { CliHost } from "../host.ts";
import { type DelegationRow, delegationRows, type Listed } from "./delegation-columns.ts";
import type { ListTable } from "./list-table.ts";
import { printJson } from "./output.ts";

interface Node {
  readonly one: Listed;
  readonly below: Node[];
}

interface TreeOptions {
  /** Undefined with --json. */
  readonly table: ListTable<DelegationRow> | undefined;
  readonly signal: AbortSignal;
}

/** Prints the whole tree below `id`, itself first; returns the ids in it. */
export async function printTree(
  host: CliHost,
  delegator: Delegator,
  id: string,
  { table, signal }: TreeOptions,
): Promise<Set<string>> {
  const nodes = new Map<string, Node>();
  let root: Node | undefined;
  for await (const { delegation, depth } of delegator.tree(id, { signal })) {
    const { message: _message, artifacts: _artifacts, reply: _reply, history: _history, ...one } = delegation;
    const node = { one, below: [] };
    nodes.set(delegation.id, node);
    if (table === undefined) await printJson(host, { depth, ...delegation });
    root ??= node;
    if (depth > 0) nodes.get(delegation.parent_id ?? "")?.below.push(node);
  }
  if (root && table) await table.print(rowsOf(root));
  return new Set(nodes.keys());
}

/** Parents before their children, each with the branches that lead to it. */
function rowsOf(root: Node): DelegationRow[] {
  const drawn: { one: Listed; branch: string }[] = [];
  const add = ({ one, below }: Node, branch: string, indent: string) => {
    drawn.push({ one, branch });
    for (const [at, child] of below.entries()) {
      const isLast = at === below.length - 1;
      add(child, `${indent}${isLast ? "└─ " : "├─ "}`, `${indent}${isLast ? "   " : "│  "}`);
    }
  };
  add(root, "", "");
  return delegationRows(drawn.map(({ one }) => one)).map((row, at) => ({
    ...row,
    branch: drawn[at]?.branch ?? "",
  }));
}

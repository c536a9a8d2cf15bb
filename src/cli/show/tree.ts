/**
 * `errand list --tree`: delegations with their children. A tree is drawn once all of it has been read; with --json, it
 * is printed level by level, and then what of it may be seen only as a node.
 */
import { budgetText } from "../../client/budget-text.ts";
import type { Delegator } from "../../client/delegator.ts";
import { type Nested, nest } from "../../client/tree.ts";
import { sumUsage, usageText } from "../../client/usage.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { type DelegationRow, delegationRows, type Listed } from "./delegation-columns.ts";
import type { ListTable } from "./list-table.ts";
import { note, printJson } from "./output.ts";

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
  const found: Listed[] = [];
  let budget: Delegation["budget"];
  for await (const { delegation, depth } of delegator.tree(id, { signal })) {
    if (depth === 0) budget = delegation.budget;
    const { message: _message, artifacts: _artifacts, reply: _reply, history: _history, ...one } = delegation;
    found.push(one);
    if (table === undefined) await printJson(host, { depth, ...delegation });
  }
  for (const node of (await delegator.nodes(id, { signal })).nodes) {
    if (node.readable) continue;
    found.push(node);
    if (table === undefined) await printJson(host, node);
  }
  const root = nest(found, found[0]?.id ?? id);
  if (root && table) await table.print(rowsOf(root));
  const used = table && found.length > 1 ? sumUsage(found) : undefined;
  if (used) await note(host, `The tree of ${id} has used ${usageText(used)}.`);
  // The sum of the broker, with what was reported by parts that may not be read, or that are deleted.
  if (table && budget)
    await note(host, `Of the budget of ${id}, used with all parts: ${budgetText(budget)}.`);
  return new Set(found.map((one) => one.id));
}

/** Parents before their children, each with the branches that lead to it. */
function rowsOf(root: Nested<Listed>): DelegationRow[] {
  const drawn: { one: Listed; branch: string }[] = [];
  const add = ({ one, below }: Nested<Listed>, branch: string, indent: string) => {
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

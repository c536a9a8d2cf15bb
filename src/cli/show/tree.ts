/**
 * `errand list --tree`: delegations with their children. A tree is drawn once all of it has been read; with --json, it
 * is printed level by level.
 */
import type { Delegator } from "../../client/delegator.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { oneLine, painter, print, printJson, statePaint } from "./output.ts";

/** Only the fields that a line shows, because whole delegations may have megabytes. */
interface Node {
  readonly columns: readonly string[];
  readonly state: Delegation["state"];
  readonly below: Node[];
}

const STATE_WIDTH = "input_required".length;

/** Prints the whole tree below `id`, itself first; returns the ids in it. */
export async function printTree(
  host: CliHost,
  delegator: Delegator,
  id: string,
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<Set<string>> {
  const nodes = new Map<string, Node>();
  let root: Node | undefined;
  for await (const { delegation, depth } of delegator.tree(id, { signal })) {
    const node = { columns: columnsOf(delegation), state: delegation.state, below: [] };
    nodes.set(delegation.id, node);
    if (json) await printJson(host, { depth, ...delegation });
    root ??= node;
    if (depth > 0) nodes.get(delegation.parent_id ?? "")?.below.push(node);
  }
  if (root && !json) await draw(host, root);
  return new Set(nodes.keys());
}

async function draw(host: CliHost, root: Node): Promise<void> {
  const paint = painter(host, "stdout");
  const printNode = async (
    { columns: [id = "", ...rest], state, below }: Node,
    head: string,
    indent: string,
  ) => {
    await print(
      host,
      [paint.dim(head) + id, statePaint(state, paint)(state.padEnd(STATE_WIDTH)), ...rest].join("  "),
    );
    for (const [at, one] of below.entries()) {
      const isLast = at === below.length - 1;
      await printNode(one, `${indent}${isLast ? "└─ " : "├─ "}`, `${indent}${isLast ? "   " : "│  "}`);
    }
  };
  await printNode(root, "", "");
}

function columnsOf({ id, target, task_preview, error, state }: Delegation): string[] {
  const why = error && error.code !== state ? `(${error.code}) ` : "";
  return [id, target, oneLine(why + task_preview, 60)];
}

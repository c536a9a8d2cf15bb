/**
 * `errand list --tree`: delegations with what was delegated under them. Limit: a tree is drawn once all of it was read;
 * with --json it comes level by level as it is read.
 */
import type { Delegator } from "../../client/delegator.ts";
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { oneLine, painter, print, printJson } from "./output.ts";

/** What a line shows; delegations may be megabytes each. */
interface Knot {
  readonly columns: readonly string[];
  readonly state: Delegation["state"];
  readonly below: Knot[];
}

const STATE_WIDTH = "input_required".length;

/** Prints the whole tree below `id`, itself first; returns the ids in it. */
export async function printTree(
  host: CliHost,
  delegator: Delegator,
  id: string,
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<Set<string>> {
  const knots = new Map<string, Knot>();
  let root: Knot | undefined;
  for await (const { delegation, depth } of delegator.tree(id, { signal })) {
    const knot = { columns: columnsOf(delegation), state: delegation.state, below: [] };
    knots.set(delegation.id, knot);
    if (json) await printJson(host, { depth, ...delegation });
    root ??= knot;
    if (depth > 0) knots.get(delegation.parent_id ?? "")?.below.push(knot);
  }
  if (root && !json) await draw(host, root);
  return new Set(knots.keys());
}

async function draw(host: CliHost, root: Knot): Promise<void> {
  const { bold, dim, green, red, yellow } = painter(host, "stdout");
  const paint = (state: Knot["state"]) => {
    if (state === "completed") return green;
    if (state.endsWith("_required")) return yellow;
    return state === "submitted" || state === "working" ? bold : red;
  };
  const print1 = async (
    { columns: [id = "", ...rest], state, below }: Knot,
    head: string,
    indent: string,
  ) => {
    await print(host, [dim(head) + id, paint(state)(state.padEnd(STATE_WIDTH)), ...rest].join("  "));
    for (const [at, one] of below.entries()) {
      const isLast = at === below.length - 1;
      await print1(one, `${indent}${isLast ? "└─ " : "├─ "}`, `${indent}${isLast ? "   " : "│  "}`);
    }
  };
  await print1(root, "", "");
}

function columnsOf({ id, target, task_preview, error, state }: Delegation): string[] {
  const why = error && error.code !== state ? `(${error.code}) ` : "";
  return [id, target, oneLine(why + task_preview, 60)];
}

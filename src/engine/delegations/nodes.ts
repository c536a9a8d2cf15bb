/**
 * A tree as nodes: place, agent and state of each delegation. The delegator of the root sees the nodes of the whole tree;
 * everybody else sees those of the delegations that they may read. Limit: not a snapshot; what is created meanwhile may be left out.
 */
import { type RecordSummary, readSummaries } from "../../lifecycle/summary.ts";
import { TREE_NODES, type TreeNode } from "../../schema/tree.ts";
import { toInstant } from "../../schema/values.ts";
import { canRead, canSeeNode, type Principal } from "../access/access.ts";
import type { Scans } from "../broker.ts";
import { notFound } from "../errors.ts";
import type { Lists } from "./list.ts";

interface Found {
  readonly summary: RecordSummary;
  readonly depth: number;
  moreBelow: boolean;
}

/** At most {@link TREE_NODES}. Throws `delegation_not_found` if the caller may not know of the delegation. */
export const treeNodes = (broker: Lists, principal: Principal, id: string): Promise<TreeNode[]> =>
  broker.readLimiter.run(principal, () => nodesBelow(broker, principal, id));

async function nodesBelow(broker: Scans, principal: Principal, id: string): Promise<TreeNode[]> {
  const [root] = await readSummaries(broker.bulk, broker.shards, [id]);
  if (!root || !(await canSeeNode(broker, principal, root))) throw notFound(id);
  const found: Found[] = [{ summary: root, depth: 0, moreBelow: false }];
  // The array grows while it is read.
  for (const parent of found) {
    if (!parent.summary.hasChildren) continue;
    const room = TREE_NODES - found.length;
    const children = await childrenOf(broker, parent.summary.id, room + 1);
    parent.moreBelow = children.length > room;
    for (const summary of children.slice(0, room)) {
      const isKnown = summary !== null && (await canSeeNode(broker, principal, summary));
      if (isKnown) found.push({ summary, depth: parent.depth + 1, moreBelow: false });
    }
  }
  return Promise.all(
    found.map(async ({ summary, depth, moreBelow }): Promise<TreeNode> => {
      const finishedAt = summary.get("finished_at");
      return {
        id: summary.id,
        parent_id: summary.get("parent_id"),
        depth,
        target: summary.get("target"),
        delegator: summary.get("delegator"),
        state: summary.get("state"),
        created_at: toInstant(summary.get("created_at")),
        finished_at: finishedAt === null ? null : toInstant(finishedAt),
        readable: await canRead(broker, principal, summary),
        more_below: moreBelow,
      };
    }),
  );
}

/** The oldest children, oldest first; null for one that was deleted meanwhile. */
async function childrenOf(broker: Scans, parentId: string, most: number): Promise<(RecordSummary | null)[]> {
  const perShard = await Promise.all(
    broker.shards.all.map((shard) =>
      broker.bulk.zrangebyscore(
        shard.list(`parent:${parentId}`),
        "-inf",
        "+inf",
        "WITHSCORES",
        "LIMIT",
        0,
        most,
      ),
    ),
  );
  const entries = perShard.flatMap((flat) =>
    flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, at: Number(flat[at + 1]) }] : [])),
  );
  entries.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  const ids = entries.slice(0, most).map(({ id }) => id);
  return readSummaries(broker.bulk, broker.shards, ids);
}

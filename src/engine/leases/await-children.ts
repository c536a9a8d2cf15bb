/**
 * Gives work back until children of it have ended. Nobody holds a lease meanwhile; the end of the last child that counts
 * queues the delegation again, before new work. Limit: which children have ended is read before the move, so a child that
 * ends in between is counted after it (outbound/child-ends.ts).
 */

import { readSummaries } from "../../lifecycle/summary.ts";
import { leaseIdOf } from "../../redis/shards.ts";
import { type AwaitRequest, type AwaitResult, awaitedSchema } from "../../schema/await.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { BulkReads, Records } from "../broker.ts";
import { refusal } from "../errors.ts";
import { asHolder } from "./as-holder.ts";
import { awaitedJson } from "./awaited.ts";
import { checkpointText } from "./heartbeat.ts";
import { holderOf } from "./holder.ts";

/** How many ids an error names. */
const NAMED = 20;
/** In place of a state, of a child whose record is gone. */
export const GONE = "-";

export async function awaitChildren(
  broker: Moves & Records & BulkReads,
  principal: Principal,
  leaseId: string,
  { children, until, time_limit_seconds, checkpoint }: AwaitRequest,
): Promise<AwaitResult> {
  const { id, params } = holderOf(principal, leaseId);
  const others = await othersThanChildren(broker, id, children);
  const summaries = await readSummaries(broker.redis, broker.shards, children);
  const ended = summaries.map((summary) => {
    const state = summary?.get("state");
    return state === undefined ? GONE : isTerminal(state) ? state : "";
  });
  const count = until === "all" ? children.length : until === "any" ? 1 : until;
  const isMet = ended.filter((state) => state !== "").length >= count;
  const list = JSON.stringify(children);
  const fields = { checkpoint: checkpointText(checkpoint) };
  const { outcome } = await asHolder(broker, id, params, () =>
    isMet || others.length > 0
      ? broker.writer.move({ move: "heartbeat", id, params, fields: others.length > 0 ? {} : fields })
      : broker.writer.move({
          move: "await",
          id,
          params: {
            ...params,
            children,
            ended,
            count,
            awaits: list,
            wait_ms: time_limit_seconds === undefined ? undefined : Math.round(time_limit_seconds * 1000),
          },
          fields: { ...fields, awaits: list },
        }),
  );
  if (outcome.kind !== "ok") throw refusal(outcome, id, leaseIdOf(id, params.fence));
  // Only now: whoever does not hold the lease must not learn which delegations are its children.
  if (others.length > 0) throw notChildren(id, others);
  if (isMet) {
    const json = await awaitedJson(broker, children, "ended", `agent:${outcome.target}`);
    return { awaited: awaitedSchema.parse(JSON.parse(json)) };
  }
  await afterMove(broker, id, outcome);
  return {
    awaits: {
      children,
      left: outcome.awaits_left ?? count,
      expires_at: toInstant(outcome.awaits_until ?? outcome.now),
    },
  };
}

/** Those that were not delegated under this one. */
async function othersThanChildren(
  broker: Records,
  id: string,
  children: readonly string[],
): Promise<readonly string[]> {
  const keys = broker.shards.ofId(id);
  const known = keys ? await broker.redis.smismember(keys.children(id), ...children) : [];
  return children.filter((_, at) => known[at] !== 1);
}

function notChildren(id: string, others: readonly string[]): ErrandError {
  const more = others.length === 1 ? "" : `, and ${others.length - 1} more are not`;
  return new ErrandError("not_a_child", `${others[0]} is not a child of ${id}${more}.`, {
    delegation_id: id,
    delegation_valid: true,
    details: { children: others.slice(0, NAMED) },
  });
}

/**
 * Gives work back until children of it have ended. Nobody holds a lease meanwhile; the end of the last child that counts
 * queues the delegation again, before new work. Limit: which children have ended is read before the move, so a child that
 * ends in between is counted after it (outbound/child-ends.ts).
 */
import { createHash } from "node:crypto";
import type { Command } from "../../lifecycle/command.ts";
import { readSummaries } from "../../lifecycle/summary.ts";
import { leaseIdOf } from "../../redis/shards.ts";
import { type AwaitRequest, type AwaitResult, neededEnds } from "../../schema/await.ts";
import { ErrandError } from "../../schema/errors.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Records } from "../broker.ts";
import { refusal } from "../errors.ts";
import { asHolder } from "./as-holder.ts";
import { type AwaitedReads, awaitedJson, GONE } from "./awaited.ts";
import { checkpointText } from "./heartbeat.ts";
import { holderOf } from "./holder.ts";

/** How many ids an error and an event name. */
const NAMED = 20;

/** As {@link AwaitResult}, but `awaited` is JSON text. */
export type AwaitAnswer = Pick<AwaitResult, "awaits"> & { readonly awaited?: string };

export async function awaitChildren(
  broker: Moves & Records & AwaitedReads,
  principal: Principal,
  leaseId: string,
  request: AwaitRequest,
): Promise<AwaitAnswer> {
  const { id, params } = holderOf(principal, leaseId);
  const { children, until, checkpoint } = request;
  const others = await othersThanChildren(broker, id, children);
  const ended = await endedStates(broker, children);
  const needed = neededEnds(until, children.length);
  const isMet = ended.filter((state) => state !== "").length >= needed;
  const fields = { checkpoint: checkpointText(checkpoint) };
  const { outcome } = await asHolder(broker, id, params, () =>
    broker.writer.move(
      isMet && others.length === 0
        ? { move: "heartbeat", id, params, fields }
        : awaitCommand(
            id,
            { ...params, ended, needed, others: others.length > 0 || undefined },
            request,
            fields,
          ),
    ),
  );
  if (outcome.kind === "not_children") throw notChildren(id, others);
  if (outcome.kind !== "ok" && outcome.kind !== "waited")
    throw refusal(outcome, id, leaseIdOf(id, params.fence));
  // The refused move stored nothing.
  if (outcome.kind === "waited" && fields.checkpoint !== undefined)
    await asHolder(broker, id, params, () => broker.writer.move({ move: "heartbeat", id, params, fields }));
  if (isMet || outcome.kind === "waited") {
    const how = isMet ? "ended" : "time_limit";
    return { awaited: await awaitedJson(broker, principal, id, children, how, outcome.target) };
  }
  await afterMove(broker, id, outcome);
  const { awaits_left: left, awaits_until } = outcome;
  if (left === undefined || awaits_until === undefined) throw new Error("a wait has no end");
  return { awaits: { children, left, expires_at: toInstant(awaits_until) } };
}

/** The states of those that have ended; empty for the others. */
async function endedStates(broker: Records, children: readonly string[]): Promise<string[]> {
  const summaries = await readSummaries(broker.redis, broker.shards, children);
  return summaries.map((summary) => {
    if (summary === null) return GONE;
    return summary.finished ? summary.get("state") : "";
  });
}

function awaitCommand(
  id: string,
  params: Command["params"],
  { children, round, time_limit_seconds }: AwaitRequest,
  fields: { readonly checkpoint: string | undefined },
): Command {
  const awaits = JSON.stringify(children);
  const wait = `${params?.needed} ${[...children].sort().join(" ")}`;
  return {
    move: "await",
    id,
    params: {
      ...params,
      children,
      awaits,
      shown: JSON.stringify(children.slice(0, NAMED)),
      wait: createHash("sha256").update(wait).digest("base64url").slice(0, 22),
      round,
      wait_ms: time_limit_seconds === undefined ? undefined : Math.round(time_limit_seconds * 1000),
    },
    fields: { ...fields, awaits },
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

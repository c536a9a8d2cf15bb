/**
 * Delegates failed work again, once for each failure. Limit: the new delegation queues behind waiting work, and may be
 * refused like any other; a later call then retries with the same id.
 */
import { ownBudget } from "../../lifecycle/stored-budget.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { messageInputSchema } from "../../schema/a2a.ts";
import { delegateRequestSchema } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { type Principal, requireControl, toPrincipal } from "../access/access.ts";
import type { StoredAgent } from "../agents/stored-agent.ts";
import { refusal } from "../errors.ts";
import { autoApproveOf } from "../questions/approved-in-advance.ts";
import { type Submits, submit } from "./delegate.ts";
import { read } from "./read.ts";
import { idElsewhere } from "./redrive-elsewhere.ts";

/** Returns the delegation that replaces it. Idempotent. */
export async function redrive(broker: Submits, principal: Principal, id: string): Promise<StoredDelegation> {
  const failed = await read(broker, principal, id);
  requireControl(principal, failed, "redrive it");
  if (principal.kind === "approver") {
    throw new ErrandError("forbidden", "Approvers may not redrive; the delegator and the operator may.", {
      delegation_id: id,
      delegation_valid: !failed.finished,
    });
  }
  return redriveRecord(broker, principal, failed);
}

/** {@link redrive} without the permission check. */
export async function redriveRecord(
  broker: Submits,
  principal: Principal,
  failed: StoredDelegation,
): Promise<StoredDelegation> {
  const newId = broker.shards.newDelegationId(failed.get("target"));
  const { outcome } = await broker.writer.move({
    move: "redrive",
    id: failed.id,
    params: { new_id: newId },
  });
  if (outcome.kind === "state") {
    throw new ErrandError(
      "wrong_state",
      `Delegation ${failed.id} is ${outcome.state}; only a failed one can be redriven.`,
      {
        delegation_id: failed.id,
        delegation_valid: !failed.finished,
        ...(failed.finished && { recovery: "Delegate its task again with POST /v1/delegations." }),
      },
    );
  }
  if (outcome.kind !== "ok" && outcome.kind !== "redriven") throw refusal(outcome, failed.id);
  const chosen = outcome.kind === "redriven" ? outcome.redriven_as : newId;
  const earlier = chosen === newId ? null : await readRecord(broker.redis, broker.shards, chosen);
  if (earlier) return earlier;
  const id = await idElsewhere(broker, failed, chosen, newId);
  const parent_id = failed.get("parent_id");
  const parent = parent_id && (await readRecord(broker.redis, broker.shards, parent_id));
  const agent = await broker.agents.read(failed.get("target"));
  const auto_approve = isStillApproved(principal, failed, agent) ? autoApproveOf(failed) : null;
  const result_schema = failed.get("result_schema");
  const callback = failed.get("callback");
  const budget = ownBudget(failed.get("budget"));
  const asked = delegateRequestSchema.parse({
    target: failed.get("target"),
    message: messageInputSchema.parse(JSON.parse(failed.get("message"))),
    context_id: failed.get("context_id"),
    priority: failed.get("priority"),
    max_attempts: failed.get("max_attempts"),
    metadata: JSON.parse(failed.get("metadata")),
    ...(failed.get("keeps_children") === 1 && { children_on_failure: "keep" }),
    ...(budget && { budget: budget.limit, ...(budget.asks && { on_budget: "ask" }) }),
    ...(auto_approve && { auto_approve }),
    ...(result_schema !== null && { result_schema: JSON.parse(result_schema) }),
    ...(callback !== null && { callback: JSON.parse(callback) }),
    // A parent that accepts no children is left out.
    ...(parent && isOpen(parent, broker) && { parent_id: parent.id }),
  });
  // As long as the original, whose time its parent's deadline may have cut, and which may exceed a request's largest
  // ttl_seconds.
  const ttl_seconds =
    (failed.get("deadline_at") - (failed.get("not_before_at") ?? failed.get("created_at"))) / 1000;
  const request = { ...asked, ttl_seconds };
  const traceparent = failed.get("traceparent") ?? undefined;
  const delegator = failed.get("delegator");
  const budgets = principal.text === delegator ? principal.budgets : undefined;
  const made = await submit(broker, toPrincipal(delegator, { budgets }), request, id, {
    redriveOf: failed.id,
    // A part that lost its parent is in no tree of its root's delegator.
    isCounted: failed.get("counted") === 1 && parent_id === null,
    traceparent,
    ...(auto_approve && { agentCreatedAt: agent?.created_at }),
  });
  const record = made ?? (await readRecord(broker.redis, broker.shards, id));
  if (!record) throw refusal({ kind: "missing", now: 0 }, id);
  return record;
}

const isOpen = (parent: StoredDelegation, { clock }: Submits): boolean =>
  !parent.finished && parent.get("deadline_at") > Date.now() + clock.offset_ms;

/**
 * Whether the approval in advance is given again. Only its delegator gives it, to the agent that it was given to: a new one of
 * the same name is another. Where a person must be asked by now, the work is redriven without it.
 */
function isStillApproved(
  principal: Pick<Principal, "text">,
  failed: StoredDelegation,
  agent: StoredAgent | null,
): boolean {
  if (agent === null || principal.text !== failed.get("delegator")) return false;
  return failed.get("created_at") >= agent.created_at && agent.spec.approvals !== "person";
}

/**
 * Erasing a finished delegation at once: record, events, history, artifacts, and its places in lists and feeds. Limit:
 * what subscribers, callbacks and push receivers have got already stays with them.
 */
import { ErrandError } from "../schema/errors.ts";
import { type Principal, requireControl } from "./access.ts";
import { audit } from "./audit.ts";
import type { Broker } from "./context.ts";
import { soon } from "./dispatch.ts";
import { retireKey } from "./idempotency.ts";
import { read } from "./read.ts";
import { refusal } from "./refuse.ts";

/** What is due before it (the cancel of its children, the queueing of callbacks) is given this many looks. */
const TRIES = 5;

export async function erase(broker: Broker, principal: Principal, id: string): Promise<void> {
  const record = await read(broker, principal, id);
  requireControl(principal, record, "erase it");
  if (principal.kind === "approver") {
    throw new ErrandError("forbidden", "Approvers may not erase; the delegator and the operator may.", {
      delegation_id: id,
      delegation_valid: !record.finished,
    });
  }
  let key_retired = false;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { outcome } = await broker.writer.move({ move: "erase", id, params: { key_retired } });
    if (outcome.outcome === "forgotten") {
      const { target, delegator, state } = record;
      return audit(broker, principal, "delegation.erase", id, { target, delegator, state });
    }
    if (outcome.outcome === "keyed") {
      const { idempotency: name, created_at, now } = outcome;
      await retireKey(broker.redis, { name, id, created_at, now });
      key_retired = true;
    } else if (outcome.outcome === "follow_up") {
      await soon(broker.owe(id, outcome));
    } else throw refusal(outcome, id);
  }
  throw new ErrandError("wrong_state", `What was delegated under ${id} is still being canceled.`, {
    delegation_id: id,
    delegation_valid: false,
    recovery: "Try again in a few seconds.",
  });
}

/**
 * Erases a finished delegation: record, events, history, artifacts, and its entries in lists and feeds. Limit: events that
 * were already delivered stay with their receivers.
 */
import { ErrandError } from "../../schema/errors.ts";
import { type Principal, requireControl } from "../access/access.ts";
import { waitBriefly, warn } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { refusal } from "../errors.ts";
import { type ReleasesFiles, releaseFiles } from "../files/upkeep.ts";
import { forgetTold } from "../subscriptions/told.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import { retireKey } from "./idempotency.ts";
import { read } from "./read.ts";
import { forbidRedrive } from "./redrive-elsewhere.ts";

/** How often pending deliveries, such as canceling children, are made before erasing gives up. */
const TRIES = 5;

export async function erase(
  broker: Reads & AuditWriter & ReleasesFiles & Pick<Broker, "deliverPending" | "writer">,
  principal: Principal,
  id: string,
): Promise<void> {
  const record = await read(broker, principal, id);
  requireControl(principal, record, "erase it");
  if (principal.kind === "approver") {
    throw new ErrandError(
      "forbidden",
      "Approvers may not erase delegations; only the delegator and the operator may.",
      {
        delegation_id: id,
        delegation_valid: !record.finished,
      },
    );
  }
  await forbidRedrive(broker, record);
  let key_retired = false;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { outcome } = await broker.writer.move({ move: "erase", id, params: { key_retired } });
    if (outcome.kind === "removed") {
      await audit(broker, principal, "delegation.erase", id, {
        target: record.get("target"),
        delegator: record.get("delegator"),
        state: record.get("state"),
      });
      // It is erased; what fails here is done by the upkeep.
      await releaseFiles(broker, id).catch((error: unknown) => warn(broker, error, "files not released"));
      await forgetTold(broker.redis, id).catch((error: unknown) =>
        warn(broker, error, "who was notified of its questions is kept"),
      );
      return;
    }
    if (outcome.kind === "retire_key") {
      const { idempotency: name, created_at, now } = outcome;
      await retireKey(broker.redis, { name, id, created_at, now });
      key_retired = true;
    } else if (outcome.kind === "pending") {
      await waitBriefly(broker.deliverPending(id, outcome));
    } else if (outcome.kind === "state") {
      throw new ErrandError(
        "wrong_state",
        `Delegation ${id} is ${outcome.state}; only a finished one can be erased.`,
        {
          delegation_id: id,
          recovery: "Cancel it first, or wait until it ends.",
        },
      );
    } else throw refusal(outcome, id);
  }
  throw new ErrandError(
    "wrong_state",
    `The end of ${id} is not fully processed: its children, its parent or its receivers still have to learn of it.`,
    {
      delegation_id: id,
      delegation_valid: false,
      recovery: "Try again in a few seconds.",
    },
  );
}

/**
 * Cancels a delegation in any live state. Limit: its children are canceled after the move, usually before the response;
 * the sweep finishes an interrupted cascade.
 */

import { failure } from "../../lifecycle/numbers.ts";
import type { Result } from "../../lifecycle/outcome.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import { type Principal, requireControl } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { refusal } from "../errors.ts";
import { read } from "./read.ts";

export async function cancel(
  broker: Moves & Reads,
  principal: Principal,
  id: string,
  options: CancelOptions,
): Promise<StoredDelegation> {
  requireControl(principal, await read(broker, principal, id), "cancel it");
  return cancelAs(broker, principal.text, id, options);
}

export interface CancelOptions {
  readonly reason?: string | undefined;
  /** Whether its children are canceled, too. Default: yes, unless the delegation keeps them. */
  readonly cascade?: boolean | undefined;
}

/**
 * Makes the move only; the caller calls `afterMove`. `all`: also what is under children that keep theirs, and under what
 * has ended.
 */
export async function cancelMove(
  broker: Pick<Broker, "writer">,
  by: string,
  id: string,
  { reason, cascade }: Omit<CancelOptions, "cascade"> & { readonly cascade?: boolean | "all" | undefined },
  read: boolean,
): Promise<Result> {
  const suffix = reason === undefined || reason === "" ? "" : `: ${reason}`;
  const error = JSON.stringify(failure("canceled", `Canceled by ${by}${suffix}`));
  const result = await broker.writer.move({
    move: "cancel",
    id,
    params: { cascade: cascade === false ? undefined : by, always: cascade === true, all: cascade === "all" },
    event: { error, by: JSON.stringify(by) },
    fields: { error },
    read,
  });
  const { outcome } = result;
  // An earlier cancel without `cascade` may have left its children alone.
  const goesOn = outcome.kind === "state" && (outcome.state === "canceled" || cascade === "all");
  if (cascade === false || !goesOn) return result;
  const params = { cascade: by, always: cascade === true, all: cascade === "all" };
  return broker.writer.move({ move: "cascade", id, params, read });
}

/** Cancels in the name of `by`, whose permission the caller has checked. A second cancel can only reach the children. */
export async function cancelAs(
  broker: Moves & Reads,
  by: string,
  id: string,
  options: CancelOptions,
): Promise<StoredDelegation> {
  const { outcome, record } = await cancelMove(broker, by, id, options, true);
  if (outcome.kind === "ok" && record) {
    await afterMove(broker, id, outcome);
    return record;
  }
  if (outcome.kind === "state" && outcome.state === "canceled") {
    const canceled = record ?? (await readRecord(broker.redis, broker.shards, id));
    if (canceled) return canceled;
  }
  throw refusal(outcome, id);
}

/** Returns null when the delegation ended or was deleted meanwhile. */
export async function cancelIfLive(
  broker: Moves & Reads,
  by: string,
  id: string,
  options: CancelOptions,
): Promise<StoredDelegation | null> {
  try {
    return await cancelAs(broker, by, id, options);
  } catch (error) {
    const isOver =
      error instanceof ErrandError && ["already_finished", "delegation_not_found"].includes(error.code);
    if (isOver) return null;
    throw error;
  }
}

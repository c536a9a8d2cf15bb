/**
 * Canceling a delegation in any live state. Limit: its children follow behind the move, usually before the answer; the
 * sweep finishes what is cut short.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/record.ts";
import { failure } from "../../lifecycle/script.ts";
import type { Result } from "../../lifecycle/writer.ts";
import { ErrandError } from "../../schema/errors.ts";
import { type Principal, requireControl, requireOperator } from "../access/access.ts";
import { afterMove } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { refusal } from "../errors.ts";
import { audit } from "../upkeep/audit.ts";
import { read } from "./read.ts";

export async function cancel(
  broker: Broker,
  principal: Principal,
  id: string,
  options: CancelOptions,
): Promise<StoredDelegation> {
  requireControl(principal, await read(broker, principal, id), "cancel it");
  return cancelAs(broker, principal.text, id, options);
}

export interface CancelOptions {
  readonly reason?: string | undefined;
  /** Cancel what was delegated under it, too. */
  readonly cascade: boolean;
}

/** Makes the move only; the caller handles what follows from it. */
export async function cancelMove(
  broker: Broker,
  by: string,
  id: string,
  { reason, cascade }: CancelOptions,
  read: boolean,
): Promise<Result> {
  const said = reason === undefined || reason === "" ? "" : `: ${reason}`;
  const error = JSON.stringify(failure("canceled", `Canceled by ${by}${said}`));
  const result = await broker.writer.move({
    move: "cancel",
    id,
    params: { cascade: cascade ? by : undefined },
    event: { error, by: JSON.stringify(by) },
    fields: { error },
    read,
  });
  const { outcome } = result;
  // An earlier cancel without `cascade` may have left its children alone.
  if (!cascade || outcome.kind !== "state" || outcome.state !== "canceled") return result;
  return broker.writer.move({ move: "cascade", id, params: { cascade: by }, read });
}

/** Cancels in the name of `by`, whose right to cancel is checked already. A second cancel can only reach the children. */
export async function cancelAs(
  broker: Broker,
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
    const standing = record ?? (await readRecord(broker.redis, broker.shards, id));
    if (standing) return standing;
  }
  throw refusal(outcome, id);
}

/** The same for what may have come to its own end, or be forgotten, meanwhile; null then. */
export async function cancelIfLive(
  broker: Broker,
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

/**
 * Takes an agent away with all that hangs on it; false when it is busy and `force` is off. Every step may be
 * repeated, so a deletion that was cut short is finished by asking for it again.
 */
export async function removeAgent(
  broker: Broker,
  principal: Principal,
  agent: string,
  force: boolean,
): Promise<boolean> {
  requireOperator(principal, "delete agents");
  const { delivery } = (await broker.agents.get(agent)).spec;
  if (!(await broker.agents.close(agent, force))) return false;
  await audit(broker, principal, "agent.delete", agent, { force });
  await broker.tokens.revokeAll(`agent:${agent}`);
  const options = { reason: "the agent was deleted", cascade: true };
  for (let ids = await broker.agents.live(agent); ids.length > 0; ids = await broker.agents.live(agent)) {
    await Promise.all(ids.map((id) => cancelIfLive(broker, "operator", id, options)));
  }
  await broker.tickets.drop(agent);
  await broker.agents.forget(agent);
  if (delivery.mode === "push" || broker.pushAgents.has(agent)) await broker.pushAgents.changed(agent);
  return true;
}

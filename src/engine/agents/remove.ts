/** Deletes an agent. */

import { type Principal, requireOperator } from "../access/access.ts";
import type { Moves } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { cancelIfLive } from "../delegations/cancel.ts";
import { deleteSchedulesOf } from "../schedules/delete-of.ts";
import { deleteSubscriptionsOf } from "../subscriptions/change.ts";
import { audit } from "../upkeep/audit.ts";
import type { Conditions } from "./conditions.ts";

/**
 * Deletes an agent, its tokens, its schedules, its rules, its queue and its unfinished delegations; false when it is busy and `force`
 * is off. Every step may be repeated, so a second request finishes a deletion that was cut short.
 */
export async function removeAgent(
  broker: Moves &
    Reads &
    Pick<Broker, "clock" | "counters" | "rules" | "schedules" | "subscriptions" | "tokens">,
  principal: Principal,
  agent: string,
  force: boolean,
  conditions: Conditions = {},
): Promise<boolean> {
  requireOperator(principal, "delete agents");
  const { delivery } = (await broker.agents.get(agent)).spec;
  const begun = await broker.agents.whileUnchanged(agent, conditions, (tag) =>
    broker.agents.beginDeletion(agent, force, tag),
  );
  if (!begun) return false;
  await audit(broker, principal, "agent.delete", agent, { force });
  await broker.tokens.revokeAll(`agent:${agent}`);
  await deleteSchedulesOf(broker, `agent:${agent}`);
  await broker.rules.dropOfAgent(agent);
  await deleteSubscriptionsOf(broker, `agent:${agent}`);
  const options = { reason: "the agent was deleted" };
  for (
    let ids = await broker.agents.liveDelegations(agent);
    ids.length > 0;
    ids = await broker.agents.liveDelegations(agent)
  ) {
    await Promise.all(ids.map((id) => cancelIfLive(broker, "operator", id, options)));
  }
  await broker.tickets.deleteQueue(agent);
  await broker.counters.forget(agent);
  await broker.agents.finishDeletion(agent);
  if (delivery.mode === "push" || broker.pushAgents.has(agent)) await broker.pushAgents.publishChange(agent);
  return true;
}

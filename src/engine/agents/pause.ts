/** Pauses an agent, so that it gets no work, and resumes it. */
import { type Principal, requireOperator } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { type AuditWriter, audit } from "../upkeep/audit.ts";
import type { Conditions } from "./conditions.ts";

export async function setPaused(
  broker: AuditWriter & Pick<Broker, "agents" | "handoff">,
  principal: Principal,
  agent: string,
  paused: boolean,
  conditions: Conditions = {},
): Promise<void> {
  requireOperator(principal, "pause or resume an agent");
  await broker.agents.get(agent);
  await broker.agents.whileUnchanged(agent, conditions, (tag) => broker.agents.setPaused(agent, paused, tag));
  await audit(broker, principal, paused ? "agent.pause" : "agent.resume", agent);
  if (!paused) broker.handoff.wakeEverywhere(agent);
}

/** Whether an agent's settings allow what its delegators approved in advance. */
import type { Broker } from "../broker.ts";

/** Not from the cache: a person must be asked as soon as the agent's owner says so. */
export async function allowsApprovalInAdvance({ agents }: Pick<Broker, "agents">, agent: string) {
  const found = await agents.read(agent);
  return found !== null && found.spec.approvals !== "person";
}

/** Whether an agent allows rules and approval in advance, and whose approvals count. */
import type { Votes } from "../../schema/votes.ts";
import type { Broker } from "../broker.ts";

export interface ApprovalTerms {
  readonly isAllowed: boolean;
  readonly votes: Votes | null;
}

/** Not from the cache: once the setting `approvals` is `person`, neither a rule nor an approval in advance may answer. */
export async function approvalTerms(
  { agents }: Pick<Broker, "agents">,
  agent: string,
): Promise<ApprovalTerms> {
  const spec = (await agents.read(agent))?.spec;
  return { isAllowed: spec !== undefined && spec.approvals !== "person", votes: spec?.votes ?? null };
}

export const allowsApprovalInAdvance = async (
  broker: Pick<Broker, "agents">,
  agent: string,
): Promise<boolean> => (await approvalTerms(broker, agent)).isAllowed;

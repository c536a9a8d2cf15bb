/** The parameters by which the script checks the holder of a lease. */
import { parseLeaseId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { Principal } from "../access/access.ts";

/** The fence, and the agent of the caller unless it is the operator. */
export function holderOf(
  principal: Principal,
  leaseId: string,
): { id: string; params: { fence: number; agent?: string } } {
  const { delegationId, fence } = parseLeaseId(leaseId);
  if (principal.kind === "operator") return { id: delegationId, params: { fence } };
  if (principal.kind !== "agent") {
    throw new ErrandError("forbidden", `${principal.text} cannot hold leases; only agents can.`);
  }
  return { id: delegationId, params: { fence, agent: principal.name } };
}

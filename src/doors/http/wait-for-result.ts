/** What doors do about a delegation that was just accepted. Limit: the wait itself is the engine's. */
import { warn } from "../../engine/after-move.ts";
import { readWhenReady } from "../../engine/delegations/read.ts";
import type { StoredDelegation } from "../../lifecycle/record.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { RequestScope } from "./request-scope.ts";

/** What was accepted, once it is ready; or else as it was accepted: nothing may cost its sender the id any more. */
export async function waitForResult(
  request: AuthenticatedRequest,
  accepted: StoredDelegation,
  wait_seconds: number,
  scope: RequestScope,
): Promise<StoredDelegation> {
  const { broker, principal } = request;
  try {
    const record = await readWhenReady(broker, principal, accepted.id, {
      wait_seconds,
      signal: scope,
      known: accepted,
    });
    scope.throwIfRevoked();
    return record;
  } catch (error) {
    if (!(error instanceof ErrandError)) warn(broker, error, "accepted, but not waited for");
    return accepted;
  }
}

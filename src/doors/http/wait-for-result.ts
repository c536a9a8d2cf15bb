/** Waits for the result of a delegation that was just accepted. */
import { warn } from "../../engine/after-move.ts";
import { readWhenReady } from "../../engine/delegations/read.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { AuthenticatedRequest } from "./authenticated-request.ts";
import type { RequestScope } from "./request-scope.ts";

/** Returns the delegation when it is ready. An error returns it as accepted, because the caller must learn its id. */
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
    if (!(error instanceof ErrandError)) warn(broker, error, "wait for an accepted delegation failed");
    return accepted;
  }
}

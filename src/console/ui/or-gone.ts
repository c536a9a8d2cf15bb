import { ErrandApiError } from "../../client/errors.ts";

/** Whether the delegation was not found. */
export const isMissing = (error: unknown): boolean =>
  error instanceof ErrandApiError && error.code === "delegation_not_found";

/** Ends well also if there is nothing left to delete: an earlier call, whose answer was lost, has done it. */
export async function orGone(deleting: Promise<unknown> | undefined): Promise<void> {
  try {
    await deleting;
  } catch (error) {
    if (!(error instanceof ErrandApiError && error.status === 404)) throw error;
  }
}

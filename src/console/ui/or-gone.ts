import { ErrandApiError } from "../../client/errors.ts";

/** Ends well also if there is nothing left to delete: an earlier call, whose answer was lost, has done it. */
export async function orGone(deleting: Promise<unknown> | undefined): Promise<void> {
  try {
    await deleting;
  } catch (error) {
    if (!(error instanceof ErrandApiError && error.status === 404)) throw error;
  }
}

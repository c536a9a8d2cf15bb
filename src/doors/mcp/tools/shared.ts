/** Visibility and parameters that several tools share. */
import { delegationIdSchema } from "../../../schema/values.ts";

export const CALLERS = ["agent", "caller", "operator"] as const;
export const CONTROLLERS = ["agent", "caller", "approver", "operator"] as const;
export const READERS = ["agent", "caller", "approver", "viewer", "operator"] as const;
export const WORKERS = ["agent", "operator"] as const;

export const delegationIdInput = delegationIdSchema.describe(
  "The delegation_id, as returned when delegating.",
);

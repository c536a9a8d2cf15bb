/** Approval in advance: with the task, the delegator says which questions of its agent are approved. */
import * as z from "zod";
import { actionPatternSchema } from "./action-pattern.ts";
import { LIMITS } from "./limits.ts";

/**
 * `true`: every proposed action, and every question whose options are exactly approve and deny. `actions`: the proposed
 * actions with these names; a name that ends in `*` matches every name that begins like it.
 */
export const autoApproveSchema = z
  .union([
    z.literal(true),
    z.strictObject({
      /** The names of the approved actions, 1 to 100; `*` at the end matches any rest. */
      actions: z.array(actionPatternSchema).min(1).max(100),
    }),
  ])
  .refine(
    (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.auto_approve_bytes.value,
    `auto_approve exceeds ${LIMITS.auto_approve_bytes.value} bytes`,
  );
/** The questions that are approved in advance; never an `auth` question. */
export type AutoApprove = z.infer<typeof autoApproveSchema>;

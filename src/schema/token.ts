/** Bearer tokens and their principals. Limit: the secret appears only in the response that creates it. */
import * as z from "zod";
import { instantSchema, principalSchema } from "./values.ts";

export const tokenRequestSchema = z.strictObject({
  principal: principalSchema.refine((principal) => principal !== "operator", {
    error: "the operator token is configured (ERRAND_OPERATOR_TOKEN), not created",
  }),
  expires_in_seconds: z.number().positive().max(315_360_000).optional(),
});
export type TokenRequest = z.output<typeof tokenRequestSchema>;

export const tokenSchema = z.strictObject({
  id: z.string(),
  principal: principalSchema,
  created_at: instantSchema,
  expires_at: instantSchema.nullable(),
});
export type TokenInfo = z.infer<typeof tokenSchema>;
export const newTokenSchema = tokenSchema.extend({ token: z.string() });

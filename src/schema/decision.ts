/** Yes or no, as an answer. */
import * as z from "zod";

/** Yes or no. */
export const decisionSchema = z.enum(["approve", "deny"]);
export type Decision = z.infer<typeof decisionSchema>;
export const isDecision = (value: unknown): value is Decision => decisionSchema.safeParse(value).success;

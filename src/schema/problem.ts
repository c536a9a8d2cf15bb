/** Problem details: the form of every HTTP error. */
import * as z from "zod";
import { categorySchema } from "./errors.ts";
import { jsonObjectSchema } from "./json-object.ts";

/** The body of every error response, `application/problem+json` (RFC 9457). */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  category: categorySchema,
  retryable: z.boolean(),
  recovery: z.string(),
  details: jsonObjectSchema.optional(),
  request_id: z.string().optional(),
  /** The broker that answers. Absent in an error that the library makes itself. */
  broker_id: z.string().optional(),
  delegation_id: z.string().optional(),
  delegation_valid: z.boolean().optional(),
});
export type Problem = z.infer<typeof problemSchema>;

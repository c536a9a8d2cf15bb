/** Problem details: the form of every HTTP error. */
import * as z from "zod";
import { categorySchema } from "./errors.ts";
import { jsonObjectSchema } from "./json-object.ts";

/** The body of every error response, `application/problem+json` (RFC 9457). */
export const problemSchema = z.object({
  /** `urn:errand:error:` and the code. */
  type: z.string(),
  /** The kind of problem, in words. */
  title: z.string(),
  /** The HTTP status. */
  status: z.int(),
  /** What is wrong with this request. */
  detail: z.string(),
  /** The kind of problem, as a stable name. */
  code: z.string(),
  /** The group of the code. */
  category: categorySchema,
  /** Whether the same request may succeed later. */
  retryable: z.boolean(),
  /** What to do next. */
  recovery: z.string(),
  /** More about the problem. An invalid request has `issues`: for each a `path` and a `reason`. */
  details: jsonObjectSchema.optional(),
  /** Identifies the request in the broker's log. */
  request_id: z.string().optional(),
  /** The broker that answers. Absent in an error that the library makes itself. */
  broker_id: z.string().optional(),
  /** The delegation that the problem is about. */
  delegation_id: z.string().optional(),
  /** True while that delegation has not ended. */
  delegation_valid: z.boolean().optional(),
});
export type Problem = z.infer<typeof problemSchema>;

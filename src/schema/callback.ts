/**
 * Where a delegator wants to be told of the end or of a question. Limit: never echoed; secrets are kept
 * with the delegation until it is forgotten.
 */
import * as z from "zod";

export const secretSchema = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, "whsec_ and 24 to 64 bytes in base64");

export const callbackSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).max(2048),
  /** Several while one is replaced by another: each signs. */
  secret: z.union([secretSchema, z.array(secretSchema).min(1).max(3)]).optional(),
  /** Sent as a bearer token. */
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, "1 to 512 printable ASCII characters without spaces")
    .optional(),
});
export type Callback = z.infer<typeof callbackSchema>;

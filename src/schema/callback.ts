/**
 * The URL that receives a delegation's questions and its end. Limit: it is never shown again; its secrets are stored with
 * the delegation until it is deleted.
 */
import * as z from "zod";
import { httpUrlSchema } from "./values.ts";

/** A secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export const secretSchema = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, "must be whsec_ and 24 to 64 bytes in base64");

export const callbackSchema = z.strictObject({
  /** Receives a POST for each question and for the end; http or https, up to 2048 characters. */
  url: httpUrlSchema,
  /** Signs every call (Standard Webhooks). Several during a rotation: each signs every call. */
  secret: z.union([secretSchema, z.array(secretSchema).min(1).max(3)]).optional(),
  /** Sent as a bearer token, up to 512 printable ASCII characters. */
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, "1 to 512 printable ASCII characters without spaces")
    .optional(),
});
/** A URL that receives a delegation's questions and its end. */
export type Callback = z.infer<typeof callbackSchema>;

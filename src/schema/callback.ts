/**
 * The URL that receives a delegation's questions and its end. Limit: it is never shown again; its secrets are stored with
 * the delegation until it is deleted.
 */
import * as z from "zod";

export const secretSchema = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, "whsec_ and 24 to 64 bytes in base64");

export const callbackSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).max(2048),
  /** Several during a rotation; each one signs every call. */
  secret: z.union([secretSchema, z.array(secretSchema).min(1).max(3)]).optional(),
  /** Sent as a bearer token. */
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, "1 to 512 printable ASCII characters without spaces")
    .optional(),
});
export type Callback = z.infer<typeof callbackSchema>;

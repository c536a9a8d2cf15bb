/**
 * Push notification configs: where a delegation's events are POSTed to as A2A updates, and with what credentials.
 * Limit: what an A2A client may leave empty is left out here; that is its door's to see to.
 */
import * as z from "zod";

/** Header values: no line break, nothing that a proxy might read otherwise. */
const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const headerSchema = z
  .string()
  .max(4096)
  .regex(PRINTABLE, "printable ASCII characters, without line breaks or blanks around them");

export const pushIdSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces");

/** In whose words a receiver is told: the version of A2A by which the config was made. */
export const pushVersionSchema = z.enum(["1.0", "0.3"]);
export type PushVersion = z.infer<typeof pushVersionSchema>;

export const pushInputSchema = z.strictObject({
  /** Made by the broker when absent; one that exists already is replaced. */
  id: pushIdSchema.optional(),
  url: z.url({ protocol: /^https?$/ }).max(2048),
  /** Sent back as `X-A2A-Notification-Token`. */
  token: headerSchema.optional(),
  /** Sent as `Authorization: <scheme> <credentials>`. */
  authentication: z
    .strictObject({
      scheme: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/, "the name of an HTTP scheme"),
      credentials: headerSchema.optional(),
    })
    .optional(),
});
export type PushInput = z.infer<typeof pushInputSchema>;

export const pushSchema = pushInputSchema.extend({ id: pushIdSchema });
/** A push notification config as its delegation's delegator sees it. */
export type Push = z.infer<typeof pushSchema>;

/** As it is kept. */
export const storedPushSchema = pushSchema.extend({ version: pushVersionSchema });
export type StoredPush = z.infer<typeof storedPushSchema>;

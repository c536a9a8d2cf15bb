/** Whether somebody works for an agent. */
import * as z from "zod";
import { instantSchema } from "./values.ts";

export const presenceSchema = z.strictObject({
  /** `online`: a worker polls, or did just now; `stale`: one polled minutes ago; `offline`: none did since. */
  state: z.enum(["online", "stale", "offline"]),
  /** When a worker last polled; null: never. */
  last_seen_at: instantSchema.nullable(),
  /** How many polls wait for work now; 0 for a push agent. */
  pollers: z.int().min(0),
  /** Workers that take no work for a while, because they fail or cannot work; absent: none. */
  paused: z
    .strictObject({
      /** How many workers pause. */
      workers: z.int().min(1),
      /** When the first of them tries again. */
      until: instantSchema,
      /** Why the newest paused. */
      reason: z.string(),
    })
    .optional(),
});
/**
 * Whether workers poll for the agent: how many now, and when the last one did (an ISO 8601 instant). For a push agent:
 * whether the last call reached its server.
 */
export type Presence = z.infer<typeof presenceSchema>;

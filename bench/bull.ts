/** The comparison: BullMQ used as its manual shows, without a broker. Limit: one queue. */
import { z } from "zod";

export const QUEUE = "bench";

/** The start options of its processes: where Redis is, and the load. */
export const bullSchema = z.object({
  path: z.string(),
  password: z.string(),
  db: z.number(),
  lanes: z.number(),
  /** Jobs in progress at a time; absent: as many as lanes. */
  working: z.number().optional(),
  bytes: z.number(),
  /** Jobs a second; null: each lane sends the next as soon as it has its result. */
  rate: z.number().nullable(),
});

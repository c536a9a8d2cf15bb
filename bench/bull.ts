/** The rival: BullMQ used as its manual shows, without a broker between. Limit: one queue. */
import { z } from "zod";

export const QUEUE = "bench";

/** What its processes are started with: where Redis is, and the load. */
export const bullSchema = z.object({
  path: z.string(),
  password: z.string(),
  db: z.number(),
  lanes: z.number(),
  bytes: z.number(),
  /** Jobs a second; null: each lane as soon as it has its result. */
  rate: z.number().nullable(),
});

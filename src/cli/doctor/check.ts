/** One finding of `errand doctor`. Limit: a shape; the findings are in doctor-local.ts and doctor-broker.ts. */
import { z } from "zod";
import { categorySchema } from "../../schema/errors.ts";

export const checkSchema = z.strictObject({
  check: z.enum([
    "node",
    "settings",
    "data_dir",
    "broker",
    "token",
    "version",
    "clock",
    "append_only",
    "redis",
    "redis_eviction",
    "redis_durability",
    "redis_memory",
  ]),
  /** `skip`: could not be looked at, for a reason told in `detail`. */
  status: z.enum(["ok", "warn", "fail", "skip"]),
  detail: z.string(),
  /** What to do; with every `warn` and `fail`. */
  remedy: z.string().optional(),
  /** Of a `fail`: whose exit code it is. */
  category: categorySchema.optional(),
});
export type Check = z.infer<typeof checkSchema>;

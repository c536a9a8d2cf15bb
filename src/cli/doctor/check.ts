/** The result of one check of `errand doctor`. The checks are in local.ts, broker.ts and preset.ts. */
import * as z from "zod";
import { categorySchema } from "../../schema/errors.ts";

export const checkSchema = z.strictObject({
  check: z.enum([
    "node",
    "settings",
    "data_dir",
    "proxy",
    "egress_proxy",
    "broker",
    "readiness",
    "token",
    "version",
    "clock",
    "gateways",
    "links",
    "mail",
    "append_only",
    "redis",
    "redis_eviction",
    "redis_durability",
    "redis_memory",
    "disk",
    "program",
    "adapter",
    "sign_in",
  ]),
  /** `skip`: not checked, for the reason in `detail`. */
  status: z.enum(["ok", "warn", "fail", "skip"]),
  detail: z.string(),
  /** What to do. Present with `warn` and `fail`. */
  remedy: z.string().optional(),
  /** Present with `fail`: decides the exit code. */
  category: categorySchema.optional(),
});
export type Check = z.infer<typeof checkSchema>;

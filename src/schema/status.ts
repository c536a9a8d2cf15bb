/**
 * What a broker says of itself: version, time, its Redis. Limit: one gateway's view; a rate or a count is a
 * metric (`/metrics`).
 */
import { z } from "zod";
import { instantSchema, principalSchema } from "./values.ts";

export const redisStatusSchema = z.strictObject({
  /** `embedded`: started by the broker in its data directory. */
  source: z.enum(["embedded", "external"]),
  product: z.enum(["redis", "valkey"]),
  version: z.string(),
  maxmemory_policy: z.string().nullable(),
  /** 0: no limit. */
  maxmemory_bytes: z.int().min(0),
  used_memory_bytes: z.int().min(0),
  appendonly: z.boolean(),
  /** Null where the provider hides CONFIG. */
  appendfsync: z.string().nullable(),
});
export type RedisStatus = z.infer<typeof redisStatusSchema>;

export const statusSchema = z.strictObject({
  version: z.string(),
  /** By Redis' clock, which all timing goes by. */
  now: instantSchema,
  /** Whose token it was. */
  principal: principalSchema,
  /** For the operator and viewers; null for anybody else. */
  redis: redisStatusSchema.nullable(),
});
export type Status = z.infer<typeof statusSchema>;

/** The broker's status: version, time, its Redis. Limit: one gateway's view; counts and rates are metrics (`/metrics`). */
import * as z from "zod";
import { periodBudgetsShownSchema } from "./budget.ts";
import { instantSchema, principalSchema } from "./values.ts";

/** Below this much free space, doctor, status and log warn: a rewrite of the append-only file needs room for a second one. */
export const DISK_LOW_BYTES = 512 * 1024 * 1024;

export const redisStatusSchema = z.strictObject({
  /** `embedded`: started by the broker in its data directory; `external`: not. */
  source: z.enum(["embedded", "external"]),
  /** The server's product. */
  product: z.enum(["redis", "valkey"]),
  /** The server's version. */
  version: z.string(),
  /**
   * For a Redis Cluster: the number of its masters. The sizes are sums, and each setting is the weakest of any
   * master.
   */
  masters: z.int().min(1).optional(),
  /** What it does when the memory is full; null: not known. */
  maxmemory_policy: z.string().nullable(),
  /** The bound of its memory; 0: none. */
  maxmemory_bytes: z.int().min(0),
  /** The memory in use. */
  used_memory_bytes: z.int().min(0),
  /** Whether it writes an append-only file. */
  appendonly: z.boolean(),
  /** When it flushes that file; null: the provider does not say. */
  appendfsync: z.string().nullable(),
  /** Free space on the disk of the data directory; absent for an external Redis, and where it is not known. */
  disk_free_bytes: z.int().min(0).optional(),
  /** The size of that disk. */
  disk_total_bytes: z.int().min(0).optional(),
  /** How long Redis just took to answer. */
  latency_ms: z.number().min(0),
});
/** The broker's Redis. */
export type RedisStatus = z.infer<typeof redisStatusSchema>;

export const filesStatusSchema = z.strictObject({
  /** A folder, or the URL of a bucket. */
  place: z.string(),
  /** What all files and uploads take. */
  bytes: z.int().min(0),
  /** How large one file may be. */
  max_bytes: z.int().min(0),
  /** How much the files and uploads of one principal may take. */
  principal_max_bytes: z.int().min(0),
  /** The space that is left there; null: not known. */
  free_bytes: z.int().min(0).nullable(),
});
/** Where the broker stores files. */
export type FilesStatus = z.infer<typeof filesStatusSchema>;

/** One of several gateways on a port, which one supervisor runs (`ERRAND_WORKERS`). */
export const gatewayStatusSchema = z.strictObject({
  /** From 1 on; its successor has the same. */
  number: z.int().min(1),
  /** The id of its process. */
  pid: z.int(),
  /** Where it is in its life. */
  state: z.enum(["starting", "ready", "stopping"]),
  /** When it started. */
  started_at: instantSchema,
  /** How often a gateway with this number ended unexpectedly. */
  restarts: z.int().min(0),
});
export type GatewayStatus = z.infer<typeof gatewayStatusSchema>;

export const statusSchema = z.strictObject({
  /** The broker's version. */
  version: z.string(),
  /** The id of the broker, the same at each of its gateways. */
  broker_id: z.string(),
  /** Where clients reach the broker: ERRAND_PUBLIC_URL, or the address that it listens on. */
  url: z.string(),
  /** When this gateway started. */
  started_at: instantSchema,
  /** The time of Redis, by which all timers run. */
  now: instantSchema,
  /** The principal of the request's token. */
  principal: principalSchema,
  /** What notifications may contain and how they leave. */
  notifications: z
    .strictObject({
      /** Whether they have links: ERRAND_PUBLIC_URL is set. */
      links: z.boolean(),
      /** Whether the broker has a mail server. */
      mail: z.boolean(),
    })
    .optional(),
  /** What the caller's work may use by day and by month, and has used; absent if its token has no budgets. */
  budgets: periodBudgetsShownSchema.optional(),
  /** For the operator and viewers; null for others. */
  redis: redisStatusSchema.nullable(),
  /** For the operator and viewers; null: the broker stores no files. */
  files: filesStatusSchema.nullable().optional(),
  /** For the operator and viewers, if a supervisor runs several gateways on this port. */
  gateways: z.array(gatewayStatusSchema).optional(),
});
/** The broker's status, as one gateway sees it. */
export type Status = z.infer<typeof statusSchema>;

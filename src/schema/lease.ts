/** Requests of workers: leases, heartbeats, replies. Limit: a lease id is no credential; the token decides. */
import * as z from "zod";
import { artifactInputSchema, messageSchema, replyMessageInputSchema } from "./a2a.ts";
import { delegationSchema, progressSchema } from "./delegation.ts";
import { LIMITS } from "./limits.ts";
import { usageReportSchema } from "./usage.ts";
import { checkpointSchema, instantSchema, leaseIdSchema, waitSecondsSchema } from "./values.ts";

const workerIdSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces");

/** A worker that pauses: which, for how long, and why. Shown with the agent until the time is over. */
export const workerPauseSchema = z.strictObject({
  id: workerIdSchema,
  paused_seconds: z.number().min(0).max(86_400),
  /** Shown to everyone who sees the agent. */
  reason: z.string().min(1).max(200),
});
export type WorkerPause = z.output<typeof workerPauseSchema>;

export const leaseRequestSchema = z.strictObject({
  wait_seconds: waitSecondsSchema.default(20),
  max: z.int().min(1).max(LIMITS.leases.value).default(1),
  lease_seconds: z.number().min(1).max(3600).optional(),
  confirm_within_seconds: z.number().min(1).max(3600).optional(),
  worker_id: workerIdSchema.optional(),
});
export type LeaseRequest = z.output<typeof leaseRequestSchema>;

/** An A2A JSON-RPC SendMessage request, ready to be sent to any A2A server; its id is the lease id. */
export const leaseEnvelopeSchema = z.object({
  jsonrpc: z.literal("2.0"),
  id: leaseIdSchema,
  method: z.literal("SendMessage"),
  params: z.object({ message: messageSchema }),
});

export const leaseSchema = z.strictObject({
  lease_id: leaseIdSchema,
  expires_at: instantSchema,
  attempt: z.int().min(1),
  delegation: delegationSchema,
  request: leaseEnvelopeSchema,
  traceparent: z.string().optional(),
  checkpoint: checkpointSchema.optional(),
});
export type Lease = z.infer<typeof leaseSchema>;
export const leasesSchema = z.strictObject({ leases: z.array(leaseSchema) });

/** The states in which there may be a lease. */
const holdingStateSchema = z.enum(["working", "input_required", "auth_required"]);
export type HoldingState = z.output<typeof holdingStateSchema>;

export const heartbeatRequestSchema = z.strictObject({
  progress: progressSchema.optional(),
  /** The messageId of the newest follow-up received; it acknowledges all earlier ones too. */
  seen: z.string().min(1).max(255).optional(),
  /** Replaces the previous checkpoint; null deletes it. */
  checkpoint: checkpointSchema.nullable().optional(),
  /** What this lease has used so far; replaces its previous report. No amount may shrink. */
  usage: usageReportSchema.optional(),
  wait_seconds: waitSecondsSchema.default(0),
  /** The state that the holder knows: if the delegation has another one, there is no wait. */
  in_state: holdingStateSchema.optional(),
});
export type HeartbeatInput = z.input<typeof heartbeatRequestSchema>;
export const heartbeatSchema = z.strictObject({
  expires_at: instantSchema,
  /** `input_required` or `auth_required` while the holder's question is open and held. */
  state: holdingStateSchema,
  messages: z.array(messageSchema),
  /** The lease is extended, but the progress was dropped: the delegation's events or the memory are at their limit. */
  progress_dropped: z.literal(true).optional(),
});

export const artifactRequestSchema = z.strictObject({
  artifact: artifactInputSchema,
  append: z.boolean().default(false),
  last_chunk: z.boolean().default(false),
  /** Makes a retry safe: compared with the chunk_id of the last chunk accepted for this artifact on this lease. */
  chunk_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces")
    .optional(),
});
export const artifactAnswerSchema = z.strictObject({
  expires_at: instantSchema,
  /** The chunk repeats the last one and was not added. */
  duplicate: z.literal(true).optional(),
});

export const LEASE_LOST_REASONS = [
  "expired",
  "canceled",
  "finished",
  "released",
  "interrupted",
  "retried",
  "not_leased",
] as const;
export type LeaseLostReason = (typeof LEASE_LOST_REASONS)[number];

export const releaseRequestSchema = z.strictObject({
  delay_seconds: z.number().min(0).max(86_400).default(0),
  reason: z.string().max(1024).optional(),
  /**
   * The worker cannot work at all now. The return counts against the limit `returns`; beyond it the delegation fails with
   * `worker_unavailable`.
   */
  worker: workerPauseSchema.optional(),
});

export const replyRequestSchema = z
  .strictObject({
    state: z.enum(["completed", "failed", "rejected"]),
    text: z.string().optional(),
    message: replyMessageInputSchema.optional(),
    artifacts: z.array(artifactInputSchema).max(LIMITS.artifacts.value).optional(),
    error: z
      .strictObject({
        code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, "a code is snake_case, up to 64 characters"),
        message: z.string().max(65_536),
        retryable: z.boolean().default(false),
        /** The kind of failure. Default: `UPSTREAM`. */
        category: z.enum(["AUTH", "UPSTREAM", "TRANSPORT", "TIMEOUT"]).optional(),
        /** The service that failed, for example `openai`. */
        provider: z
          .string()
          .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/)
          .optional(),
      })
      .optional(),
    /** What this lease has used, in the end. */
    usage: usageReportSchema.optional(),
    next: leaseRequestSchema.optional(),
    /** The worker pauses after this reply, because it failed several times in a row. */
    worker: workerPauseSchema.optional(),
  })
  .refine((body) => body.text === undefined || body.message === undefined, {
    error: "give at most one of text and message",
    path: ["text"],
  })
  .refine((body) => body.state !== "completed" || body.error === undefined, {
    error: "a completed reply must have no error",
    path: ["error"],
  });
export type ReplyRequest = z.output<typeof replyRequestSchema>;
export type ReplyInput = z.input<typeof replyRequestSchema>;

export const replySchema = z.strictObject({
  outcome: z.enum(["matched", "duplicate"]),
  delegation: delegationSchema,
  leases: z.array(leaseSchema).optional(),
});
export type ReplyOutcome = z.infer<typeof replySchema>;

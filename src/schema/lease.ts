/** Requests of workers: leases, heartbeats, replies. Limit: a lease id is no credential; the token decides. */
import * as z from "zod";
import { artifactInputSchema, messageSchema, replyMessageInputSchema } from "./a2a.ts";
import { awaitedSchema } from "./await.ts";
import { budgetShownSchema } from "./budget.ts";
import { delegationSchema, progressSchema } from "./delegation.ts";
import { LIMITS } from "./limits.ts";
import { atMostOne } from "./rules.ts";
import { usageReportSchema } from "./usage.ts";
import {
  checkpointSchema,
  errorCodeSchema,
  instantSchema,
  leaseIdSchema,
  waitSecondsSchema,
} from "./values.ts";

const workerIdSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces");

/** A worker that pauses: which, for how long, and why. Shown with the agent until the time is over. */
export const workerPauseSchema = z.strictObject({
  /** The worker, as it names itself by `worker_id`. */
  id: workerIdSchema,
  /** How long it pauses, up to a day. */
  paused_seconds: z.number().min(0).max(86_400),
  /** Why, up to 200 characters; shown to everyone who sees the agent. */
  reason: z.string().min(1).max(200),
});
export type WorkerPause = z.output<typeof workerPauseSchema>;

/** How much work to lease, and how long to wait for it. */
export const leaseRequestSchema = z.strictObject({
  /** How long to wait for work, up to 60. */
  wait_seconds: waitSecondsSchema.default(20),
  /** How many leases at most, up to 32. */
  max: z.int().min(1).max(LIMITS.leases.value).default(1),
  /** How long the leases last without a heartbeat, 1 to 3600. Default: the agent's setting. */
  lease_seconds: z.number().min(1).max(3600).optional(),
  /**
   * If no call on a lease arrives within this time, 1 to 3600, the lease is returned and no attempt is spent.
   * Default: no such limit.
   */
  confirm_within_seconds: z.number().min(1).max(3600).optional(),
  /** Names the worker, up to 128 printable ASCII characters without spaces. Default: the agent's name. */
  worker_id: workerIdSchema.optional(),
});
export type LeaseRequest = z.output<typeof leaseRequestSchema>;

/** An A2A JSON-RPC SendMessage request, ready to be sent to any A2A server; its id is the lease id. */
export const leaseEnvelopeSchema = z.object({
  /** The version of JSON-RPC. */
  jsonrpc: z.literal("2.0"),
  /** The lease. */
  id: leaseIdSchema,
  /** The method of A2A. */
  method: z.literal("SendMessage"),
  /** The parameters of the method. */
  params: z.object({
    /** The task; its metadata has the ids of the delegation and the lease. */
    message: messageSchema,
  }),
});

/** The right to work on a delegation for a time, and the work. */
export const leaseSchema = z.strictObject({
  /** Identifies the lease in every call about it. */
  lease_id: leaseIdSchema,
  /** When the lease ends, unless a heartbeat extends it. */
  expires_at: instantSchema,
  /** The attempt, counted from 1. */
  attempt: z.int().min(1),
  /** The work. */
  delegation: delegationSchema,
  /** The work as a request of A2A. */
  request: leaseEnvelopeSchema,
  /** The W3C trace context of the delegator's request; absent: it had none. */
  traceparent: z.string().optional(),
  /** What the last worker saved; absent: nothing. */
  checkpoint: checkpointSchema.optional(),
  /**
   * The children that it waited for last. Absent: it never waited for any, or they could not be read: then the same wait is
   * answered again.
   */
  awaited: awaitedSchema.optional(),
});
export type Lease = z.infer<typeof leaseSchema>;
/** The leases that were granted. */
export const leasesSchema = z.strictObject({
  /** The leases; empty: no work came in time. */
  leases: z.array(leaseSchema),
});

/** The states in which there may be a lease. */
const holdingStateSchema = z.enum(["working", "input_required", "auth_required"]);
export type HoldingState = z.output<typeof holdingStateSchema>;

/** A sign of life, with what there is to report. */
export const heartbeatRequestSchema = z.strictObject({
  /** How far the work is; replaces the previous progress. */
  progress: progressSchema.optional(),
  /** The `messageId` of the newest follow-up received; it acknowledges all earlier ones, too. */
  seen: z.string().min(1).max(255).optional(),
  /** Replaces the previous checkpoint; null deletes it. */
  checkpoint: checkpointSchema.nullable().optional(),
  /** What this lease has used so far; replaces its previous report. No amount may shrink. */
  usage: usageReportSchema.optional(),
  /** How long to wait for a follow-up or a change of the lease, up to 60, at most half the time of the lease. */
  wait_seconds: waitSecondsSchema.default(0),
  /** The state that the holder knows: if the delegation has another one, there is no wait. */
  in_state: holdingStateSchema.optional(),
});
export type HeartbeatInput = z.input<typeof heartbeatRequestSchema>;
/** The lease as it is now. */
export const heartbeatSchema = z.strictObject({
  /** When the lease ends, unless another heartbeat extends it. */
  expires_at: instantSchema,
  /** The delegation's state: `input_required` or `auth_required` while the holder's question is open and held. */
  state: holdingStateSchema,
  /** The follow-ups that the holder has not acknowledged by `seen`, oldest first. */
  messages: z.array(messageSchema),
  /** The budget of the delegation, and what its tree has used; absent: neither it nor a delegation above it has one. */
  budget: budgetShownSchema.optional(),
  /** The lease is extended, but the progress was dropped: the delegation's events or the memory are at their limit. */
  progress_dropped: z.literal(true).optional(),
});

/** An artifact, or a chunk of one. */
export const artifactRequestSchema = z.strictObject({
  /** The artifact; of a chunk, its parts. */
  artifact: artifactInputSchema,
  /** Whether the parts are added to the artifact; otherwise it is replaced. */
  append: z.boolean().default(false),
  /** Whether the artifact is complete. */
  last_chunk: z.boolean().default(false),
  /**
   * Makes a retry safe: the broker compares it with that of the last chunk of this artifact on this lease. 1 to 128
   * printable ASCII characters without spaces.
   */
  chunk_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable ASCII characters without spaces")
    .optional(),
});
/** The artifact is stored. */
export const artifactAnswerSchema = z.strictObject({
  /** When the lease ends, unless a call extends it. */
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
  "awaiting",
  "over_budget",
] as const;
export type LeaseLostReason = (typeof LEASE_LOST_REASONS)[number];

/** When the work may be leased again, and why it is returned. */
export const releaseRequestSchema = z.strictObject({
  /** No worker gets it for so long, up to a day. */
  delay_seconds: z.number().min(0).max(86_400).default(0),
  /** For people, up to 1024 characters. */
  reason: z.string().max(1024).optional(),
  /**
   * The worker cannot work at all now. The return counts against the limit `returns`; beyond it the delegation fails with
   * `worker_unavailable`.
   */
  worker: workerPauseSchema.optional(),
});

/** The delegation that was returned. */
export const releasedSchema = z.strictObject({
  /** The delegation as it is now. */
  delegation: delegationSchema,
});

/** How the work ended. */
export const replyRequestSchema = z
  .strictObject({
    /** How it ended. `rejected`: the agent refuses the work. */
    state: z.enum(["completed", "failed", "rejected"]),
    /** The result in words; this or `message`. */
    text: z.string().optional(),
    /** The result as an A2A Message; this or `text`. */
    message: replyMessageInputSchema.optional(),
    /** Output beside the result, up to 1000; replaces artifacts with the same ids. */
    artifacts: z.array(artifactInputSchema).max(LIMITS.artifacts.value).optional(),
    /** Why it did not complete; not with `completed`. */
    error: z
      .strictObject({
        /** Names the failure, in snake_case, up to 64 characters. */
        code: errorCodeSchema,
        /** What happened, for people, up to 65,536 characters. */
        message: z.string().max(65_536),
        /** Whether another attempt may succeed; it is made while attempts are left. */
        retryable: z.boolean().default(false),
        /** The kind of failure. Default: `UPSTREAM`. */
        category: z.enum(["AUTH", "UPSTREAM", "TRANSPORT", "TIMEOUT"]).optional(),
        /** The service that failed, for example `openai`; up to 63 characters. */
        provider: z
          .string()
          .regex(
            /^[a-z0-9][a-z0-9_.-]{0,62}$/,
            "must be lower-case letters, digits, _, . and -, up to 63 characters",
          )
          .optional(),
      })
      .optional(),
    /** What this lease has used, in the end. */
    usage: usageReportSchema.optional(),
    /** Lease the next work in the same request. */
    next: leaseRequestSchema.optional(),
    /** The worker pauses after this reply, because it failed several times in a row. */
    worker: workerPauseSchema.optional(),
  })
  .check(atMostOne("text", "message"))
  .refine((body) => body.state !== "completed" || body.error === undefined, {
    error: "a completed reply must have no error",
    path: ["error"],
  });
export type ReplyRequest = z.output<typeof replyRequestSchema>;
export type ReplyInput = z.input<typeof replyRequestSchema>;

/** The delegation after the reply. */
export const replySchema = z.strictObject({
  /** `matched`: the reply was accepted; `duplicate`: it was accepted before. */
  outcome: z.enum(["matched", "duplicate"]),
  /** The delegation as it is now. */
  delegation: delegationSchema,
  /** The next leases, if the request has `next`. */
  leases: z.array(leaseSchema).optional(),
});
export type ReplyOutcome = z.infer<typeof replySchema>;

/**
 * A delegation as callers send and read it. Limit: shapes only; the moves between the
 * states are in lifecycle/states.ts.
 */
import * as z from "zod";
import { artifactSchema, messageInputSchema, messageSchema } from "./a2a.ts";
import { presenceSchema } from "./agent.ts";
import { callbackSchema } from "./callback.ts";
import { categorySchema } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import {
  agentNameSchema,
  checkpointSchema,
  contextIdSchema,
  delegationIdSchema,
  givenInstantSchema,
  instantSchema,
  principalSchema,
} from "./values.ts";

export const LIVE_STATES = ["submitted", "working", "input_required", "auth_required"] as const;
export const TERMINAL_STATES = ["completed", "failed", "canceled", "rejected"] as const;
export const stateSchema = z.enum([...LIVE_STATES, ...TERMINAL_STATES]);
/** A2A's task states: four live, then four terminal. */
export type State = z.infer<typeof stateSchema>;

/** Whether a delegation in this state is finished for good. */
export function isTerminal(state: State): boolean {
  return TERMINAL_STATES.some((terminal) => terminal === state);
}

export const progressSchema = z.strictObject({
  /** Up to 4096 characters. */
  message: z.string().max(4096).optional(),
  /** Up to 256 characters. */
  current_step: z.string().max(256).optional(),
  /** Up to 64 names. */
  tools_used: z.array(z.string().max(256)).max(64).optional(),
  /** How many of `total`, in whatever unit the agent counts. */
  done: z.number().min(0).optional(),
  total: z.number().min(0).optional(),
  /** Seconds to the end, by the agent's estimate. */
  eta_seconds: z.number().min(0).optional(),
});
/** How far an agent is. */
export type Progress = z.infer<typeof progressSchema>;

export const interruptSchema = z.object({
  id: z.string(),
  kind: z.enum(["input", "auth"]),
  requests: z.array(
    z.object({
      request_id: z.string(),
      message: messageSchema,
      options: z.array(z.unknown()).optional(),
      schema: z.unknown().optional(),
    }),
  ),
  raised_at: instantSchema,
  expires_at: instantSchema,
});
/** What a delegation asks before it can go on: one or several requests, answered all at once. */
export type Interrupt = z.infer<typeof interruptSchema>;

export const delegationErrorSchema = z.object({
  category: categorySchema,
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  recovery: z.string(),
  /** Whose service failed its agent, where that said so. */
  provider: z.string().optional(),
});
/** Why a delegation ended other than completed; `code` may be the agent's own. */
export type DelegationError = z.infer<typeof delegationErrorSchema>;

export const delegationSchema = z.strictObject({
  id: delegationIdSchema,
  state: stateSchema,
  /** Grows by one with every event and equals its `seq`. */
  version: z.int().min(1),
  /** The agent's name. */
  target: agentNameSchema,
  /** Who delegated it, a principal such as `caller:alice`. */
  delegator: principalSchema,
  /** The conversation that it belongs to; grants nothing. */
  context_id: z.string(),
  /** The delegation that this one is a part of. */
  parent_id: delegationIdSchema.nullable(),
  /** The failed delegation that this one repeats. */
  redrive_of: delegationIdSchema.nullable(),
  /** 0 to 9, higher first. */
  priority: z.int().min(0).max(9),
  /** The delegator's own. */
  metadata: z.record(z.string(), z.unknown()),
  /** The first 100 bytes of the text. */
  task_preview: z.string(),
  /** The task as it was sent. */
  message: messageSchema,
  /** The latest. */
  progress: progressSchema.nullable(),
  /** Open in the states `input_required` and `auth_required`. */
  interrupt: interruptSchema.nullable(),
  artifacts: z.array(artifactSchema),
  reply: messageSchema.nullable(),
  error: delegationErrorSchema.nullable(),
  /** From 1. */
  attempt: z.int().min(1),
  max_attempts: z.int().min(1),
  /** Who works at it, from when, and until when unless a heartbeat comes. */
  lease: z
    .strictObject({ worker_id: z.string(), granted_at: instantSchema, expires_at: instantSchema })
    .nullable(),
  /** Follow-ups, questions and answers, oldest first. */
  history: z.array(messageSchema),
  /** This and the others ending in `_at` are ISO 8601 in UTC, with milliseconds. */
  created_at: instantSchema,
  updated_at: instantSchema,
  /** Not handed out before. */
  not_before_at: instantSchema.nullable(),
  /** Failed (`deadline_exceeded`) if not finished by then. */
  deadline_at: instantSchema,
  finished_at: instantSchema.nullable(),
  /** What its agent kept with it; shown to the agent and the operator, by `GET /v1/delegations/{id}` alone. */
  checkpoint: checkpointSchema.optional(),
});
/** One piece of delegated work, from `submitted` to its end. */
export type Delegation = z.infer<typeof delegationSchema>;

/** A new delegation is answered with the target's presence, so that a caller sees that nobody is polling. */
export const acceptedDelegationSchema = delegationSchema.extend({ presence: presenceSchema });
export type AcceptedDelegation = z.infer<typeof acceptedDelegationSchema>;

export const delegateRequestSchema = z
  .strictObject({
    /** The agent's name. */
    target: agentNameSchema,
    /** The work as text; this or `message`. */
    task: z.string().min(1).optional(),
    /** The work as an A2A Message, whose parts arrive at the agent untouched. */
    message: messageInputSchema.optional(),
    /** The conversation that it belongs to, 1 to 128 of `A-Z a-z 0-9 . _ : -`. Default: a new one. */
    context_id: contextIdSchema.optional(),
    /** 0 to 9, higher first, first in first out within one. Default 5. */
    priority: z.int().min(0).max(9).default(5),
    /** Not handed out before so many seconds; this or `not_before`. */
    delay_seconds: z.number().min(0).max(31_536_000).optional(),
    /** An ISO 8601 instant before the year 9000. */
    not_before: givenInstantSchema.optional(),
    /** Failed if not finished so many seconds after it may be handed out; this or `deadline`. Default 7 days. */
    ttl_seconds: z.number().positive().max(31_536_000).optional(),
    /** An ISO 8601 instant before the year 9000. */
    deadline: givenInstantSchema.optional(),
    /** Failed (`not_picked_up`) if nobody took it within so many seconds. */
    start_within_seconds: z.number().positive().max(31_536_000).optional(),
    /** 1 to 100. Default: the agent's. */
    max_attempts: z.int().min(1).max(100).optional(),
    /** The delegation that this one is a part of: one that you may see, and live. */
    parent_id: delegationIdSchema.optional(),
    /** Where its questions and its end are told, signed by Standard Webhooks; never shown again. */
    callback: callbackSchema.optional(),
    /** Your own, up to 16 KiB as JSON. */
    metadata: z
      .record(z.string(), z.unknown())
      .refine(
        (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.metadata_bytes.value,
        "metadata has at most 16 KiB",
      )
      .default({}),
  })
  .refine((body) => (body.task === undefined) !== (body.message === undefined), {
    error: "give exactly one of task and message",
    path: ["task"],
  })
  .refine((body) => body.delay_seconds === undefined || body.not_before === undefined, {
    error: "give at most one of delay_seconds and not_before",
    path: ["delay_seconds"],
  })
  .refine((body) => body.ttl_seconds === undefined || body.deadline === undefined, {
    error: "give at most one of ttl_seconds and deadline",
    path: ["ttl_seconds"],
  });
export type DelegateRequest = z.output<typeof delegateRequestSchema>;
/** What is to be done, by whom, and until when: `target`, and either `task` or `message`. */
export type DelegateInput = z.input<typeof delegateRequestSchema>;

/** Which delegations a list shows; one of the first four is the index, the others filter what it finds. */
export const delegationFilterSchema = z.strictObject({
  target: agentNameSchema.optional(),
  delegator: principalSchema.optional(),
  context_id: contextIdSchema.optional(),
  parent_id: delegationIdSchema.optional(),
  /** One or several, separated by commas. */
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(stateSchema))
    .optional(),
  error_code: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/)
    .optional(),
  /** Created at or after this instant. */
  since: givenInstantSchema.optional(),
  /** Created before this instant. */
  until: givenInstantSchema.optional(),
  /** Text in the preview of the task; case is ignored. */
  q: z.string().min(1).max(100).optional(),
});
/** Which delegations to list; what is given must all hold. */
export interface DelegationFilter extends Omit<z.input<typeof delegationFilterSchema>, "state"> {
  /** One or several of them. */
  readonly state?: State | readonly State[] | undefined;
}

export const delegationPageSchema = z.strictObject({
  delegations: z.array(delegationSchema),
  next_cursor: z.string().nullable(),
  /** Everything created at or after this instant was looked at; null: everything was. */
  scanned_to: instantSchema.nullable(),
});

/** A caller's inbox, behind a cursor and up to one. */
export const resultPageSchema = z.strictObject({ results: z.array(delegationSchema), cursor: z.string() });

export const cancelRequestSchema = z.strictObject({
  reason: z.string().max(1024).optional(),
  cascade: z.boolean().default(true),
});

/** One of a batch; the key may stand with it. Checked by itself, so that one that is wrong spoils no other. */
export const batchRequestSchema = z.strictObject({
  delegations: z.array(z.record(z.string(), z.unknown())).min(1).max(LIMITS.batch.value),
});

/**
 * A delegation as callers send and read it (contract §4). Limit: shapes only; the moves between the
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
  contextIdSchema,
  delegationIdSchema,
  instantSchema,
  principalSchema,
} from "./values.ts";

export const LIVE_STATES = ["submitted", "working", "input_required", "auth_required"] as const;
export const TERMINAL_STATES = ["completed", "failed", "canceled", "rejected"] as const;
export const stateSchema = z.enum([...LIVE_STATES, ...TERMINAL_STATES]);
export type State = z.infer<typeof stateSchema>;

export function isTerminal(state: State): boolean {
  return TERMINAL_STATES.some((terminal) => terminal === state);
}

export const progressSchema = z.strictObject({
  message: z.string().max(4096).optional(),
  current_step: z.string().max(256).optional(),
  tools_used: z.array(z.string().max(256)).max(64).optional(),
  done: z.number().min(0).optional(),
  total: z.number().min(0).optional(),
  eta_seconds: z.number().min(0).optional(),
});
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

export const delegationErrorSchema = z.object({
  category: categorySchema,
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  recovery: z.string(),
});
export type DelegationError = z.infer<typeof delegationErrorSchema>;

export const delegationSchema = z.strictObject({
  id: delegationIdSchema,
  state: stateSchema,
  version: z.int().min(1),
  target: agentNameSchema,
  delegator: principalSchema,
  context_id: z.string(),
  parent_id: delegationIdSchema.nullable(),
  redrive_of: delegationIdSchema.nullable(),
  priority: z.int().min(0).max(9),
  metadata: z.record(z.string(), z.unknown()),
  task_preview: z.string(),
  message: messageSchema,
  progress: progressSchema.nullable(),
  interrupt: interruptSchema.nullable(),
  artifacts: z.array(artifactSchema),
  reply: messageSchema.nullable(),
  error: delegationErrorSchema.nullable(),
  attempt: z.int().min(1),
  max_attempts: z.int().min(1),
  lease: z
    .strictObject({ worker_id: z.string(), granted_at: instantSchema, expires_at: instantSchema })
    .nullable(),
  history: z.array(messageSchema),
  created_at: instantSchema,
  updated_at: instantSchema,
  not_before_at: instantSchema.nullable(),
  deadline_at: instantSchema,
  finished_at: instantSchema.nullable(),
});
export type Delegation = z.infer<typeof delegationSchema>;

/** A new delegation is answered with the target's presence, so that a caller sees that nobody is polling. */
export const acceptedDelegationSchema = delegationSchema.extend({ presence: presenceSchema });
export type AcceptedDelegation = z.infer<typeof acceptedDelegationSchema>;

export const delegateRequestSchema = z
  .strictObject({
    target: agentNameSchema,
    task: z.string().min(1).optional(),
    message: messageInputSchema.optional(),
    context_id: contextIdSchema.optional(),
    priority: z.int().min(0).max(9).default(5),
    delay_seconds: z.number().min(0).max(31_536_000).optional(),
    not_before: instantSchema.optional(),
    ttl_seconds: z.number().positive().max(31_536_000).optional(),
    deadline: instantSchema.optional(),
    start_within_seconds: z.number().positive().max(31_536_000).optional(),
    max_attempts: z.int().min(1).max(100).optional(),
    parent_id: delegationIdSchema.optional(),
    callback: callbackSchema.optional(),
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
export type DelegateInput = z.input<typeof delegateRequestSchema>;

/** Which delegations a list shows; one of the first four is the index, the others filter what it finds. */
export const delegationFilterSchema = z.strictObject({
  target: agentNameSchema.optional(),
  delegator: principalSchema.optional(),
  context_id: contextIdSchema.optional(),
  parent_id: delegationIdSchema.optional(),
  state: stateSchema.optional(),
  error_code: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/)
    .optional(),
});
export type DelegationFilter = z.input<typeof delegationFilterSchema>;

export const delegationPageSchema = z.strictObject({
  delegations: z.array(delegationSchema),
  next_cursor: z.string().nullable(),
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

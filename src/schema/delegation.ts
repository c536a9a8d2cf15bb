/** A delegation as callers send and read it. The moves between its states are in lifecycle/states.ts. */
import * as z from "zod";
import { artifactSchema, messageInputSchema, messageSchema } from "./a2a.ts";
import { presenceSchema } from "./agent.ts";
import { autoApproveSchema } from "./auto-approve.ts";
import { callbackSchema } from "./callback.ts";
import { categorySchema } from "./errors.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { jsonSchemaSchema } from "./json-schema/json-schema.ts";
import { LIMITS } from "./limits.ts";
import { usageSchema } from "./usage.ts";
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

/** Whether the state is final. */
export function isTerminal(state: State): boolean {
  return TERMINAL_STATES.some((terminal) => terminal === state);
}

/** It is neither finished nor asks a question. */
export const isPending = (state: State): boolean => state === "submitted" || state === "working";

export const progressSchema = z.strictObject({
  /** Up to 4096 characters. */
  message: z.string().max(4096).optional(),
  /** Up to 256 characters. */
  current_step: z.string().max(256).optional(),
  /** Up to 64 names. */
  tools_used: z.array(z.string().max(256)).max(64).optional(),
  /** How many of `total` are done, in the agent's unit. */
  done: z.number().min(0).optional(),
  total: z.number().min(0).optional(),
  /** The agent's estimate of the seconds left. */
  eta_seconds: z.number().min(0).optional(),
});
/** The progress that an agent reports. */
export type Progress = z.infer<typeof progressSchema>;

export const actionSchema = z.strictObject({
  name: z.string().min(1).max(256),
  arguments: jsonObjectSchema.default({}),
});
/** The action that an agent takes if the answer to its question is `approve`. */
export type Action = z.infer<typeof actionSchema>;

export const interruptSchema = z.object({
  id: z.string(),
  kind: z.enum(["input", "auth"]),
  requests: z.array(
    z.object({
      request_id: z.string(),
      message: messageSchema,
      options: z.array(z.unknown()).optional(),
      schema: z.unknown().optional(),
      /** The action that the agent takes if the answer is `approve`. */
      action: actionSchema.optional(),
      /** The answer's `data` may replace the action's arguments. */
      edit: z.boolean().optional(),
    }),
  ),
  raised_at: instantSchema,
  expires_at: instantSchema,
});
/** The questions that a delegation needs answered to continue; all are answered at once. */
export type Interrupt = z.infer<typeof interruptSchema>;

export const delegationErrorSchema = z.object({
  category: categorySchema,
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  recovery: z.string(),
  /** The service that failed, if the agent named it. */
  provider: z.string().optional(),
});
/** The error of a delegation that did not complete; the agent may have chosen `code`. */
export type DelegationError = z.infer<typeof delegationErrorSchema>;

export const delegationSchema = z.strictObject({
  id: delegationIdSchema,
  state: stateSchema,
  /** Incremented by every event; equals the `seq` of the latest. */
  version: z.int().min(1),
  /** The agent's name. */
  target: agentNameSchema,
  /** The principal that delegated it, such as `caller:alice`. */
  delegator: principalSchema,
  /** The conversation that it belongs to; it grants no access. */
  context_id: z.string(),
  /** The delegation that this one is a part of. */
  parent_id: delegationIdSchema.nullable(),
  /** The failed delegation that this one repeats. */
  redrive_of: delegationIdSchema.nullable(),
  /** The delegation that repeats this failed one. It does not exist if the redrive was refused, or once it is deleted. */
  redriven_as: delegationIdSchema.nullable().default(null),
  /** 0 to 9, higher first. */
  priority: z.int().min(0).max(9),
  /** Set by the delegator; the broker does not read it. */
  metadata: jsonObjectSchema,
  /** The questions that the broker approves in the delegator's name; absent: none. */
  auto_approve: autoApproveSchema.optional(),
  /** The JSON Schema that the result must fit; absent: the reply may be anything. */
  result_schema: z.unknown().optional(),
  /** The first 100 bytes of the text. */
  task_preview: z.string(),
  /** The task as it was sent. */
  message: messageSchema,
  /** The latest progress. */
  progress: progressSchema.nullable(),
  /** The open question, in the states `input_required` and `auth_required`. */
  interrupt: interruptSchema.nullable(),
  artifacts: z.array(artifactSchema),
  reply: messageSchema.nullable(),
  error: delegationErrorSchema.nullable(),
  /** Counted from 1. */
  attempt: z.int().min(1),
  max_attempts: z.int().min(1),
  /** The worker and its lease, which ends at `expires_at` unless a heartbeat extends it. */
  lease: z
    .strictObject({ worker_id: z.string(), granted_at: instantSchema, expires_at: instantSchema })
    .nullable(),
  /** What its attempts have used; absent: nothing was reported. */
  usage: usageSchema.optional(),
  /** Follow-ups, questions and answers, oldest first. */
  history: z.array(messageSchema),
  /** Fields ending in `_at` are ISO 8601 in UTC, with milliseconds. */
  created_at: instantSchema,
  updated_at: instantSchema,
  /** No worker gets it before this instant. */
  not_before_at: instantSchema.nullable(),
  /** Fails with `deadline_exceeded` if not finished by then. */
  deadline_at: instantSchema,
  finished_at: instantSchema.nullable(),
  /** Saved by its agent; visible to the agent and the operator, only in `GET /v1/delegations/{id}`. */
  checkpoint: checkpointSchema.optional(),
});
/** One piece of delegated work, from `submitted` to its end. */
export type Delegation = z.infer<typeof delegationSchema>;

/** A new delegation, with the presence of its target: the caller sees whether workers poll. */
export const acceptedDelegationSchema = delegationSchema.extend({ presence: presenceSchema });
export type AcceptedDelegation = z.infer<typeof acceptedDelegationSchema>;

export const delegateRequestSchema = z
  .strictObject({
    /** The agent's name. */
    target: agentNameSchema,
    /** The work as text; this or `message`. */
    task: z.string().min(1).optional(),
    /** The work as an A2A Message; its parts reach the agent unchanged. */
    message: messageInputSchema.optional(),
    /** The conversation that it belongs to, 1 to 512 characters without controls. Default: a new one. */
    context_id: contextIdSchema.optional(),
    /** 0 to 9, higher first; first in, first out within a priority. Default 5. */
    priority: z.int().min(0).max(9).default(5),
    /** No worker gets it for this many seconds; this or `not_before`. */
    delay_seconds: z.number().min(0).max(31_536_000).optional(),
    /** An ISO 8601 instant before the year 9000. */
    not_before: givenInstantSchema.optional(),
    /** Fails if not finished this many seconds after it may be leased; this or `deadline`. Default 7 days. */
    ttl_seconds: z.number().positive().max(31_536_000).optional(),
    /** An ISO 8601 instant before the year 9000. */
    deadline: givenInstantSchema.optional(),
    /** Fails with `not_picked_up` if no worker leases it within this many seconds. */
    start_within_seconds: z.number().positive().max(31_536_000).optional(),
    /** 1 to 100. Default: the agent's setting. */
    max_attempts: z.int().min(1).max(100).optional(),
    /** The delegation that this one is a part of: live, and visible to you. */
    parent_id: delegationIdSchema.optional(),
    /** Receives the delegation's questions and its end, signed as Standard Webhooks; never shown again. */
    callback: callbackSchema.optional(),
    /** Up to 16 KiB as JSON; the broker does not read it. */
    metadata: jsonObjectSchema
      .refine(
        (value) => new TextEncoder().encode(JSON.stringify(value)).length <= LIMITS.metadata_bytes.value,
        "metadata exceeds 16 KiB",
      )
      .default({}),
    /**
     * The broker approves these questions at once, in your name. `true`: every proposed action, and every question whose
     * options are approve and deny. `{"actions": ["deploy", "fs.*"]}`: proposed actions with these names; `*` at the end
     * matches any rest. Up to 4 KiB.
     */
    auto_approve: autoApproveSchema.optional(),
    /**
     * A JSON Schema that the result must fit, up to 64 KiB: the reply must have exactly one data part, and its data must
     * fit. The keywords are those of a question's schema.
     */
    result_schema: jsonSchemaSchema.optional(),
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
/** Work for an agent: `target`, and either `task` or `message`. */
export type DelegateInput = z.input<typeof delegateRequestSchema>;

/** The filters of a list. One of the first four fields selects the index; the others filter its entries. */
export const delegationFilterSchema = z.strictObject({
  target: agentNameSchema.optional(),
  delegator: principalSchema.optional(),
  context_id: contextIdSchema.optional(),
  parent_id: delegationIdSchema.optional(),
  /** One or more, separated by commas. */
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
  /** Ended at or after this instant. */
  ended_since: givenInstantSchema.optional(),
  /** Text that the task preview contains, ignoring case. */
  q: z.string().min(1).max(100).optional(),
});
/** The filters of a list; all given ones apply. */
export interface DelegationFilter extends Omit<z.input<typeof delegationFilterSchema>, "state"> {
  /** One state, or several. */
  readonly state?: State | readonly State[] | undefined;
}

export const delegationPageSchema = z.strictObject({
  delegations: z.array(delegationSchema),
  next_cursor: z.string().nullable(),
  /** The list has considered everything created at or after this instant; null: everything. */
  scanned_to: instantSchema.nullable(),
});

/** Results after a cursor, with the cursor to continue from. */
export const resultPageSchema = z.strictObject({ results: z.array(delegationSchema), cursor: z.string() });

export const cancelRequestSchema = z.strictObject({
  reason: z.string().max(1024).optional(),
  cascade: z.boolean().default(true),
});

/** A batch. Each item is validated on its own, so that an invalid one does not affect the others. */
export const batchRequestSchema = z.strictObject({
  delegations: z.array(jsonObjectSchema).min(1).max(LIMITS.batch.value),
});

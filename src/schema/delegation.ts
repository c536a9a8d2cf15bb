/** A delegation as callers send and read it. The moves between its states are in lifecycle/states.ts. */
import * as z from "zod";
import { artifactSchema, messageInputSchema, messageSchema } from "./a2a.ts";
import { autoApproveSchema } from "./auto-approve.ts";
import { budgetSchema, budgetShownSchema, isLimiting, onBudgetSchema } from "./budget.ts";
import { callbackSchema } from "./callback.ts";
import { categorySchema } from "./errors.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { jsonSchemaSchema } from "./json-schema/json-schema.ts";
import { LIMITS } from "./limits.ts";
import { toldSchema } from "./notice.ts";
import { presenceSchema } from "./presence.ts";
import { atMostOne, exactlyOne } from "./rules.ts";
import { usageSchema } from "./usage.ts";
import {
  agentNameSchema,
  checkpointSchema,
  contextIdSchema,
  delegationIdSchema,
  errorCodeSchema,
  givenInstantSchema,
  instantSchema,
  principalSchema,
} from "./values.ts";
import { questionVotesSchema } from "./votes.ts";

/** Of work whose delegator names no priority. */
export const DEFAULT_PRIORITY = 5;

export const LIVE_STATES = [
  "submitted",
  "working",
  "input_required",
  "auth_required",
  "awaiting_children",
] as const;
export const TERMINAL_STATES = ["completed", "failed", "canceled", "rejected"] as const;
export const stateSchema = z.enum([...LIVE_STATES, ...TERMINAL_STATES]);
/** A2A's task states, and `awaiting_children`, which A2A has no word for: to A2A it is working. */
export type State = z.infer<typeof stateSchema>;

/** Whether the state is final. */
export function isTerminal(state: State): boolean {
  return TERMINAL_STATES.some((terminal) => terminal === state);
}

/** It is neither finished nor asks a question. */
export const isPending = (state: string): boolean =>
  state === "submitted" || state === "working" || state === "awaiting_children";

export const progressSchema = z.strictObject({
  /** What the agent does now, up to 4096 characters. */
  message: z.string().max(4096).optional(),
  /** The name of the current step, up to 256 characters. */
  current_step: z.string().max(256).optional(),
  /** The names of the tools that it used, up to 64. */
  tools_used: z.array(z.string().max(256)).max(64).optional(),
  /** How many of `total` are done, in the agent's unit. */
  done: z.number().min(0).optional(),
  /** How many there are to do, in the agent's unit. */
  total: z.number().min(0).optional(),
  /** The agent's estimate of the seconds left. */
  eta_seconds: z.number().min(0).optional(),
});
/** The progress that an agent reports. */
export type Progress = z.infer<typeof progressSchema>;

export const actionSchema = z.strictObject({
  /** The action's name, up to 256 characters. */
  name: z.string().min(1).max(256),
  /** The action's arguments. */
  arguments: jsonObjectSchema.default({}),
});
/** The action that an agent takes if the answer to its question is `approve`. */
export type Action = z.infer<typeof actionSchema>;

export const interruptSchema = z.object({
  /** Identifies the question; an answer names it. */
  id: z.string(),
  /** `input`: the agent asks for input; `auth`: it asks for a credential. */
  kind: z.enum(["input", "auth"]),
  /** What is asked, 1 to 32 requests. */
  requests: z.array(
    z.object({
      /** Identifies the request within the question. */
      request_id: z.string(),
      /** The question in words. */
      message: messageSchema,
      /** The choices: an answer is one of them. Absent: no choices. */
      options: z.array(z.unknown()).optional(),
      /** The JSON Schema that the answer's `data` must fit; absent: none. */
      schema: z.unknown().optional(),
      /** The action that the agent takes if the answer is `approve`. */
      action: actionSchema.optional(),
      /** The answer's `data` may replace the action's arguments. */
      edit: z.boolean().optional(),
    }),
  ),
  /** When it was asked. */
  raised_at: instantSchema,
  /** Unless it is answered before, the delegation fails with `interrupt_expired`. */
  expires_at: instantSchema,
  /** The approvals so far, if the agent's `votes` decide who approves; absent: the first answer counts. */
  votes: questionVotesSchema.optional(),
});
/** The questions that a delegation needs answered to continue; all are answered at once. */
export type Interrupt = z.infer<typeof interruptSchema>;

export const delegationErrorSchema = z.object({
  /** The kind of failure. */
  category: categorySchema,
  /** What failed, in snake_case: a code of the broker, or one that the agent chose. */
  code: z.string(),
  /** What happened, for people. */
  message: z.string(),
  /** Whether the same work may succeed if it is delegated again. */
  retryable: z.boolean(),
  /** What to do next. */
  recovery: z.string(),
  /** The service that failed, if the agent named it. */
  provider: z.string().optional(),
  /**
   * If nobody answered its question in time: who had been notified of it, and how, newest first, at most 20. Absent: it had no
   * open question, or that is not known.
   */
  told: z.array(toldSchema).optional(),
});
/** The error of a delegation that did not complete; the agent may have chosen `code`. */
export type DelegationError = z.infer<typeof delegationErrorSchema>;

export const awaitsSchema = z.object({
  /** The children whose ends it waits for. */
  children: z.array(delegationIdSchema),
  /** How many of them must still end before an agent gets the delegation again. */
  left: z.int().min(1),
  /** It no longer waits at this instant; at the latest, its deadline. */
  expires_at: instantSchema,
});
/** What a delegation in the state `awaiting_children` waits for. */
export type Awaits = z.infer<typeof awaitsSchema>;

/** What becomes of the children of a delegation that does not complete. */
const childrenOnFailureSchema = z.enum(["cancel", "keep"]);

export const delegationSchema = z.strictObject({
  /** Identifies the delegation. */
  id: delegationIdSchema,
  /** Where it is in its life. */
  state: stateSchema,
  /** Incremented by every event; equals the `seq` of the latest. */
  version: z.int().min(1),
  /** The agent's name. */
  target: agentNameSchema,
  /** The principal that delegated it, such as `caller:alice`. */
  delegator: principalSchema,
  /** The conversation that it belongs to; it grants no access. */
  context_id: z.string(),
  /** The delegation that this one is a part of; null: it stands alone. */
  parent_id: delegationIdSchema.nullable(),
  /** `keep`: its children go on if it ends in another state than `completed`; absent: they are canceled. */
  children_on_failure: childrenOnFailureSchema.optional(),
  /** The failed delegation that this one repeats; null: it repeats none. */
  redrive_of: delegationIdSchema.nullable(),
  /**
   * The delegation that repeats this failed one; null: none does. It does not exist if the redrive was refused, or
   * once it is deleted.
   */
  redriven_as: delegationIdSchema.nullable().default(null),
  /** 0 to 9, higher first. */
  priority: z.int().min(0).max(9),
  /** The priority with which it is queued, because it has waited for the agent's `priority_ageing_seconds`; absent: its own. */
  effective_priority: z.int().min(0).max(9).optional(),
  /** Set by the delegator; the broker does not read it. */
  metadata: jsonObjectSchema,
  /** The questions that the broker approves in the delegator's name; absent: none. */
  auto_approve: autoApproveSchema.optional(),
  /** The JSON Schema that the result must fit; absent: the reply may be anything. */
  result_schema: z.unknown().optional(),
  /** The first 100 bytes of the task's text. */
  task_preview: z.string(),
  /** The task as it was sent. */
  message: messageSchema,
  /** The latest progress; null: nothing was reported. */
  progress: progressSchema.nullable(),
  /** The open question, in the states `input_required` and `auth_required`; null in others. */
  interrupt: interruptSchema.nullable(),
  /** The children that it waits for, in the state `awaiting_children`; absent in others. */
  awaits: awaitsSchema.optional(),
  /**
   * The delegation before it in its conversation, for whose end it waits because its agent has `serial_by`; absent: it
   * waits for none.
   */
  behind: delegationIdSchema.optional(),
  /** What the agent sent before its reply, whole. */
  artifacts: z.array(artifactSchema),
  /** The agent's last message; null: there is none yet, or none came. */
  reply: messageSchema.nullable(),
  /** Why it did not complete; null: it did, or has not ended. */
  error: delegationErrorSchema.nullable(),
  /** The current attempt, counted from 1. */
  attempt: z.int().min(1),
  /** How many attempts it has. */
  max_attempts: z.int().min(1),
  /** The worker that has it; null: none has. */
  lease: z
    .strictObject({
      /** The worker, as it names itself; the agent's name if it does not. */
      worker_id: z.string(),
      /** When the worker got it. */
      granted_at: instantSchema,
      /** When the lease ends, unless a heartbeat extends it. */
      expires_at: instantSchema,
    })
    .nullable(),
  /** What its attempts have used; absent: nothing was reported. */
  usage: usageSchema.optional(),
  /** How much its tree may use, and has used; absent: neither it nor a delegation above it has a budget. */
  budget: budgetShownSchema.optional(),
  /** Follow-ups, questions and answers, oldest first. */
  history: z.array(messageSchema),
  /** When it was delegated. All instants are ISO 8601 in UTC, with milliseconds. */
  created_at: instantSchema,
  /** When it last changed. */
  updated_at: instantSchema,
  /** No worker gets it before this instant; null: as soon as possible. */
  not_before_at: instantSchema.nullable(),
  /** It fails with `deadline_exceeded` if it has not ended by then. */
  deadline_at: instantSchema,
  /** When it ended; null: it has not. */
  finished_at: instantSchema.nullable(),
  /** Saved by its agent; visible to the agent and the operator, only in `GET /v1/delegations/{id}`. */
  checkpoint: checkpointSchema.optional(),
});
/** One piece of delegated work, from `submitted` to its end. */
export type Delegation = z.infer<typeof delegationSchema>;

/** A new delegation, with the presence of its target: the caller sees whether workers poll. */
export const acceptedDelegationSchema = delegationSchema.extend({
  /** Whether workers of the agent polled lately. It decides nothing: without a worker the work waits. */
  presence: presenceSchema,
});
export type AcceptedDelegation = z.infer<typeof acceptedDelegationSchema>;

export const delegateRequestSchema = z
  .strictObject({
    /** The agent's name. */
    target: agentNameSchema,
    /** The work as text, at least 1 character; this or `message`. */
    task: z.string().min(1).optional(),
    /** The work as an A2A Message; its parts reach the agent unchanged. This or `task`. */
    message: messageInputSchema.optional(),
    /** The conversation that it belongs to, 1 to 512 characters without controls. Default: a new one. */
    context_id: contextIdSchema.optional(),
    /**
     * 0 to 9, higher first; within a priority, delegators take turns. A token may have a highest priority, which is the
     * default if it is below 5. Default 5.
     */
    priority: z.int().min(0).max(9).optional(),
    /** No worker gets it for this many seconds, up to a year; this or `not_before`. */
    delay_seconds: z.number().min(0).max(31_536_000).optional(),
    /** No worker gets it before this ISO 8601 instant, which is before the year 9000; this or `delay_seconds`. */
    not_before: givenInstantSchema.optional(),
    /**
     * It fails with `deadline_exceeded` if it has not ended this many seconds after it may be leased, up to a year;
     * this or `deadline`. Default: 7 days.
     */
    ttl_seconds: z.number().positive().max(31_536_000).optional(),
    /**
     * It fails with `deadline_exceeded` if it has not ended by this ISO 8601 instant, which is before the year 9000;
     * this or `ttl_seconds`.
     */
    deadline: givenInstantSchema.optional(),
    /**
     * It fails with `not_picked_up` if no worker leases it within this many seconds, up to a year. Default: no such
     * limit.
     */
    start_within_seconds: z.number().positive().max(31_536_000).optional(),
    /** How many attempts it has, 1 to 100. Default: the agent's setting. */
    max_attempts: z.int().min(1).max(100).optional(),
    /**
     * The delegation that this one is a part of: live, and visible to you. Its deadline also ends this one. Default: none.
     */
    parent_id: delegationIdSchema.optional(),
    /**
     * What becomes of its children if it ends in another state than `completed`: `cancel` cancels them, `keep` lets them
     * go on. Default `cancel`.
     */
    children_on_failure: childrenOnFailureSchema.default("cancel"),
    /**
     * How much it and everything under it may use: at least one of `tokens`, `cost` with `currency`, `seconds` and
     * `attempts`. It counts for the budgets above it, too. Default: no budget of its own.
     */
    budget: budgetSchema.optional(),
    /**
     * What happens 30 seconds after it used more than its `budget`: `fail` fails it with `budget_exceeded` and cancels
     * everything under it, `ask` asks you for a larger budget. Default `fail`.
     */
    on_budget: onBudgetSchema.optional(),
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
  .check(
    exactlyOne("task", "message"),
    atMostOne("delay_seconds", "not_before"),
    atMostOne("ttl_seconds", "deadline"),
  )
  .refine(({ budget }) => budget === undefined || isLimiting(budget), {
    error: "name at least one of tokens, cost, seconds and attempts",
    path: ["budget"],
  })
  .refine(({ budget }) => (budget?.cost === undefined) === (budget?.currency === undefined), {
    error: "a cost needs its currency, and a currency its cost",
    path: ["budget", "currency"],
  })
  .refine(({ budget, on_budget }) => on_budget === undefined || budget !== undefined, {
    error: "needs a budget",
    path: ["on_budget"],
  });
export type DelegateRequest = z.output<typeof delegateRequestSchema>;
/** Work for an agent: `target`, and either `task` or `message`. */
export type DelegateInput = z.input<typeof delegateRequestSchema>;

/** The filters of a list. One of the first four fields selects the index; the others filter its entries. */
export const delegationFilterSchema = z.strictObject({
  /** Only work for this agent. */
  target: agentNameSchema.optional(),
  /** Only what this principal delegated. */
  delegator: principalSchema.optional(),
  /** Only this conversation. */
  context_id: contextIdSchema.optional(),
  /** Only the parts of this delegation. */
  parent_id: delegationIdSchema.optional(),
  /** Only these states: one or more, separated by commas. */
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(stateSchema))
    .optional(),
  /** Only delegations whose error has this code, in snake_case. */
  error_code: errorCodeSchema.optional(),
  /** Only those created at or after this instant. */
  since: givenInstantSchema.optional(),
  /** Only those created before this instant. */
  until: givenInstantSchema.optional(),
  /** Only those that ended at or after this instant. */
  ended_since: givenInstantSchema.optional(),
  /** Text that the task preview contains, ignoring case, up to 100 characters. */
  q: z.string().min(1).max(100).optional(),
});
/** The filters of a list; all given ones apply. */
export interface DelegationFilter extends Omit<z.input<typeof delegationFilterSchema>, "state"> {
  /** One state, or several. */
  readonly state?: State | readonly State[] | undefined;
}

/** A page of delegations, newest first. */
export const delegationPageSchema = z.strictObject({
  /** The delegations, newest first. May be empty before the last page. */
  delegations: z.array(delegationSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
  /** The list has considered everything created at or after this instant; null: everything. */
  scanned_to: instantSchema.nullable(),
});

/** Results after a cursor, with the cursor to continue from. */
export const resultPageSchema = z.strictObject({
  /** The delegations as they are now, in the order in which they ended or asked. */
  results: z.array(delegationSchema),
  /** The position after them: send it as `after`. */
  cursor: z.string(),
});

/** Why, and how far, to cancel. */
export const cancelRequestSchema = z.strictObject({
  /** For people and the worker, up to 1024 characters. */
  reason: z.string().max(1024).optional(),
  /**
   * Whether everything delegated under it is canceled, too. Default: yes, unless its `children_on_failure` is `keep`. With
   * true, its children are canceled all the same.
   */
  cascade: z.boolean().optional(),
});

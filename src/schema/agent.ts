/**
 * An agent: a named addressee with one queue; many processes may poll under its name.
 * Limit: the URL of a push agent is visible to the agent and the operator only, its credentials to nobody.
 */
import * as z from "zod";
import { periodBudgetsPatchSchema, periodBudgetsSchema } from "./budget.ts";
import { credentialsSchema } from "./credentials.ts";
import { LIMITS } from "./limits.ts";
import { agentNotifyPatchSchema, agentNotifySchema } from "./notice.ts";
import { presenceSchema } from "./presence.ts";
import { riskRuleSchema } from "./risk.ts";
import {
  agentNameSchema,
  httpUrlSchema,
  instantSchema,
  principalPatternSchema,
  principalSchema,
} from "./values.ts";
import { votesPatchSchema, votesSchema } from "./votes.ts";

const skillSchema = z.looseObject({
  /** Identifies the skill. */
  id: z.string().min(1),
  /** The skill's name, for people. */
  name: z.string().min(1),
  /** What the skill does. */
  description: z.string(),
  /** Keywords. */
  tags: z.array(z.string()),
});

/** The limits of an agent. */
export const limitsSchema = z.strictObject({
  /** How many attempts a delegation has, 1 to 100. */
  max_attempts: z.int().min(1).max(100).default(3),
  /** How long a lease lasts without a heartbeat, 1 to 3600. */
  lease_seconds: z.number().min(1).max(3600).default(60),
  /** How many leases the agent may hold at once, up to 1,000,000; null: any number. */
  max_working: z.int().min(1).max(1_000_000).nullable().default(null),
  /** How many delegations may wait, up to 10,000,000; beyond it new ones are refused with `queue_full`. */
  max_waiting: z.int().min(1).max(10_000_000).default(10_000),
  /** How long a question stays open, up to a year, unless it says otherwise by `expires_in_seconds`. */
  interrupt_ttl_seconds: z.number().min(1).max(31_536_000).default(86_400),
});

/** The wait before a failed attempt is repeated: it grows with each attempt. */
export const backoffSchema = z.strictObject({
  /** The wait after the first attempt, in milliseconds, up to an hour. */
  initial_ms: z.int().min(0).max(3_600_000).default(1000),
  /** By how much each further wait is longer, 1 to 100. */
  factor: z.number().min(1).max(100).default(2),
  /** The longest wait, in milliseconds, up to a day. */
  max_ms: z.int().min(0).max(86_400_000).default(300_000),
  /** The part of the wait that is random, 0 to 1. */
  jitter: z.number().min(0).max(1).default(0.2),
});

/** The broker sends the work to an A2A server. Only the operator may set this. */
export const pushDeliverySchema = z.strictObject({
  /** The broker sends the work. */
  mode: z.literal("push"),
  /** The A2A server: its base URL, or that of its card. Up to 2048 characters. */
  url: httpUrlSchema,
});
/** Workers ask for work. */
export const pollDeliverySchema = z.strictObject({
  /** Workers ask for work. */
  mode: z.literal("poll"),
});

/** How work reaches the agent: workers poll, or the broker sends it to an A2A server. */
export const deliverySchema = z.discriminatedUnion("mode", [pollDeliverySchema, pushDeliverySchema]);
export type Delivery = z.infer<typeof deliverySchema>;

/** The broker sends the work to an A2A server, with credentials. Only the operator may set this. */
export const pushDeliveryRequestSchema = pushDeliverySchema.extend({
  /** For the server; stored apart and never shown. Absent and null: none. */
  credentials: credentialsSchema.nullish(),
});
/** How work reaches the agent: workers poll, or the broker sends it to an A2A server. */
export const deliveryRequestSchema = z.discriminatedUnion("mode", [
  pollDeliverySchema,
  pushDeliveryRequestSchema,
]);

/** Changes to how work reaches the agent. Only the operator may set `push`. */
export const deliveryPatchSchema = z.strictObject({
  /** `poll`: workers ask for work; `push`: the broker sends it. */
  mode: z.enum(["poll", "push"]).optional(),
  url: pushDeliverySchema.shape.url.optional(),
  /** For the server; stored apart and never shown. Absent: those that are stored stay; null removes them. */
  credentials: credentialsSchema.nullish(),
});

/** `person`: the agent refuses approval in advance, that is, every delegation with `auto_approve`. */
export const approvalsSchema = z.enum(["any", "person"]);
export type Approvals = z.infer<typeof approvalsSchema>;

/**
 * Whether the delegator of the root of a tree may read what agents below it delegated to this agent. `nodes`: only its place,
 * name and state; `contents`: everything.
 */
export const treeReadsSchema = z.enum(["nodes", "contents"]);
export type TreeReads = z.infer<typeof treeReadsSchema>;
/** `context`: of each conversation of a delegator (`context_id`), the agent works on one delegation at a time, in order. */
const serialBySchema = z.enum(["context"], { error: 'must be "context", or null for no order' });

/** After how many seconds of waiting work is queued as if its priority were one higher, 1 to 2592000 (30 days). */
const ageingSchema = z.int().min(1).max(2_592_000);

/** For how long a worker is preferred, in seconds, up to an hour. */
const stickySecondsSchema = z.number().gt(0).max(3600);

/** How many turns of the queue a delegator gets where the others get one, for up to 100 delegators. */
const delegatorWeightsSchema = z
  .record(principalSchema, z.int().min(1).max(100))
  .refine((weights) => Object.keys(weights).length <= 100, "at most 100 delegators have a weight");

/** Only the operator changes them. People see the risk beside the action that they are asked about. */
const risksSchema = z.array(riskRuleSchema).max(100);

/** The settings of an agent, as they are stored and shown. */
export const agentSpecSchema = z.strictObject({
  /** What the agent does, for people and other agents, up to 4096 characters. */
  description: z.string().max(4096).default(""),
  /** What the agent can do, for its A2A card: up to 100. */
  skills: z.array(skillSchema).max(100).default([]),
  /** The agent's own version, up to 64 characters. */
  version: z.string().max(64).default("1"),
  /**
   * Who may delegate to the agent, up to 1000 patterns: `*`, a principal, or a kind with a star, such as `caller:*`.
   */
  accepts_from: z.array(principalPatternSchema).max(1000).default(["*"]),
  /**
   * Whether a delegator may approve questions in advance. `person`: the agent refuses every delegation with
   * `auto_approve`.
   */
  approvals: approvalsSchema.default("any"),
  /**
   * What the delegator of a root may read of the work that others delegated to this agent below it. `nodes`: its place in
   * the tree, and its state; `contents`: everything.
   */
  tree_reads: treeReadsSchema.default("nodes"),
  /** What notifications about the agent's questions may do outside the broker. Only the operator changes it. */
  notify: agentNotifySchema.prefault({}),
  /**
   * Who approves what the agent asks for: how many people, and which. Null: the first answer of anybody who may answer
   * counts. Only the operator changes it.
   */
  votes: votesSchema.nullable().default(null),
  /**
   * How many turns of the queue a delegator gets where the others get one: a number of 1 to 100 by principal, for up to
   * 100 principals.
   */
  delegator_weights: delegatorWeightsSchema.default({}),
  /**
   * After this long in the queue, 1 to 2592000 seconds, work is queued as if its priority were one higher, again and again, up to
   * 9. Null: priorities stay.
   */
  priority_ageing_seconds: ageingSchema.nullable().default(null),
  /** How risky the agent's actions are; people see it beside the action. Only the operator changes it. */
  risks: risksSchema.default([]),
  /** How work reaches the agent. */
  delivery: deliverySchema.default({ mode: "poll" }),
  /** The agent's limits; each has a default. */
  limits: limitsSchema.prefault({}),
  /** The wait before a failed attempt is repeated. */
  backoff: backoffSchema.prefault({}),
  /**
   * `context`: of each conversation of a delegator (`context_id`), the agent works on one delegation at a time, in the
   * order in which they were accepted; the others wait in line. Null: on any number at once.
   */
  serial_by: serialBySchema.nullable().default(null),
  /**
   * For this long after the reply to a delegation of a conversation, up to 3600 seconds, the next ones of the same
   * delegator and conversation are kept for the worker that had it. Null: any worker gets them.
   */
  sticky_seconds: stickySecondsSchema.nullable().default(null),
  /**
   * What the agent may use by `day` and by `month`, UTC, as its workers report it. When one is used up, new work for it is
   * refused with `budget_exhausted` until the next day or month; work in progress goes on. Null: no budgets.
   * Only the operator changes it.
   */
  budgets: periodBudgetsSchema.nullable().default(null),
});
export type AgentSpec = z.output<typeof agentSpecSchema>;

export const agentRequestSchema = agentSpecSchema
  .extend({
    /** How work reaches the agent. */
    delivery: deliveryRequestSchema.default({ mode: "poll" }),
  })
  .refine(
    (spec) => new TextEncoder().encode(JSON.stringify(spec)).length <= LIMITS.agent_bytes.value,
    `the settings exceed ${LIMITS.agent_bytes.value} bytes as JSON`,
  );
export type AgentRequest = z.output<typeof agentRequestSchema>;
/** The settings of an agent; each has a default. */
export type AgentInput = z.input<typeof agentRequestSchema>;

const settings = agentSpecSchema.shape;

/** Changes to an agent's limits. */
export const limitsPatchSchema = z.strictObject({
  max_attempts: limitsSchema.shape.max_attempts.unwrap().nullish(),
  lease_seconds: limitsSchema.shape.lease_seconds.unwrap().nullish(),
  max_working: limitsSchema.shape.max_working.unwrap().nullish(),
  max_waiting: limitsSchema.shape.max_waiting.unwrap().nullish(),
  interrupt_ttl_seconds: limitsSchema.shape.interrupt_ttl_seconds.unwrap().nullish(),
});

/** Changes to the wait before a failed attempt is repeated. */
export const backoffPatchSchema = z.strictObject({
  initial_ms: backoffSchema.shape.initial_ms.unwrap().nullish(),
  factor: backoffSchema.shape.factor.unwrap().nullish(),
  max_ms: backoffSchema.shape.max_ms.unwrap().nullish(),
  jitter: backoffSchema.shape.jitter.unwrap().nullish(),
});

/** A JSON Merge Patch (RFC 7396): omitted settings stay, `null` resets to the default, arrays are replaced. */
export const agentPatchSchema = z.strictObject({
  description: settings.description.unwrap().nullish(),
  skills: settings.skills.unwrap().nullish(),
  version: settings.version.unwrap().nullish(),
  accepts_from: settings.accepts_from.unwrap().nullish(),
  /**
   * Whether a delegator may approve questions in advance. `person`: the agent refuses every delegation with
   * `auto_approve`.
   */
  approvals: approvalsSchema.nullish(),
  /**
   * What the delegator of a root may read of the work that others delegated to this agent below it. `nodes`: its place in
   * the tree, and its state; `contents`: everything.
   */
  tree_reads: treeReadsSchema.nullish(),
  /** Changes to what notifications about the agent's questions may do outside the broker. Only the operator changes it. */
  notify: agentNotifyPatchSchema.nullish(),
  /** Changes to who approves what the agent asks for; null: the first answer counts. Only the operator changes it. */
  votes: votesPatchSchema.nullish(),
  /** Changes to how many turns of the queue a delegator gets: a number of 1 to 100 by principal; null: 1 again. */
  delegator_weights: z.record(principalSchema, z.int().min(1).max(100).nullable()).nullish(),
  /** After how many seconds in the queue work is queued as if its priority were one higher; null: never. */
  priority_ageing_seconds: ageingSchema.nullish(),
  /** How risky the agent's actions are; people see it beside the action. Only the operator changes it. */
  risks: risksSchema.nullish(),
  /** Changes to how work reaches the agent. */
  delivery: deliveryPatchSchema.nullish(),
  /** Changes to the agent's limits. */
  limits: limitsPatchSchema.nullish(),
  /** Changes to the wait before a failed attempt is repeated. */
  backoff: backoffPatchSchema.nullish(),
  /** `context`: the agent works on one delegation of a conversation at a time; null: on any number. */
  serial_by: serialBySchema.nullish(),
  /** For how many seconds the next delegations of a conversation are kept for its last worker; null: not at all. */
  sticky_seconds: stickySecondsSchema.nullish(),
  /** Changes to what the agent may use by `day` and by `month`; null: no budgets. Only the operator changes it. */
  budgets: periodBudgetsPatchSchema.nullish(),
});
/** Changes to an agent's settings. */
export type AgentPatch = z.input<typeof agentPatchSchema>;

export const agentSchema = z.strictObject({
  /** The agent's name. */
  name: agentNameSchema,
  /** What the agent does. */
  description: z.string(),
  /** What the agent can do. */
  skills: z.array(skillSchema),
  /** The agent's own version. */
  version: z.string(),
  /**
   * How work reaches the agent. The URL and whether there are credentials are visible to the agent and the operator
   * only; the credentials to nobody.
   */
  delivery: z.strictObject({
    /** `poll`: workers ask for work; `push`: the broker sends it to an A2A server. */
    mode: z.enum(["poll", "push"]),
    /** The A2A server of a push agent. */
    url: z.string().optional(),
    /** Whether the broker has credentials for the server. */
    credentials_set: z.boolean().optional(),
  }),
  /** Whether the operator or the agent paused it: its workers get no work. */
  paused: z.boolean(),
  /** Who may delegate to the agent; visible to the agent and the operator only. */
  accepts_from: z.array(z.string()).optional(),
  /** How many turns of the queue a delegator gets where the others get one; visible to the agent and the operator only. */
  delegator_weights: z.record(z.string(), z.int()).optional(),
  /** After how many seconds in the queue work is queued as if its priority were one higher; null: never. */
  priority_ageing_seconds: ageingSchema.nullable().default(null),
  /**
   * `person`: the agent refuses every delegation with `auto_approve`. Visible to everybody, because it decides
   * whether that is accepted.
   */
  approvals: approvalsSchema.default("any"),
  /**
   * What the delegator of a root may read of the work that others delegated to this agent below it. `nodes`: its place in
   * the tree, and its state; `contents`: everything. Visible to everybody.
   */
  tree_reads: treeReadsSchema.default("nodes"),
  /** What notifications about the agent's questions may do outside the broker; visible to the agent and the operator only. */
  notify: agentNotifySchema.optional(),
  /** Who approves what the agent asks for; null: the first answer counts. Visible to everybody, because work waits for it. */
  votes: votesSchema.nullable().default(null),
  /** How risky the agent's actions are. Visible to everybody, because people see it with the questions. */
  risks: risksSchema.default([]),
  /** The agent's limits; visible to the agent and the operator only. */
  limits: limitsSchema.optional(),
  /** The wait before a failed attempt is repeated; visible to the agent and the operator only. */
  backoff: backoffSchema.optional(),
  /**
   * `context`: of each conversation of a delegator, the agent works on one delegation at a time. Visible to everybody,
   * because it explains why work waits.
   */
  serial_by: serialBySchema.nullable().default(null),
  /** For how many seconds the next delegations of a conversation are kept for its last worker. */
  sticky_seconds: stickySecondsSchema.nullable().default(null),
  /** What the agent may use by day and by month; visible to the agent and the operator only, and absent without any. */
  budgets: periodBudgetsSchema.optional(),
  /** When the agent was created. */
  created_at: instantSchema,
  /** When its settings last changed. */
  updated_at: instantSchema,
  /** Whether workers poll for the agent. */
  presence: presenceSchema,
  /** How many of its delegations are in which part of their life. */
  counts: z.strictObject({
    /** Wait for a worker. */
    waiting: z.int(),
    /** Wait for their earliest start, or for the next attempt. */
    delayed: z.int(),
    /** Are leased. */
    working: z.int(),
    /** Wait for the answer to a question. */
    interrupted: z.int(),
    /** Wait for children of their own; no worker has them. */
    awaiting: z.int(),
  }),
  /** Since when its oldest waiting delegation could have been taken; null: none waits. */
  oldest_waiting_at: instantSchema.nullable().optional(),
  /** How much it works on, and how much more it could take. */
  slots: z
    .strictObject({
      /** How many leases its workers hold. */
      busy: z.int().min(0),
      /** How many workers wait for work. 0 for a push agent, and while the agent is paused or at its limit. */
      free: z.int().min(0),
      /** Its `max_working`; null: any number. */
      most: z.int().nullable(),
    })
    .optional(),
  /** The URL of its A2A agent card. */
  a2a_card_url: z.string(),
});
/** A page of agents. */
export const agentPageSchema = z.strictObject({
  /** The agents, by name. */
  agents: z.array(agentSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});

export const workerSchema = z.strictObject({
  /** Its `worker_id`; the agent's name if it sends none. */
  id: z.string(),
  /** When it last polled or reported. */
  last_seen_at: instantSchema,
  /** The delegations whose leases it holds. */
  delegations: z.array(z.string()),
  /** It fails or cannot work, so it takes no work for a while; absent: it does. */
  paused: z
    .strictObject({
      /** When it tries again. */
      until: instantSchema,
      /** Why it paused. */
      reason: z.string(),
    })
    .optional(),
});
/** A process that works for an agent. */
export type Worker = z.infer<typeof workerSchema>;

/** The workers of an agent. */
export const workersSchema = z.strictObject({
  /** The workers that were seen lately or hold leases. */
  workers: z.array(workerSchema),
  /** Whether there are more workers or leases than shown. */
  truncated: z.boolean(),
});

export const agentChangeSchema = agentSchema.extend({
  /** Whether the request created the agent. */
  created: z.boolean(),
  /** Paths of the settings that changed, for example `limits.max_working`. */
  changed: z.array(z.string()),
  /** Paths of the settings that were reset to their default. */
  reset: z.array(z.string()),
});
/** An agent, and what the request changed. */
export type AgentChange = z.infer<typeof agentChangeSchema>;
/** An agent; `limits` and `accepts_from` are visible to the agent and the operator only. */
export type Agent = z.infer<typeof agentSchema>;

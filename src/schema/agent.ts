/**
 * An agent: a named addressee with one queue; many processes may poll under its name.
 * Limit: the URL of a push agent is visible to the agent and the operator only, its credentials to nobody.
 */
import * as z from "zod";
import { credentialsSchema } from "./credentials.ts";
import { LIMITS } from "./limits.ts";
import { riskRuleSchema } from "./risk.ts";
import { agentNameSchema, instantSchema, principalPatternSchema } from "./values.ts";

export const presenceSchema = z.strictObject({
  state: z.enum(["online", "stale", "offline"]),
  last_seen_at: instantSchema.nullable(),
  pollers: z.int().min(0),
  /** Workers that paused, because they fail or cannot work: how many, when the first tries again, and why the newest did. */
  paused: z.strictObject({ workers: z.int().min(1), until: instantSchema, reason: z.string() }).optional(),
});
/**
 * Whether workers poll for the agent: how many now, and when the last one did (an ISO 8601 instant). For a push agent:
 * whether the last call reached its server.
 */
export type Presence = z.infer<typeof presenceSchema>;

const skillSchema = z.looseObject({
  id: z.string().min(1),
  name: z.string().min(1),
  description: z.string(),
  tags: z.array(z.string()),
});

export const limitsSchema = z.strictObject({
  max_attempts: z.int().min(1).max(100).default(3),
  lease_seconds: z.number().min(1).max(3600).default(60),
  max_working: z.int().min(1).max(1_000_000).nullable().default(null),
  max_waiting: z.int().min(1).max(10_000_000).default(10_000),
  interrupt_ttl_seconds: z.number().min(1).max(31_536_000).default(86_400),
});

export const backoffSchema = z.strictObject({
  initial_ms: z.int().min(0).max(3_600_000).default(1000),
  factor: z.number().min(1).max(100).default(2),
  max_ms: z.int().min(0).max(86_400_000).default(300_000),
  jitter: z.number().min(0).max(1).default(0.2),
});

const pushSchema = z.strictObject({
  mode: z.literal("push"),
  url: z.url({ protocol: /^https?$/ }).max(2048),
});
const pollSchema = z.strictObject({ mode: z.literal("poll") });

/** `poll`: workers ask for work. `push`: the broker sends it to an A2A server; only the operator may set this. */
export const deliverySchema = z.discriminatedUnion("mode", [pollSchema, pushSchema]);
export type Delivery = z.infer<typeof deliverySchema>;

/** In a request `push` may have credentials for the server, which are stored apart and never shown. */
const deliveryRequestSchema = z.discriminatedUnion("mode", [
  pollSchema,
  pushSchema.extend({ credentials: credentialsSchema.nullish() }),
]);

const deliveryPatchSchema = z.strictObject({
  mode: z.enum(["poll", "push"]).optional(),
  url: pushSchema.shape.url.optional(),
  credentials: credentialsSchema.nullish(),
});

/** `person`: the agent refuses approval in advance, that is, every delegation with `auto_approve`. */
export const approvalsSchema = z.enum(["any", "person"]);
export type Approvals = z.infer<typeof approvalsSchema>;

/** Only the operator changes them. People see the risk beside the action that they are asked about. */
const risksSchema = z.array(riskRuleSchema).max(100);

/** The settings of an agent, as they are stored and shown. */
export const agentSpecSchema = z.strictObject({
  description: z.string().max(4096).default(""),
  skills: z.array(skillSchema).max(100).default([]),
  version: z.string().max(64).default("1"),
  accepts_from: z.array(principalPatternSchema).max(1000).default(["*"]),
  approvals: approvalsSchema.default("any"),
  risks: risksSchema.default([]),
  delivery: deliverySchema.default({ mode: "poll" }),
  limits: limitsSchema.prefault({}),
  backoff: backoffSchema.prefault({}),
});
export type AgentSpec = z.output<typeof agentSpecSchema>;

export const agentRequestSchema = agentSpecSchema
  .extend({ delivery: deliveryRequestSchema.default({ mode: "poll" }) })
  .refine(
    (spec) => new TextEncoder().encode(JSON.stringify(spec)).length <= LIMITS.agent_bytes.value,
    `the settings exceed ${LIMITS.agent_bytes.value} bytes as JSON`,
  );
export type AgentRequest = z.output<typeof agentRequestSchema>;
/** The settings of an agent; each has a default. */
export type AgentInput = z.input<typeof agentRequestSchema>;

const settings = agentSpecSchema.shape;

export const limitsPatchSchema = z.strictObject({
  max_attempts: limitsSchema.shape.max_attempts.unwrap().nullish(),
  lease_seconds: limitsSchema.shape.lease_seconds.unwrap().nullish(),
  max_working: limitsSchema.shape.max_working.unwrap().nullish(),
  max_waiting: limitsSchema.shape.max_waiting.unwrap().nullish(),
  interrupt_ttl_seconds: limitsSchema.shape.interrupt_ttl_seconds.unwrap().nullish(),
});

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
  approvals: approvalsSchema.nullish(),
  risks: risksSchema.nullish(),
  delivery: deliveryPatchSchema.nullish(),
  limits: limitsPatchSchema.nullish(),
  backoff: backoffPatchSchema.nullish(),
});
/** Changes to an agent's settings: omitted ones stay, `null` resets to the default, arrays are replaced. */
export type AgentPatch = z.input<typeof agentPatchSchema>;

export const agentSchema = z.strictObject({
  name: agentNameSchema,
  description: z.string(),
  skills: z.array(skillSchema),
  version: z.string(),
  /**
   * The URL of a push agent, and whether the broker has credentials for it, are visible to the agent and the operator
   * only; the credentials themselves to nobody.
   */
  delivery: z.strictObject({
    mode: z.enum(["poll", "push"]),
    url: z.string().optional(),
    credentials_set: z.boolean().optional(),
  }),
  paused: z.boolean(),
  accepts_from: z.array(z.string()).optional(),
  /** Visible to everybody, because it decides whether `auto_approve` is accepted. */
  approvals: approvalsSchema.default("any"),
  /** Visible to everybody, because people see it with the questions. */
  risks: risksSchema.default([]),
  limits: limitsSchema.optional(),
  backoff: backoffSchema.optional(),
  created_at: instantSchema,
  updated_at: instantSchema,
  presence: presenceSchema,
  counts: z.strictObject({
    waiting: z.int(),
    delayed: z.int(),
    working: z.int(),
    interrupted: z.int(),
  }),
  /** Since when its oldest waiting delegation could have been taken; null: none waits. */
  oldest_waiting_at: instantSchema.nullable().optional(),
  /** How much it works on, how many workers wait for work, and its `max_working`. */
  slots: z
    .strictObject({
      busy: z.int().min(0),
      /** 0 for a push agent, and while the agent is paused or at its limit. */
      free: z.int().min(0),
      /** Null: any number. */
      most: z.int().nullable(),
    })
    .optional(),
  /** The URL of its A2A agent card. */
  a2a_card_url: z.string(),
});
export const agentPageSchema = z.strictObject({
  agents: z.array(agentSchema),
  next_cursor: z.string().nullable(),
});

export const workerSchema = z.strictObject({
  /** Its `worker_id`; the agent's name if it sends none. */
  id: z.string(),
  last_seen_at: instantSchema,
  /** The delegations whose leases it holds. */
  delegations: z.array(z.string()),
  /** It fails or cannot work, so it takes no work until then. */
  paused: z.strictObject({ until: instantSchema, reason: z.string() }).optional(),
});
/** A process that works for an agent. */
export type Worker = z.infer<typeof workerSchema>;

export const workersSchema = z.strictObject({
  workers: z.array(workerSchema),
  /** Whether there are more workers or leases than shown. */
  truncated: z.boolean(),
});

export const agentChangeSchema = agentSchema.extend({
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

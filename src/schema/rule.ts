/** Rules that answer, as they are shown. Limit: rule-request.ts has what a new one may say. */
import * as z from "zod";
import { decisionSchema } from "./decision.ts";
import { agentNameSchema, delegationIdSchema, instantSchema, principalSchema } from "./values.ts";

export const RULE_ID = /^rul_[0-9a-z]{26}$/;
/** The id of a rule, `rul_…`. */
export const ruleIdSchema = z.string().regex(RULE_ID, "not a rule id");

export const argumentConstraintSchema = z.object({
  /** The name of the argument; absent: `pointer` says which. */
  name: z.string().optional(),
  /** A JSON Pointer into the arguments. */
  pointer: z.string().optional(),
  /** The argument is this JSON value. */
  equals: z.unknown().optional(),
  /** The argument is the path of this file or folder, or of one below it. */
  path_prefix: z.string().optional(),
  /** The argument is a list of texts that begins with these. */
  items_prefix: z.array(z.string()).optional(),
  /** The argument is a number, at least this. */
  minimum: z.number().optional(),
  /** The argument is a number, at most this. */
  maximum: z.number().optional(),
  /** The argument fits this JSON Schema. */
  schema: z.unknown().optional(),
});
/** What one argument of an action must be; all given members apply. */
export type ArgumentConstraint = z.infer<typeof argumentConstraintSchema>;

/** A rule answers only while it is `active`; the other states are final. */
export const ruleStateSchema = z.enum(["active", "used_up", "expired", "revoked"]);

export const ruleUseSchema = z.strictObject({
  /** When. */
  at: instantSchema,
  /** The delegation whose agent asked. */
  delegation_id: delegationIdSchema,
  /** The question. */
  interrupt_id: z.string(),
});
/** A question that a rule answered. */
export type RuleUse = z.infer<typeof ruleUseSchema>;

export const ruleSchema = z.strictObject({
  /** Identifies the rule. */
  id: ruleIdSchema,
  /** Who created it, and in whose name it answers. */
  by: principalSchema,
  /** The agent whose questions it answers. */
  agent: agentNameSchema,
  /** The name of the action; `*` at the end matches any rest. */
  action: z.string(),
  /** What the arguments must be. */
  arguments: z.array(argumentConstraintSchema),
  /** Whether an argument that `arguments` does not name makes it not fit. */
  only_these_arguments: z.boolean(),
  /** What it answers. */
  decision: decisionSchema,
  /** `active`; `used_up`: it was used `max_uses` times; `expired`; `revoked`: by somebody, or with its creator's token. */
  state: ruleStateSchema,
  /** How many actions it decided. */
  uses: z.int(),
  /** How many actions it may decide; null: any number. */
  max_uses: z.int().nullable(),
  /** When it ends, at the latest; null: it applies until it is revoked. */
  expires_at: instantSchema.nullable(),
  /** For people; null: none. */
  note: z.string().nullable(),
  /** The newest questions that it answered, newest first, up to 10. */
  last_uses: z.array(ruleUseSchema),
  /** When it was created. */
  created_at: instantSchema,
  /** When it was revoked; null: it was not. */
  revoked_at: instantSchema.nullable(),
});
/** A standing approval or denial. */
export type Rule = z.infer<typeof ruleSchema>;

/** A page of rules. */
export const rulePageSchema = z.strictObject({
  /** The rules, oldest first. */
  rules: z.array(ruleSchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});

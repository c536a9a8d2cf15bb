/**
 * The audit log: who changed tokens, sessions, agents, schedules and rules, decided about proposed actions, erased delegations, or acted in
 * bulk. Limit: no reads, and nothing else about single delegations, which have events.
 */
import * as z from "zod";
import { jsonObjectSchema } from "./json-object.ts";
import { instantSchema, principalSchema } from "./values.ts";

/** What was done: the kind of thing, and the verb. */
export const auditActionSchema = z.enum([
  "token.create",
  "token.revoke",
  "session.create",
  "session.revoke",
  "agent.create",
  "agent.update",
  "agent.pause",
  "agent.resume",
  "agent.delete",
  "delegation.decide",
  "delegation.erase",
  "delegations.cancel",
  "delegations.redrive",
  "schedule.create",
  "schedule.update",
  "schedule.pause",
  "schedule.resume",
  "schedule.run",
  "schedule.delete",
  "rule.create",
  "rule.revoke",
  "subscription.create",
  "subscription.update",
  "subscription.resume",
  "subscription.delete",
  "link.answer",
  "link.refuse",
]);
export type AuditAction = z.infer<typeof auditActionSchema>;

export const auditEntrySchema = z.strictObject({
  /** Identifies the entry. */
  id: z.string(),
  /** When it happened. */
  at: instantSchema,
  /** Who did it. */
  by: principalSchema,
  /** What was done. */
  action: auditActionSchema,
  /** The agent, or the id of the token, session, delegation, schedule or rule. */
  subject: z.string(),
  /** More about it, depending on the action. */
  details: jsonObjectSchema,
});
/** One action in the audit log. */
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const auditFilterSchema = z.strictObject({
  /** Only this action. */
  action: auditActionSchema.optional(),
  /** Only about this agent, or the token, session, delegation, schedule or rule with this id. */
  subject: z.string().min(1).max(256).optional(),
  /** Only what this principal did. */
  by: principalSchema.optional(),
});
export type AuditFilter = z.infer<typeof auditFilterSchema>;

/** A page of the audit log, newest first. */
export const auditPageSchema = z.strictObject({
  /** The entries, newest first. */
  entries: z.array(auditEntrySchema),
  /** The `cursor` of the next page; null: this is the last. */
  next_cursor: z.string().nullable(),
});

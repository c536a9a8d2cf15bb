/**
 * The audit log: who changed tokens, sessions and agents, erased delegations, or acted in bulk. Limit: no reads, and no
 * single delegations, which have events.
 */
import * as z from "zod";
import { jsonObjectSchema } from "./json-object.ts";
import { instantSchema, principalSchema } from "./values.ts";

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
  "delegation.erase",
  "delegations.cancel",
  "delegations.redrive",
]);
export type AuditAction = z.infer<typeof auditActionSchema>;

export const auditEntrySchema = z.strictObject({
  id: z.string(),
  at: instantSchema,
  by: principalSchema,
  action: auditActionSchema,
  /** The agent, or the id of the token, session or delegation. */
  subject: z.string(),
  details: jsonObjectSchema,
});
/** One action in the audit log. */
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const auditFilterSchema = z.strictObject({
  action: auditActionSchema.optional(),
  subject: z.string().min(1).max(256).optional(),
  by: principalSchema.optional(),
});
export type AuditFilter = z.infer<typeof auditFilterSchema>;

export const auditPageSchema = z.strictObject({
  entries: z.array(auditEntrySchema),
  next_cursor: z.string().nullable(),
});

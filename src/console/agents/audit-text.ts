/** An entry of the audit log in words: what was done, and to what. */
import * as z from "zod";
import type { AuditAction, AuditEntry } from "../../schema/audit.ts";
import { count, decided } from "../ui/words.ts";

const VERBS: Readonly<Record<AuditAction, string>> = {
  "token.create": "created a token for",
  "token.revoke": "revoked the token of",
  "session.create": "signed in",
  "session.revoke": "ended the session of",
  "agent.create": "created the agent",
  "agent.update": "changed the agent",
  "agent.pause": "paused the agent",
  "agent.resume": "resumed the agent",
  "agent.delete": "deleted the agent",
  "delegation.decide": "decided about",
  "delegation.erase": "erased the delegation",
  "delegations.cancel": "canceled",
  "delegations.redrive": "repeated",
  "schedule.create": "created the schedule",
  "schedule.update": "changed the schedule",
  "schedule.pause": "paused the schedule",
  "schedule.resume": "resumed the schedule",
  "schedule.run": "ran the schedule",
  "schedule.delete": "deleted the schedule",
  "rule.create": "created the rule",
  "rule.revoke": "revoked the rule",
  "subscription.create": "created the subscription",
  "subscription.update": "changed the subscription",
  "subscription.resume": "resumed the subscription",
  "subscription.delete": "deleted the subscription",
  "link.answer": "answered by a link",
  "link.refuse": "used a link without effect at",
};

/** What the log can be narrowed to. Sign-ins are the most, and the least telling. */
export const KINDS = [
  ["changes", "All but sign-ins"],
  ["agents", "Agents"],
  ["tokens", "Tokens"],
  ["delegations", "Delegations"],
  ["schedules", "Schedules"],
  ["rules", "Rules"],
  ["subscriptions", "Subscriptions"],
  ["links", "Links"],
  ["sign-ins", "Sign-ins"],
  ["all", "Everything"],
] as const;
export type Kind = (typeof KINDS)[number][0];

export function isOfKind({ action }: Pick<AuditEntry, "action">, kind: Kind): boolean {
  const [subject = ""] = action.split(".", 1);
  if (kind === "all") return true;
  if (kind === "changes") return subject !== "session";
  if (kind === "sign-ins") return subject === "session";
  return subject.startsWith(kind.slice(0, -1));
}

type Entry = Pick<AuditEntry, "action" | "subject" | "by" | "details">;

/** Whose tokens and sessions the entries created, by their ids. An entry that ends one has only its id. */
export function ownersOf(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const { action, subject, by, details } of entries) {
    if (action === "session.create") owners.set(subject, by);
    if (action === "token.create" && typeof details.principal === "string")
      owners.set(subject, details.principal);
  }
  return owners;
}

const decisionsSchema = z.array(
  z.object({ action: z.string(), decision: z.string(), total: z.number().optional() }),
);

/** `approved deploy with 2 changes in`. */
function whatWas({ decisions }: AuditEntry["details"]): string {
  const [first, second] = decisionsSchema.safeParse(decisions).data ?? [];
  if (first === undefined || second !== undefined) return "decided about several actions in";
  const changes = first.total === undefined ? "" : ` with ${count(first.total, "change")}`;
  return `${decided(first.decision)} ${first.action}${changes} in`;
}

/** By the ids of tokens and sessions whose they are, and by the ids of delegations their tasks, as far as they are known. */
export type Names = ReadonlyMap<string, string>;

/** The verb, and what somebody else named: `created a token for`, `agent:coder`. */
export function auditText(
  { action, subject, details }: Entry,
  names: Names,
): { readonly what: string; readonly whom: string } {
  const what = VERBS[action];
  switch (action) {
    case "session.create":
      return { what, whom: "" };
    case "delegations.cancel":
    case "delegations.redrive": {
      const many = typeof details.count === "number" ? count(details.count, "delegation") : "delegations";
      return { what: `${what} ${many} of`, whom: subject };
    }
    case "delegation.decide":
      return { what: whatWas(details), whom: names.get(subject) ?? `…${subject.slice(-8)}` };
    case "delegation.erase":
    case "schedule.create":
    case "schedule.update":
    case "schedule.pause":
    case "schedule.resume":
    case "schedule.run":
    case "schedule.delete":
    case "rule.create":
    case "rule.revoke":
    case "subscription.create":
    case "subscription.update":
    case "subscription.resume":
    case "subscription.delete":
    case "link.answer":
    case "link.refuse":
      return { what, whom: names.get(subject) ?? `…${subject.slice(-8)}` };
    default:
      return { what, whom: names.get(subject) ?? subject };
  }
}

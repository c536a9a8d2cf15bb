/** Permissions of principals. Limit: for the verbs of a lease, the script checks that the caller is the lease's agent. */
import type * as z from "zod";
import type { Readable } from "../../lifecycle/fields.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import type { PeriodBudgets } from "../../schema/budget.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { TokenLimits } from "../../schema/token.ts";
import { principalKindSchema } from "../../schema/values.ts";
import type { AgentStore } from "../agents/store.ts";

export interface Principal {
  readonly text: string;
  readonly kind: z.infer<typeof principalKindSchema>;
  /** Empty for the operator. */
  readonly name: string;
  /** The highest priority that its token may delegate with; absent: any. */
  readonly maxPriority?: number | undefined;
  /** What its work may use by day and by month, because of its token; absent: as much as it likes. */
  readonly budgets?: PeriodBudgets | undefined;
}

export function toPrincipal(
  text: string,
  { max_priority: maxPriority, budgets }: TokenLimits = {},
): Principal {
  const [head, name = ""] = text.split(":");
  const kind = principalKindSchema.options.find((candidate) => candidate === head);
  if (!kind) throw new TypeError("not a principal");
  const isLimited = maxPriority !== undefined || budgets !== undefined;
  return isLimited ? { text, kind, name, maxPriority, budgets } : { text, kind, name };
}

/** The lower of two highest priorities; undefined: any. */
export const lowerPriority = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

export const seesAll = (principal: Principal): boolean =>
  principal.kind === "operator" || principal.kind === "approver" || principal.kind === "viewer";

export function requireOperator(principal: Principal, what: string): void {
  if (principal.kind !== "operator") {
    throw new ErrandError("forbidden", `Only the operator may ${what}.`);
  }
}

/** Throws `forbidden` unless the principal is the agent itself or the operator. */
export function requireAgent(principal: Principal, agent: string, what: string): void {
  if (principal.kind === "operator") return;
  if (principal.kind === "agent" && principal.name === agent) return;
  throw new ErrandError("forbidden", `Only agent:${agent} and the operator may ${what}.`);
}

export function requireDelegator(principal: Principal): void {
  if (principal.kind === "approver" || principal.kind === "viewer") {
    throw new ErrandError("forbidden", `${principal.text} may not delegate.`);
  }
}

/** A pattern is `*`, a principal such as `caller:ana`, or all of a kind, such as `caller:*`. */
export const matchesPattern = (principal: Principal, pattern: string): boolean =>
  pattern === "*" || pattern === principal.text || pattern === `${principal.kind}:*`;

/** Whether it delegated this, or is the agent that this is for. */
export const isParty = (
  { text, kind, name }: Principal,
  { delegator, target }: { readonly delegator: string; readonly target: string },
): boolean => delegator === text || (kind === "agent" && name === target);

/** Whether what was created then belongs to a deleted agent of the same name, also while that was being deleted. */
export const isOfEarlierAgent = async (
  { agents }: { readonly agents: Pick<AgentStore, "since"> },
  { kind, name }: Principal,
  created_at: number,
): Promise<boolean> => kind === "agent" && created_at < (await agents.since(name));

/** False for a principal that has nothing to do with the delegation: for it, the delegation does not exist. */
export async function canSee(
  { agents }: { readonly agents: Pick<AgentStore, "since"> },
  principal: Principal,
  record: Readable<"delegator" | "target" | "created_at">,
): Promise<boolean> {
  if (seesAll(principal)) return true;
  const concerned = isParty(principal, { delegator: record.get("delegator"), target: record.get("target") });
  return concerned && !(await isOfEarlierAgent({ agents }, principal, record.get("created_at")));
}

/** Whether the principal may read everything of it, and not only its place in a tree and its state. */
export async function canRead(
  broker: { readonly agents: Pick<AgentStore, "since" | "find"> },
  principal: Principal,
  record: Readable<"delegator" | "root_delegator" | "target" | "created_at">,
): Promise<boolean> {
  if (await canSee(broker, principal, record)) return true;
  if (!(await canSeeNode(broker, principal, record))) return false;
  const target = await broker.agents.find(record.get("target"));
  return target?.spec.tree_reads === "contents" && record.get("created_at") >= target.created_at;
}

/** Whether the principal may know of it: where it is in its tree, who it is for, and its state. */
export async function canSeeNode(
  broker: { readonly agents: Pick<AgentStore, "since"> },
  principal: Principal,
  record: Readable<"delegator" | "root_delegator" | "target" | "created_at">,
): Promise<boolean> {
  if (await canSee(broker, principal, record)) return true;
  if (record.get("root_delegator") !== principal.text) return false;
  return !(await isOfEarlierAgent(broker, principal, record.get("created_at")));
}

/** Whether the principal may cancel, answer and send messages. (The target uses its lease.) */
export const mayControl = ({ kind, text }: Principal, record: Readable<"delegator">): boolean =>
  kind === "operator" || kind === "approver" || record.get("delegator") === text;

/** Throws `forbidden` unless {@link mayControl}. */
export function requireControl(principal: Principal, record: StoredDelegation, what: string): void {
  if (mayControl(principal, record)) return;
  throw new ErrandError("forbidden", `Only the delegator, an approver or the operator may ${what}.`, {
    delegation_id: record.id,
    delegation_valid: !record.finished,
  });
}

/** A delegation as a waterfall shows it: a few fields, kept current by its events. */
import { type Delegation, isTerminal } from "../../../schema/delegation.ts";
import type { DelegationEvent } from "../../../schema/event.ts";
import { asks } from "../../data/listed.ts";
import { taskText } from "../../ui/words.ts";
import { type Question, questionsFrom } from "./questions.ts";

export interface Node
  extends Pick<
    Delegation,
    | "id"
    | "parent_id"
    | "state"
    | "version"
    | "target"
    | "attempt"
    | "max_attempts"
    | "created_at"
    | "finished_at"
    | "not_before_at"
    | "usage"
    | "awaits"
  > {
  readonly task: string;
  /** When the present lease was granted; null without one. */
  readonly leased_at: string | null;
  /** As far as they are known without its events. */
  readonly questions: readonly Question[];
}

export function toNode(delegation: Delegation): Node {
  const { id, parent_id, state, version, target, attempt, max_attempts, usage } = delegation;
  const { created_at, finished_at, not_before_at, lease, awaits } = delegation;
  return {
    ...{ id, parent_id, state, version, target, attempt, max_attempts, usage },
    ...{ created_at, finished_at, not_before_at, awaits },
    task: taskText(delegation),
    leased_at: lease?.granted_at ?? null,
    questions: questionsFrom(delegation),
  };
}

/** The delegation after the event. Null: read it instead, because an event is missing, or it has what the event has not. */
export function nodeAfter(node: Node, event: DelegationEvent): Node | null {
  if (event.seq !== node.version + 1 || asks(event.state) || event.status === "answered") return null;
  if (event.type === "UNKNOWN") return null;
  const used = event.usage;
  const attempt = ("attempt" in event ? event.attempt : undefined) ?? node.attempt;
  // At the end, it may be complete.
  if (used && isTerminal(event.state)) return null;
  const usage = used ? { attempts: [], total: { ...used, complete: false } } : node.usage;
  const isLease = event.status === "leased" || event.status === "reclaimed";
  return {
    ...node,
    ...{ state: event.state, version: event.seq, attempt, usage },
    leased_at: event.state !== "working" ? null : isLease ? event.at : node.leased_at,
    finished_at: isTerminal(event.state) ? event.at : null,
    awaits: "awaits" in event ? event.awaits : undefined,
  };
}

/** Messages as the remote gets them. Limit: parts and metadata of the delegator pass untouched. */
import type { Message } from "../schema/a2a.ts";
import type { Delegation } from "../schema/delegation.ts";

/** The message that makes the task. */
export function first(delegation: Pick<Delegation, "id" | "message" | "context_id">): Message {
  return { contextId: delegation.context_id, ...toSend(delegation.message, delegation.id) };
}

/** One more, into a task that is there. */
export function into(task: string, context: string | undefined, message: Message, id: string): Message {
  return { ...toSend(message, id), taskId: task, ...(context !== undefined && { contextId: context }) };
}

/** Callers may use one messageId for several tasks; the delegation tells them apart. */
export function isSame(one: Message, other: Message): boolean {
  return one.messageId === other.messageId && one.metadata?.delegation_id === other.metadata?.delegation_id;
}

/** The lease is none of the remote's business. */
function toSend({ taskId: _ours, ...message }: Message, delegationId: string): Message {
  const { lease_id: _hidden, ...metadata } = message.metadata ?? {};
  return { ...message, metadata: { ...metadata, delegation_id: delegationId } };
}

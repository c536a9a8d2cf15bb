/** Creates the messages for the A2A server. The delegator's parts and metadata are passed on unchanged. */
import type { Message } from "../schema/a2a.ts";
import type { Delegation } from "../schema/delegation.ts";

/** The message that creates the task. */
export function taskMessage(delegation: Pick<Delegation, "id" | "message" | "context_id">): Message {
  return { contextId: delegation.context_id, ...toSend(delegation.message, delegation.id) };
}

/** A message to an existing task. */
export function followUpMessage(
  task: string,
  context: string | undefined,
  message: Message,
  id: string,
): Message {
  return { ...toSend(message, id), taskId: task, ...(context !== undefined && { contextId: context }) };
}

/** Also compares the delegation, because a delegator may use one messageId for several. */
export function isSameMessage(one: Message, other: Message): boolean {
  return one.messageId === other.messageId && one.metadata?.delegation_id === other.metadata?.delegation_id;
}

/** Adds the delegation's id, and removes the lease and the broker's own task id. */
function toSend({ taskId: _taskId, ...message }: Message, delegationId: string): Message {
  const { lease_id: _leaseId, ...metadata } = message.metadata ?? {};
  return { ...message, metadata: { ...metadata, delegation_id: delegationId } };
}

/** Messages as the remote receives them. The delegator's parts and metadata stay as they are. */
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

/** A caller may use one messageId for several tasks, so the delegation counts too. */
export function isSameMessage(one: Message, other: Message): boolean {
  return one.messageId === other.messageId && one.metadata?.delegation_id === other.metadata?.delegation_id;
}

/** Without the lease and our own task id. */
function toSend({ taskId: _ours, ...message }: Message, delegationId: string): Message {
  const { lease_id: _hidden, ...metadata } = message.metadata ?? {};
  return { ...message, metadata: { ...metadata, delegation_id: delegationId } };
}

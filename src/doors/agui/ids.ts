/**
 * The ids of an AG-UI run. Those of the broker's messages begin with their delegation's id, so that every gateway gives
 * the same, and a client's own message is recognized.
 */
import { createHash } from "node:crypto";
import type { AgUiMessage, RunAgentInput } from "../../schema/ag-ui-input.ts";

const OWN = /^dlg_[0-9a-z]{1,3}_[0-9a-z]{26}\//;

export const messageIdOf = (delegation: string, messageId: string): string =>
  `${delegation}/message/${messageId}`;
export const artifactMessageId = (delegation: string, artifactId: string): string =>
  `${delegation}/artifact/${artifactId}`;
export const replyId = (delegation: string): string => `${delegation}/reply`;
export const activityId = (delegation: string): string => `${delegation}/progress`;

export type UserMessage = Extract<AgUiMessage, { role: "user" }>;

/** The user's newest message that did not come from the broker. */
export function taskOf({ messages }: Pick<RunAgentInput, "messages">): UserMessage | undefined {
  return messages.findLast(
    (message): message is UserMessage => message.role === "user" && !OWN.test(message.id),
  );
}

/** The idempotency key of the work that a message asks for. */
export function keyOf(agent: string, thread: string, message: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([agent, thread, message]))
    .digest("base64url");
  return `ag-ui:${hash}`;
}

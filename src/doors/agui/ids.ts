/**
 * The ids of an AG-UI run. The id of a broker's message is derived from the delegation, so every gateway uses the same
 * one. Its prefix distinguishes it from a client's own message.
 */
import { createHash } from "node:crypto";
import type { AgUiMessage, RunAgentInput } from "../../schema/ag-ui-input.ts";

const FROM_BROKER = /^(dlg_[0-9a-z]{1,3}_[0-9a-z]{26})\//;

export const messageIdOf = (delegation: string, messageId: string): string =>
  `${delegation}/message/${messageId}`;
export const artifactMessageId = (delegation: string, artifactId: string): string =>
  `${delegation}/artifact/${artifactId}`;
export const replyId = (delegation: string): string => `${delegation}/reply`;
export const activityId = (delegation: string): string => `${delegation}/progress`;

export type UserMessage = Extract<AgUiMessage, { role: "user" }>;

/** The delegation of the last user message, if the client has that message from the broker. */
export const shownIn = ({ messages }: Pick<RunAgentInput, "messages">): string | undefined =>
  FROM_BROKER.exec(messages.findLast(({ role }) => role === "user")?.id ?? "")?.[1];

/** The user's newest message that did not come from the broker. */
export function taskOf({ messages }: Pick<RunAgentInput, "messages">): UserMessage | undefined {
  return messages.findLast(
    (message): message is UserMessage => message.role === "user" && !FROM_BROKER.test(message.id),
  );
}

/** The idempotency key of the work that a message asks for. */
export function keyOf(agent: string, thread: string, message: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([agent, thread, message]))
    .digest("base64url");
  return `ag-ui:${hash}`;
}

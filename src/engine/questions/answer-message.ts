/** The metadata of answers, and the messages that reach an agent. Limit: only the broker sets this metadata. */
import { randomUUID } from "node:crypto";
import type { Message } from "../../schema/a2a.ts";

/** Metadata that names the question that a message answers; only the broker sets it. */
const QUESTION_METADATA = ["interrupt_id", "request_id", "decision"] as const;
/** All metadata of answers that only the broker sets. */
export const ANSWER_METADATA: readonly string[] = [
  ...QUESTION_METADATA,
  "by",
  "auto",
  "rule",
  "vote",
  "at",
  "redacted",
];

export function withoutAnswerMetadata(
  metadata: Record<string, unknown> | undefined,
  names: readonly string[] = QUESTION_METADATA,
): Record<string, unknown> | undefined {
  if (metadata === undefined) return undefined;
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !names.includes(name)));
}

/** A message to the agent: with an id, and always with the user's role. */
export const toUserMessage = (
  sent: { readonly messageId?: string | undefined; readonly parts: Message["parts"] } & Record<
    string,
    unknown
  >,
): Message => ({ ...sent, messageId: sent.messageId ?? randomUUID(), role: "ROLE_USER" });

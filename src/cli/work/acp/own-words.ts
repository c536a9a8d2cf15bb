/**
 * Errors and notices that an agent sends as if its model had said them. They are known by the agent's name and a whole
 * message. Limit: a model that sends exactly such a message as one piece is taken for the agent; its turn then
 * fails instead of counting as done.
 */
import type { Update } from "./schemas.ts";

type Chunk = Extract<Update, { sessionUpdate: "agent_message_chunk" }>;

export type OwnWords =
  | { readonly kind: "failed"; readonly words: string }
  /** It ended the turn because a tool was denied. */
  | { readonly kind: "canceled" };

/** By the name in `agentInfo`. */
const AGENTS: Readonly<Record<string, { readonly failed: RegExp; readonly canceled: RegExp }>> = {
  Copilot: { failed: /^Error: \S/, canceled: /^Info: Operation cancelled by user$/ },
};

export function ownWords(
  agent: string | null | undefined,
  { content, messageId }: Chunk,
): OwnWords | undefined {
  const known = agent == null ? undefined : AGENTS[agent];
  const text = content.text?.trim() ?? "";
  if (known === undefined || messageId != null) return undefined;
  if (known.canceled.test(text)) return { kind: "canceled" };
  return known.failed.test(text) ? { kind: "failed", words: text } : undefined;
}

/**
 * The answer of a turn: what the agent said after its last tool call. Limit: an agent that says nothing after it has no
 * answer.
 */
import type { Update } from "./schemas.ts";

type Chunk = Extract<Update, { sessionUpdate: "agent_message_chunk" }>;

/** The answer of a delegation may be an artifact of 3 MiB. */
const MAX = 4 * 1024 * 1024;

export class AnswerText {
  /** By the id of the message. */
  #messages = new Map<string, string>();
  #length = 0;
  /** Agents that number their messages print warnings as messages without a number. */
  #hasIds = false;

  add({ content, messageId, _meta }: Chunk): void {
    if (content.type !== "text" || isInformational(_meta)) return;
    if (messageId != null) {
      if (!this.#hasIds) this.#messages.delete("");
      this.#hasIds = true;
    } else if (this.#hasIds) return;
    const text = content.text ?? "";
    this.#length += text.length;
    if (this.#length > MAX) return;
    const id = messageId ?? "";
    this.#messages.set(id, (this.#messages.get(id) ?? "") + text);
  }

  /** A tool call, or a new turn, begins. */
  restart(): void {
    this.#messages = new Map();
    this.#length = 0;
  }

  get text(): string {
    return [...this.#messages.values()].filter((one) => one.trim() !== "").join("\n\n");
  }
}

/** Claude's adapter marks its own warnings. */
function isInformational(meta: Chunk["_meta"]): boolean {
  const vendor = meta?.claudeCode;
  return typeof vendor === "object" && vendor !== null && "kind" in vendor && vendor.kind === "informational";
}

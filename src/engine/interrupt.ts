/**
 * Raising a question: the lease ends, the delegation is parked until somebody answers. Limit: answering is not a
 * part of this yet; an unanswered question expires.
 */
import { createHash } from "node:crypto";
import type { StoredDelegation } from "../lifecycle/record.ts";
import type { Outcome } from "../lifecycle/writer.ts";
import type { Message } from "../schema/a2a.ts";
import type { Broker } from "./context.ts";

export interface Question {
  readonly kind: "input" | "auth";
  /** What is needed; an agent that does not say so still interrupts. */
  readonly message?: Message | undefined;
}

const FALLBACK = {
  input: "The agent needs input to go on, and did not say what.",
  auth: "The agent needs a credential to go on, and did not say which.",
} as const;

const hash = (...parts: readonly string[]): string =>
  createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 32);

/** The same question of the same delegation has the same id, however often it is asked. */
export const interruptIdOf = (delegationId: string, requestIds: readonly string[]): string =>
  `int_${hash(delegationId, ...requestIds)}`;

export async function raise(
  broker: Broker,
  id: string,
  holder: { readonly fence: number; readonly agent?: string },
  question: Question,
  replyHash: string,
): Promise<{ outcome: Outcome; record: StoredDelegation | null }> {
  const message: Message = question.message ?? {
    messageId: `msg_${hash(id, String(holder.fence))}`,
    role: "ROLE_AGENT",
    parts: [{ text: FALLBACK[question.kind] }],
  };
  const request_id = message.messageId;
  const interrupt = {
    id: interruptIdOf(id, [request_id]),
    kind: question.kind,
    requests: [{ request_id, message }],
  };
  const json = JSON.stringify(interrupt);
  return broker.writer.move({
    move: "interrupt",
    id,
    params: {
      ...holder,
      to: question.kind === "input" ? "input_required" : "auth_required",
      interrupt_id: interrupt.id,
      interrupt: json,
      reply_hash: replyHash,
    },
    push: { list: "history", values: [JSON.stringify(message)] },
    read: true,
  });
}

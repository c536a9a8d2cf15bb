/**
 * What a handler asks, and what it was answered. Limit: shapes, and how they look on the wire; raising a question is
 * the asker's.
 */
import { type Message, type MessageInput, textOf } from "../schema/a2a.ts";
import type { InterruptInput } from "../schema/interrupt.ts";
import type { Ordinals } from "./hash.ts";

/** One thing that is asked; without any words there is still a question, a plain one. */
export interface Question {
  /** The words; this or `message`. */
  readonly text?: string | undefined;
  /** An A2A Message with more than words. */
  readonly message?: MessageInput | undefined;
  /**
   * What its answer is found by when the handler runs again. Default: derived from the words, and from how often the
   * same words were asked before in this run; give one for words that change from run to run.
   */
  readonly requestId?: string | undefined;
  /** The choices, any JSON each. Answers are not checked against them. */
  readonly options?: readonly unknown[] | undefined;
  /** The JSON Schema that the answer's `data` should fit. Answers are not checked against it. */
  readonly schema?: unknown;
}

export interface AskOptions {
  /** Default `input`; `auth` asks for a credential or consent (`auth_required`). */
  readonly kind?: "input" | "auth" | undefined;
  /**
   * Unanswered for so long, the delegation fails (`interrupt_expired`). Default: the agent's setting, 24 h. A question
   * never stays open past the delegation's deadline.
   */
  readonly expiresInSeconds?: number | undefined;
}

/** What somebody answered to one request. */
export interface Answered {
  readonly requestId: string;
  readonly interruptId: string;
  /** Given by `approve` and `deny`. */
  readonly decision: "approve" | "deny" | undefined;
  /** The words of the answer; empty when there are none, as with a bare decision. */
  readonly text: string;
  /** The answer's data, any JSON. */
  readonly data: unknown;
  /** The principal that answered, such as `approver:ann`. */
  readonly by: string | undefined;
  /** When, an ISO 8601 instant. */
  readonly at: string | undefined;
  /** True when the content is hidden: only the holder of the lease sees the answer to an `auth` question. */
  readonly redacted: boolean;
  /** The answer as it stands in the history. */
  readonly message: Message;
}

/** The answers to several, in the order of asking. */
export type AnsweredAll<Q extends readonly unknown[]> = { readonly [Place in keyof Q]: Answered };

/** What a handler returns to ask; made by {@link Work.question}. */
export class Asking {
  readonly kind: "input" | "auth";
  readonly #interrupt: InterruptInput;

  constructor(interrupt: InterruptInput) {
    this.kind = interrupt.kind;
    this.#interrupt = interrupt;
  }

  /** As it goes to the broker. */
  static interruptOf(asking: Asking): InterruptInput {
    return asking.#interrupt;
  }
}

/** `ordinals` names what has no name, so that a later run asks under the same one. */
export function toInterrupt(
  asked: readonly (string | Question)[],
  { kind = "input", expiresInSeconds }: AskOptions,
  ordinals?: Ordinals,
): InterruptInput {
  const requests = asked.map((one) => {
    const { text, message, requestId, options, schema } = typeof one === "string" ? { text: one } : one;
    const words = () => JSON.stringify([kind, message?.parts ?? text ?? ""]);
    const request_id = requestId ?? message?.messageId ?? (ordinals && `ask_${ordinals.name(words())}`);
    return {
      ...(request_id !== undefined && { request_id }),
      ...(text !== undefined && { text }),
      ...(message !== undefined && { message }),
      ...(options !== undefined && { options: [...options] }),
      ...(schema !== undefined && { schema }),
    };
  });
  return {
    kind,
    requests,
    ...(expiresInSeconds !== undefined && { expires_in_seconds: expiresInSeconds }),
  };
}

export function toAnswered(interruptId: string, requestId: string, message: Message): Answered {
  const { decision: said, by, at, redacted } = message.metadata ?? {};
  const decision = said === "approve" || said === "deny" ? said : undefined;
  const data = message.parts.findLast((part) => "data" in part)?.data;
  return {
    requestId,
    interruptId,
    decision,
    text: textOf(message),
    data,
    by: typeof by === "string" ? by : undefined,
    at: typeof at === "string" ? at : undefined,
    redacted: redacted === true,
    message,
  };
}

/** What was answered so far, by request id, the newest last. */
export function answersIn(history: readonly Message[]): Map<string, Answered> {
  const answers = new Map<string, Answered>();
  for (const message of history) {
    const { interrupt_id, request_id } = message.metadata ?? {};
    if (message.role !== "ROLE_USER" || typeof interrupt_id !== "string") continue;
    if (typeof request_id !== "string") continue;
    answers.delete(request_id);
    answers.set(request_id, toAnswered(interrupt_id, request_id, message));
  }
  return answers;
}

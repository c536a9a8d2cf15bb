/** The types of a handler's questions and their answers, and their form on the wire. asker.ts sends them. */
import { type Message, type MessageInput, textOf } from "../schema/a2a.ts";
import type { Action } from "../schema/delegation.ts";
import type { InterruptInput } from "../schema/interrupt.ts";
import type { Ordinals } from "./hash.ts";
import { isTyped, jsonSchemaOf, type TypedSchema, validated } from "./typed-schema.ts";

/** One request of a question. All members are optional; a question may have no text. */
export interface Question {
  /** The text; either this or `message`. */
  readonly text?: string | undefined;
  /** An A2A Message, for more than a text. */
  readonly message?: MessageInput | undefined;
  /**
   * The id by which the handler finds the answer when it runs again. Default: derived from the text and the action, and
   * from how often the same was asked before in this run. Set it if the text changes from run to run; if the action may
   * change, too, it must be part of the id.
   */
  readonly requestId?: string | undefined;
  /**
   * The choices, any JSON each; an answer has one of them: `approve` and `deny` as its decision, another string as its
   * text, anything else as its data.
   */
  readonly options?: readonly unknown[] | undefined;
  /**
   * What the answer's `data` fits: a schema of zod 4 or of another library with Standard Schema, which also gives `data`
   * its type, or a JSON Schema (2020-12); both without patterns. With `options`, an answer has one of them or such data.
   * With an `action`, it is the schema of edited arguments.
   */
  readonly schema?: unknown;
  /** The action that the handler takes if the decision is `approve`. Without `options`, an answer has a decision. */
  readonly action?: ProposedAction | undefined;
  /** With `action`: an answer that approves may have `data`, which replaces the arguments. */
  readonly edit?: boolean | undefined;
}

/** An action for which a question asks approval. */
export interface ProposedAction {
  readonly name: string;
  /** Default: `{}`. */
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

export interface AskOptions {
  /**
   * How long the handler waits for the answer with its lease. After this time the delegation is parked, and the answer
   * starts the handler again. Default 0. Only `ask` and `askAll` wait.
   */
  readonly holdSeconds?: number | undefined;
  /**
   * For how long after the answer only this worker gets the parked delegation, 0 to 3600, default 0: for a worker that keeps
   * something of the conversation. After this time, any worker of the agent may have it.
   */
  readonly stickySeconds?: number | undefined;
  /** Default `input`; `auth` asks for a credential or consent (`auth_required`). */
  readonly kind?: "input" | "auth" | undefined;
  /**
   * Without an answer for this long, the delegation fails (`interrupt_expired`). Default: the agent's setting, 24 h.
   * The delegation's deadline also ends a question.
   */
  readonly expiresInSeconds?: number | undefined;
}

/** The type of an answer's `data`, by the question. */
export type DataFor<Q> = Q extends { readonly schema: TypedSchema<infer T> }
  ? Q extends { readonly options: readonly unknown[] } | { readonly action: ProposedAction }
    ? T | undefined
    : T
  : unknown;

/** A question with the options of its `ask`. */
export type AskedQuestion = Question & AskOptions;

/** What the second argument of `ask` adds to a question. */
export type MoreOfQuestion = Omit<Question, "text" | "message"> & AskOptions;

/** The type of the answer's `data`, by both arguments of `ask`. */
export type DataOfAsk<Q, More> = Q extends string ? DataFor<More> : DataFor<Q & More>;

/** The answer to one request. */
export interface Answered<T = unknown> {
  readonly requestId: string;
  readonly interruptId: string;
  /** Given by `approve` and `deny`. */
  readonly decision: "approve" | "deny" | undefined;
  /** The text of the answer; empty if it has none, for example only a decision. */
  readonly text: string;
  /**
   * The answer's data; the edited arguments, if the question proposes an action. Any JSON, unless the question has a typed
   * schema: then what that returned for it.
   */
  readonly data: T;
  /** The principal that answered, such as `approver:ann`. */
  readonly by: string | undefined;
  /** When it was answered, as an ISO 8601 instant. */
  readonly at: string | undefined;
  /** True when the content is hidden: only the holder of the lease sees the answer to an `auth` question. */
  readonly redacted: boolean;
  /** The answer as it is in the history. */
  readonly message: Message;
}

/** The answers to several requests, in the order in which they were asked. */
export type AnsweredAll<Q extends readonly unknown[]> = {
  readonly [Place in keyof Q]: Answered<DataFor<Q[Place]>>;
};

/** A handler returns this to ask a question; {@link Work.question} creates it. */
export class QuestionOutcome {
  readonly kind: "input" | "auth";
  readonly #interrupt: InterruptInput;

  constructor(interrupt: InterruptInput) {
    this.kind = interrupt.kind;
    this.#interrupt = interrupt;
  }

  /** The body that is sent to the broker. */
  static interruptOf(asking: QuestionOutcome): InterruptInput {
    return asking.#interrupt;
  }
}

/** `ordinals` derives ids for requests without one; a later run derives the same ids. */
export function toInterrupt(
  asked: readonly (string | Question)[],
  { kind = "input", expiresInSeconds, stickySeconds }: AskOptions,
  ordinals?: Ordinals,
): InterruptInput {
  const requests = asked.map((one) => {
    const { text, message, requestId, options, schema, action, edit } =
      typeof one === "string" ? { text: one } : one;
    const proposed: Action | undefined = action && { name: action.name, arguments: { ...action.arguments } };
    // Another action is another question: the approval of one must not be the answer for the other.
    const content = () =>
      JSON.stringify([kind, message?.parts ?? text ?? "", ...(proposed ? [proposed] : [])]);
    const request_id = requestId ?? message?.messageId ?? (ordinals && `ask_${ordinals.name(content())}`);
    return {
      ...(request_id !== undefined && { request_id }),
      ...(text !== undefined && { text }),
      ...(message !== undefined && { message }),
      ...(options !== undefined && { options: [...options] }),
      ...(schema !== undefined && { schema: jsonSchemaOf(schema) }),
      ...(proposed && { action: proposed }),
      ...(edit !== undefined && { edit }),
    };
  });
  return {
    kind,
    requests,
    ...(expiresInSeconds !== undefined && { expires_in_seconds: expiresInSeconds }),
    ...(stickySeconds && { sticky_seconds: stickySeconds }),
  };
}

export function toAnswered(interruptId: string, requestId: string, message: Message): Answered {
  const { decision: given, by, at, redacted } = message.metadata ?? {};
  const decision = given === "approve" || given === "deny" ? given : undefined;
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

/** The answers so far, by request id, the newest last. */
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

/** The answer with its data as the question's typed schema returns it. Rejects if it refuses the data. */
export async function typed(asked: string | Question | undefined, answer: Answered): Promise<Answered> {
  if (typeof asked !== "object" || !isTyped(asked.schema) || answer.redacted) return answer;
  const mayBeBare = asked.options !== undefined || asked.action !== undefined;
  if (answer.data === undefined && mayBeBare) return answer;
  const what = `the answer to the request '${answer.requestId}' does not fit`;
  return { ...answer, data: await validated(asked.schema, answer.data, what) };
}

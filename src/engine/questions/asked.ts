/** What is asked: its requests with their ids, and the ids of the question. */
import { type Artifact, type Message, withoutLease } from "../../schema/a2a.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { QuestionInput } from "../../schema/interrupt.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { withoutAnswerMetadata } from "./answer-message.ts";
import { isApproveOrDeny } from "./approved-in-advance.ts";
import { hash } from "./hash.ts";

type Kind = "input" | "auth";

export interface Question {
  readonly kind: Kind;
  readonly requests: readonly QuestionInput[];
  readonly expires_ms?: number | undefined;
  /** The lease does not end. */
  readonly hold?: boolean | undefined;
  /** For so long, the answer is only for the worker that asks. */
  readonly sticky_ms?: number | undefined;
  /** Artifacts that belong to the question. */
  readonly artifacts?: readonly Artifact[] | undefined;
  /** As stored; see {@link checkpointText}. */
  readonly checkpoint?: string | undefined;
}

const FALLBACK: Record<Kind, string> = {
  input: "The agent needs input to continue, but did not say which.",
  auth: "The agent needs a credential to continue, but did not say which.",
};

export type Asked = Pick<Interrupt, "kind" | "requests">;

/** Its requests. `answered`: how many questions of the delegation are answered. */
export function askedOf(
  delegationId: string,
  { kind, requests: given }: Pick<Question, "kind" | "requests">,
  answered: number,
): Asked {
  const isNamed = given.every((one) => one.request_id ?? one.message?.messageId);
  const requests = given.map((one, index) =>
    toRequest(kind, one, [delegationId, kind, isNamed ? 0 : answered, index].join("\n")),
  );
  requireDistinct(requests.map(({ request_id }) => request_id));
  return { kind, requests };
}

/**
 * A request with its id: the agent's request_id, or its message's id, or a hash. The hash includes the number of
 * answered questions, so that the agent can ask with the same words again later, and the proposed action, so that the
 * approval of one is never the answer for another.
 */
function toRequest(kind: Kind, asked: QuestionInput, salt: string) {
  const { request_id, text, message, options, schema, action, edit } = asked;
  const fallback = action ? `May I do this: ${action.name}?` : FALLBACK[kind];
  const sent = withoutLease(message ?? { parts: [{ text: text ?? fallback }] });
  const content = [JSON.stringify(sent.parts), ...(action ? [bodyHash(action)] : [])];
  const id = request_id ?? sent.messageId ?? `req_${hash(salt, ...content)}`;
  // Without metadata that would make it look like an answer in the history.
  const metadata = withoutAnswerMetadata(sent.metadata);
  const question: Message = {
    ...sent,
    messageId: sent.messageId ?? `msg_${hash(salt, id)}`,
    role: "ROLE_AGENT",
    ...(metadata && { metadata }),
  };
  return {
    request_id: id,
    message: question,
    ...(options !== undefined && { options }),
    ...(schema !== undefined && { schema }),
    ...(action !== undefined && { action }),
    ...(edit !== undefined && { edit }),
  };
}

function requireDistinct(ids: readonly string[]): void {
  if (new Set(ids).size === ids.length) return;
  throw new ErrandError("invalid_request", "Two requests of the question have the same id.", {
    details: { issues: [{ path: "requests", reason: "each request_id, or messageId, must be unique" }] },
  });
}

/** The ids of a question: approvals in advance are stored under `plainId`, and people answer `idForPerson`. */
export interface QuestionIds {
  readonly plainId: string;
  readonly idForPerson: string;
}

export function idsOf(delegationId: string, asked: Asked, hasAutoApprove: boolean): QuestionIds {
  const plainId = interruptIdOf(delegationId, asked, hasAutoApprove);
  const personalId = hasAutoApprove ? personalIdOf(plainId, asked) : undefined;
  return { plainId, idForPerson: personalId ?? plainId };
}

/**
 * Derived from the requests, so that asking the same question again is idempotent. It includes what an approval in advance
 * depends on: the proposed actions, whether it asks for a credential and, if this delegation has such approvals
 * (`hasAutoApprove`), whether it asks for a decision. So an approval is never the answer to another question, even if the
 * agent gives both the same request_id. The text is not included: a worker that starts over may choose other words.
 */
function interruptIdOf(delegationId: string, { kind, requests }: Asked, hasAutoApprove: boolean): string {
  const asked = requests.map((request) => {
    const { request_id, action } = request;
    if (action) return [request_id, bodyHash(action)];
    return hasAutoApprove && isApproveOrDeny(request) ? [request_id, "decision"] : request_id;
  });
  return `int_${hash(delegationId, ...(kind === "auth" ? [kind] : []), JSON.stringify(asked))}`;
}

/**
 * The id of the same question where a person answers it, so that no approval in advance that is stored under the first id
 * does. Undefined if it can have none: such a question has one id.
 */
const personalIdOf = (interruptId: string, { kind, requests }: Asked): string | undefined =>
  kind === "input" && requests.every((request) => request.action !== undefined || isApproveOrDeny(request))
    ? `int_${hash(interruptId, "person")}`
    : undefined;

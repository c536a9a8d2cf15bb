/**
 * Asks a question: the delegation waits for the answer, and the lease ends, unless the question is held. Limit: it fails
 * when the question expires.
 */

import type { Command } from "../../lifecycle/command.ts";
import type { Outcome } from "../../lifecycle/outcome.ts";
import { ASKED } from "../../lifecycle/states.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { leaseIdOf } from "../../redis/shards.ts";
import { type Artifact, type Message, withoutLease } from "../../schema/a2a.ts";
import { approveSomething } from "../../schema/ballot.ts";
import { asksForApproval } from "../../schema/counted-votes.ts";
import type { Interrupt, State } from "../../schema/delegation.ts";
import { ErrandError } from "../../schema/errors.ts";
import {
  givenAnswersSchema,
  type InterruptRequest,
  type InterruptResult,
  type QuestionInput,
} from "../../schema/interrupt.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Broker, Reads } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { asHolder } from "../leases/as-holder.ts";
import { checkpointText } from "../leases/heartbeat.ts";
import { holderOf } from "../leases/holder.ts";
import { approvalTerms } from "./allowed-approval.ts";
import { withoutAnswerMetadata } from "./answer-message.ts";
import { APPROVAL, autoApproveOf, isApprovedInAdvance, isApproveOrDeny } from "./approved-in-advance.ts";
import type { Audits } from "./audit-decisions.ts";
import { hash } from "./hash.ts";
import { auditRules, type Given, NO_STANDING, standingAnswers } from "./standing-answers.ts";
import { castVotes, givingCommand } from "./standing-votes.ts";
import { countsAtOnce, votesOf } from "./votes.ts";

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

type Asked = Pick<Interrupt, "kind" | "requests">;

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

const bytesOf = (value: unknown): number =>
  value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));

function requireDistinct(ids: readonly string[]): void {
  if (new Set(ids).size === ids.length) return;
  throw new ErrandError("invalid_request", "Two requests of the question have the same id.", {
    details: { issues: [{ path: "requests", reason: "each request_id, or messageId, must be unique" }] },
  });
}

/** How often a question is compared again because its rules or `votes` change meanwhile; then a person is asked. */
const MAX_ROUNDS = 5;

/** To ask a question. */
export type Asks = Reads & Audits & Pick<Broker, "writer" | "rules" | "tokens">;
interface Raised {
  readonly interrupt_id: string;
  readonly outcome: Outcome;
  readonly record: StoredDelegation | null;
}

/** Makes the move only; the caller calls `afterMove`. `by` identifies the holder of the lease for the script. */
export async function askMove(
  broker: Asks,
  id: string,
  by: { readonly fence: number; readonly agent?: string },
  question: Question,
  reply_hash: string,
): Promise<Raised> {
  const { kind } = question;
  const artifacts = (question.artifacts ?? []).map(withoutLease);
  const isNamed = question.requests.every((one) => one.request_id ?? one.message?.messageId);
  const before = await readRecord(broker.redis, broker.shards, id);
  const answered = isNamed ? 0 : (before?.get("answered") ?? 0);
  const requests = question.requests.map((one, index) =>
    toRequest(kind, one, [id, kind, answered, index].join("\n")),
  );
  requireDistinct(requests.map(({ request_id }) => request_id));
  const asked = { kind, requests };
  const hasAutoApprove = (before?.get("auto_approve") ?? null) !== null;
  const plainId = interruptIdOf(id, asked, hasAutoApprove);
  const personalId = hasAutoApprove ? personalIdOf(plainId, asked) : undefined;
  const idForPerson = personalId ?? plainId;
  // Only shown to people, so the cached setting is good enough.
  const votes_needed = asksForApproval(asked)
    ? (await votesOf(broker, before?.get("target") ?? ""))?.needed
    : undefined;
  const commandFor = (interrupt_id: string, params: Command["params"]): Command => ({
    move: question.hold ? "hold" : "interrupt",
    id,
    params: {
      ...by,
      to: kind === "input" ? "input_required" : "auth_required",
      interrupt_id,
      interrupt: JSON.stringify({ id: interrupt_id, kind, requests }),
      interrupt_ttl_ms: question.expires_ms,
      sticky_ms: question.sticky_ms || undefined,
      votes_needed,
      reply_hash,
      ...params,
    },
    fields: { checkpoint: question.checkpoint },
    history: requests.map(({ message }) => JSON.stringify(message)),
    bytes: requests.reduce(
      (sum, { options, schema, action }) => sum + bytesOf(options) + bytesOf(schema) + bytesOf(action),
      0,
    ),
    artifacts: artifacts.map((artifact) => ({ artifact })),
    shows: "artifacts",
    read: true,
  });
  // The held question is asked again. No rule answered it the first time, so a person does.
  if (before?.get("interrupt")?.startsWith(JSON.stringify({ id: idForPerson }).slice(0, -1)))
    return { interrupt_id: idForPerson, ...(await broker.writer.move(commandFor(idForPerson, {}))) };
  for (let round = 1; ; round += 1) {
    const standing = before ? await standingAnswers(broker, before, asked, plainId) : NO_STANDING;
    // Read once: the id and the approval must not depend on two states of the setting.
    const terms =
      standing.terms ??
      (hasAutoApprove ? await approvalTerms(broker, before?.get("target") ?? "") : undefined);
    const { isAllowed = false, votes = null } = terms ?? {};
    const setting = before && isAllowed && standing.allowsOthers ? autoApproveOf(before) : null;
    const isApproved =
      setting !== null &&
      isApprovedInAdvance(setting, asked) &&
      countsAtOnce(votes, before?.get("delegator") ?? "", before?.get("delegator") ?? "");
    // A person's earlier answer counts, even if the question would be approved in advance now.
    const earlier = [...standing.earlierIds, ...(isApproved ? [plainId] : [])];
    const answered_as = earlier.length > 0 ? [idForPerson, ...earlier] : undefined;
    const askPerson = async (): Promise<Raised> => ({
      interrupt_id: idForPerson,
      ...(await broker.writer.move(commandFor(idForPerson, { answered_as }))),
    });
    const given = isApproved && before ? approvalOf(before, asked) : standing.given;
    if (!before || !given || round > MAX_ROUNDS) return askPerson();
    const { rules_seen } = standing;
    const standingOn = (interrupt_id: string) => ({
      ...{ id, votes, rules_seen },
      open: { id: interrupt_id, ...asked },
    });
    if (votes !== null && votes.needed > 1 && approveSomething({ id: plainId, ...asked }, given.inputs)) {
      const raised = await askPerson();
      if (raised.outcome.kind !== "ok" && raised.outcome.kind !== "duplicate") return raised;
      const ofRules = isApproved && standing.given ? [standing.given] : [];
      const givens = [given, ...ofRules, ...standing.others];
      const voted = await castVotes(broker, before, standingOn(idForPerson), givens);
      return { ...raised, ...voted };
    }
    const interrupt_id = isApproved ? plainId : (standing.given?.interrupt_id ?? plainId);
    const at = standingOn(interrupt_id);
    const answering = givingCommand(at, given);
    const asking = commandFor(interrupt_id, {
      ...{ answered_as, auto: true, rules_seen, rules: given.rules },
      votes_seen: answering.params?.votes_seen,
    });
    // Asks and answers in one step, so that the question is never open and nobody is notified.
    const both = await broker.writer.moveBoth({ ...asking, event: { auto: "true" } }, answering);
    if (both === null) return askPerson();
    const { first, second } = both;
    if (first.outcome.kind === "rules_changed" || first.outcome.kind === "votes_changed") continue;
    const { kind: result } = first.outcome;
    // If the answer failed, now or at an earlier request, people are asked (`ask_people`), but their answer would be the same
    // move. So it is tried again; if that throws, this request fails, and a repeat of it tries once more.
    const isTried = second === null && (result === "ok" || result === "duplicate");
    const again = isTried ? await broker.writer.move(answering) : second;
    const isAnswered = again?.outcome.kind === "ok";
    if (isAnswered) await auditRules(broker, before, given, at.open);
    return { interrupt_id, ...(isAnswered ? again : first) };
  }
}

/** What the delegator approved with the task, as the answer. */
const approvalOf = (record: StoredDelegation, { requests }: Asked): Given => ({
  inputs: requests.map(({ request_id }) => [request_id, APPROVAL] as const),
  author: { by: record.get("delegator"), via: "auto", auto: true },
});

/**
 * Asks a question and ends the lease; with `hold` the lease stays. If it was answered before, returns its answers, and the
 * lease stays. Asked again with `hold`, it returns the answers or `held_until`; asked again without, it parks the delegation.
 */
export async function ask(
  broker: Moves & NamesFiles & Asks,
  principal: Principal,
  leaseId: string,
  { kind, requests, expires_in_seconds, sticky_seconds, checkpoint, hold, ...single }: InterruptRequest,
): Promise<InterruptResult> {
  const { id, params } = holderOf(principal, leaseId);
  const given = requests ?? [single];
  const asking = await Promise.all(
    given.map(async (one) =>
      one.message ? { ...one, message: await nameFilesOf(broker, principal, id, one.message, params) } : one,
    ),
  );
  const question = {
    kind,
    requests: asking,
    expires_ms: expires_in_seconds === undefined ? undefined : Math.round(expires_in_seconds * 1000),
    sticky_ms: Math.round((sticky_seconds ?? 0) * 1000),
    checkpoint: checkpointText(checkpoint),
    hold,
  };
  const asked = bodyHash({ kind, requests: given });
  const move = () => asHolder(broker, id, params, () => askMove(broker, id, params, question, asked));
  let { interrupt_id, outcome } = await move();
  if (outcome.kind === "ok") await afterMove(broker, id, outcome);
  // It is held, and was approved in advance.
  if (outcome.kind === "ok" && outcome.move === "hand_over") ({ interrupt_id, outcome } = await move());
  const held = ({
    state,
    lease_expires_at: until,
  }: {
    state: State;
    lease_expires_at?: number | undefined;
  }) => until !== undefined && ASKED.includes(state) && { held_until: toInstant(until) };
  switch (outcome.kind) {
    case "ok":
      return { interrupt_id, ...held(outcome) };
    case "duplicate":
      return {
        interrupt_id: outcome.interrupt_id ?? interrupt_id,
        ...held(outcome),
      };
    case "answered":
      return {
        interrupt_id: outcome.interrupt_id,
        answers: givenAnswersSchema.parse(JSON.parse(outcome.answers)),
      };
    default:
      throw refusal(outcome, id, leaseIdOf(id, params.fence));
  }
}

/**
 * The move that asks a question: of people, or with the answer that was given in advance, so that it is never open.
 */
import type { Command } from "../../lifecycle/command.ts";
import type { Outcome } from "../../lifecycle/outcome.ts";
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { withoutLease } from "../../schema/a2a.ts";
import { approveSomething } from "../../schema/ballot.ts";
import { asksForApproval } from "../../schema/counted-votes.ts";
import type { Broker, Reads } from "../broker.ts";
import { approvalTerms } from "./allowed-approval.ts";
import { APPROVAL, autoApproveOf, isApprovedInAdvance } from "./approved-in-advance.ts";
import { type Asked, askedOf, idsOf, type Question, type QuestionIds } from "./asked.ts";
import type { Audits } from "./audit-decisions.ts";
import { auditRules, type Given, NO_STANDING, standingAnswers } from "./standing-answers.ts";
import { castVotes, givingCommand } from "./standing-votes.ts";
import { countsAtOnce, votesOf } from "./votes.ts";

/** How often a question is compared again because its rules or `votes` change meanwhile; then a person is asked. */
const MAX_ROUNDS = 5;

/** To ask a question. */
export type Asks = Reads & Audits & Pick<Broker, "writer" | "rules" | "tokens">;
interface Raised {
  readonly interrupt_id: string;
  readonly outcome: Outcome;
  readonly record: StoredDelegation | null;
}

/** A question on its way: what is asked, of which delegation, and the command that asks it under one of its ids. */
interface Asking extends QuestionIds {
  readonly id: string;
  readonly before: StoredDelegation | null;
  readonly asked: Asked;
  readonly hasAutoApprove: boolean;
  readonly commandFor: (interrupt_id: string, params: Command["params"]) => Command;
}

/** Makes the move only; the caller calls `afterMove`. `by` identifies the holder of the lease for the script. */
export async function askMove(
  broker: Asks,
  id: string,
  by: { readonly fence: number; readonly agent?: string },
  question: Question,
  reply_hash: string,
): Promise<Raised> {
  const before = await readRecord(broker.redis, broker.shards, id);
  const asked = askedOf(id, question, before?.get("answered") ?? 0);
  const hasAutoApprove = (before?.get("auto_approve") ?? null) !== null;
  const ids = idsOf(id, asked, hasAutoApprove);
  // Only shown to people, so the cached setting is good enough.
  const votes_needed = asksForApproval(asked)
    ? (await votesOf(broker, before?.get("target") ?? ""))?.needed
    : undefined;
  const commandFor: Asking["commandFor"] = (interrupt_id, params) =>
    askCommand(id, question, asked, { ...by, interrupt_id, votes_needed, reply_hash, ...params });
  const asking = { id, ...ids, before, asked, hasAutoApprove, commandFor };
  // The held question is asked again. No rule answered it the first time, so a person does.
  if (before?.get("interrupt")?.startsWith(JSON.stringify({ id: ids.idForPerson }).slice(0, -1)))
    return askPerson(broker, asking, {});
  for (let round = 1; ; round += 1) {
    const raised = await raise(broker, asking, round > MAX_ROUNDS);
    if (raised) return raised;
  }
}

/** The command that asks it: the move `hold` or `interrupt`. */
function askCommand(
  id: string,
  question: Question,
  { kind, requests }: Asked,
  params: Command["params"] & { readonly interrupt_id: string },
): Command {
  const artifacts = (question.artifacts ?? []).map(withoutLease);
  return {
    move: question.hold ? "hold" : "interrupt",
    id,
    params: {
      to: kind === "input" ? "input_required" : "auth_required",
      interrupt: JSON.stringify({ id: params.interrupt_id, kind, requests }),
      interrupt_ttl_ms: question.expires_ms,
      sticky_ms: question.sticky_ms || undefined,
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
  };
}

const bytesOf = (value: unknown): number =>
  value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));

async function askPerson(
  broker: Asks,
  { idForPerson, commandFor }: Asking,
  params: Command["params"],
): Promise<Raised> {
  return { interrupt_id: idForPerson, ...(await broker.writer.move(commandFor(idForPerson, params))) };
}

/** Asks once. Undefined: its rules or `votes` changed meanwhile, so it is to be compared with them again. */
async function raise(broker: Asks, asking: Asking, isLast: boolean): Promise<Raised | undefined> {
  const { id, before, asked, plainId, idForPerson, commandFor } = asking;
  const { standing, votes, isApproved, given, answered_as } = await inAdvance(broker, asking);
  if (!before || !given || isLast) return askPerson(broker, asking, { answered_as });
  const { rules_seen } = standing;
  const standingOn = (interrupt_id: string) => ({
    ...{ id, votes, rules_seen },
    open: { id: interrupt_id, ...asked },
  });
  if (votes !== null && votes.needed > 1 && approveSomething({ id: plainId, ...asked }, given.inputs)) {
    const raised = await askPerson(broker, asking, { answered_as });
    if (raised.outcome.kind !== "ok" && raised.outcome.kind !== "duplicate") return raised;
    const ofRules = isApproved && standing.given ? [standing.given] : [];
    const givens = [given, ...ofRules, ...standing.others];
    const voted = await castVotes(broker, before, standingOn(idForPerson), givens);
    return { ...raised, ...voted };
  }
  const interrupt_id = isApproved ? plainId : (standing.given?.interrupt_id ?? plainId);
  const at = standingOn(interrupt_id);
  const answering = givingCommand(at, given);
  const command = commandFor(interrupt_id, {
    ...{ answered_as, auto: true, rules_seen, rules: given.rules },
    votes_seen: answering.params?.votes_seen,
  });
  // Asks and answers in one step, so that the question is never open and nobody is notified.
  const both = await broker.writer.moveBoth({ ...command, event: { auto: "true" } }, answering);
  if (both === null) return askPerson(broker, asking, { answered_as });
  const { first, second } = both;
  const { kind: result } = first.outcome;
  if (result === "rules_changed" || result === "votes_changed") return undefined;
  // If the answer failed, now or at an earlier request, people are asked (`ask_people`), but their answer would be the same
  // move. So it is tried again; if that throws, this request fails, and a repeat of it tries once more.
  const isTried = second === null && (result === "ok" || result === "duplicate");
  const again = isTried ? await broker.writer.move(answering) : second;
  const isAnswered = again?.outcome.kind === "ok";
  if (isAnswered) await auditRules(broker, before, given, at.open);
  return { interrupt_id, ...(isAnswered ? again : first) };
}

/** The answer that was given in advance, by the delegator or by rules, as they are now. */
async function inAdvance(broker: Asks, { before, asked, plainId, idForPerson, hasAutoApprove }: Asking) {
  const standing = before ? await standingAnswers(broker, before, asked, plainId) : NO_STANDING;
  // Read once: the id and the approval must not depend on two states of the setting.
  const terms =
    standing.terms ?? (hasAutoApprove ? await approvalTerms(broker, before?.get("target") ?? "") : undefined);
  const { isAllowed = false, votes = null } = terms ?? {};
  const setting = before && isAllowed && standing.allowsOthers ? autoApproveOf(before) : null;
  const delegator = before?.get("delegator") ?? "";
  const isApproved =
    setting !== null && isApprovedInAdvance(setting, asked) && countsAtOnce(votes, delegator, delegator);
  // A person's earlier answer counts, even if the question would be approved in advance now.
  const earlier = [...standing.earlierIds, ...(isApproved ? [plainId] : [])];
  return {
    ...{ standing, votes, isApproved },
    given: isApproved && before ? approvalOf(before, asked) : standing.given,
    answered_as: earlier.length > 0 ? [idForPerson, ...earlier] : undefined,
  };
}

/** What the delegator approved with the task, as the answer. */
const approvalOf = (record: StoredDelegation, { requests }: Asked): Given => ({
  inputs: requests.map(({ request_id }) => [request_id, APPROVAL] as const),
  author: { by: record.get("delegator"), via: "auto", auto: true },
});

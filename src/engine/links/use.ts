/**
 * Shows and answers the question of a link, in the name of the person that was notified. A link that is used, expired,
 * revoked or unknown, and one whose question is closed or has changed, are all refused in the same words; the audit log has
 * the reason. Limit: an unknown secret belongs to nobody, so it is counted and logged, and not in the audit log.
 */
import { readRecord, type StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { choicesOf } from "../../schema/choices.ts";
import type { Decision } from "../../schema/decision.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { ERRORS, ErrandError } from "../../schema/errors.ts";
import type { AnswerInput, AnswerRequest } from "../../schema/interrupt.ts";
import type { LinkAnswered, LinkQuestion } from "../../schema/link.ts";
import { canSee, mayControl, type Principal, toPrincipal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { openInterrupt, toDelegation } from "../delegations/parse.ts";
import { type Answers, answer } from "../questions/answer.ts";
import { requestOf } from "../questions/standing-answers.ts";
import { countsAt, hasApproved, votedOn } from "../subscriptions/approvers.ts";
import { audit } from "../upkeep/audit.ts";
import { digestOf, hasOtherVotes, linkAnswerOf, ONE_TAP } from "./fitting.ts";
import type { Link } from "./store.ts";

type Needs = Answers & Pick<Broker, "agents" | "links" | "metrics" | "subscriptions" | "tokens">;

interface Opened {
  readonly link: Link;
  readonly principal: Principal;
  readonly record: StoredDelegation;
  readonly delegation: Delegation;
  readonly interrupt: Interrupt;
}

export async function linkQuestion(broker: Needs, token: string): Promise<LinkQuestion> {
  const opened = await open(broker, token, await broker.links.find(token));
  const { principal, delegation, interrupt } = opened;
  const no_approval = await noApprovalOf(broker, opened);
  return {
    person: principal.text,
    agent: delegation.target,
    delegation_id: delegation.id,
    task_preview: delegation.task_preview,
    interrupt,
    answer: linkAnswerOf(interrupt),
    ...(no_approval && { no_approval }),
  };
}

/** Why the page offers no approval. The broker refuses one, too. */
async function noApprovalOf(
  broker: Needs,
  { principal, record, interrupt }: Opened,
): Promise<LinkQuestion["no_approval"]> {
  const voted = await votedOn(broker, record, interrupt);
  if (voted && !countsAt(voted, principal, await broker.subscriptions.store.now())) return "not_counted";
  if (voted && hasApproved(record, principal)) return "given";
  return hasOtherVotes(interrupt) ? "other_votes" : undefined;
}

export interface LinkAnswer {
  readonly decision?: Decision | undefined;
  readonly text?: string | undefined;
}

export async function answerByLink(broker: Needs, token: string, given: LinkAnswer): Promise<LinkAnswered> {
  const answered = JSON.stringify([given.decision, given.text]);
  const known = await broker.links.find(token);
  const repeated = known?.used === answered ? await repeat(broker, known) : null;
  if (repeated) return repeated;
  const { link, principal, delegation, interrupt } = await open(broker, token, known);
  const way = linkAnswerOf(interrupt);
  const fits =
    way === "decision"
      ? given.decision !== undefined
      : way === "text" &&
        (given.decision === undefined || choicesOf(interrupt.requests[0] ?? {}).includes(given.decision));
  if (!fits || (link.may !== "answer" && given.decision !== link.may)) throw doesNotFit(way);
  const request = toRequest(interrupt, given);
  const claim = await broker.links.claim(token, answered);
  if (claim.kind === "busy") throw busy();
  if (claim.kind === "used") throw refused();
  let record: StoredDelegation;
  try {
    record = await answer(broker, principal, delegation.id, request, { via: "link", key: token.slice(-22) });
  } catch (error) {
    if (error instanceof ErrandError && !ERRORS[error.code].retryable)
      await broker.links.release(token, claim);
    // Somebody else was faster.
    if (error instanceof ErrandError && error.code === "interrupt_not_open")
      throw await refuse(broker, token, { link, principal }, CLOSED);
    throw error;
  }
  await broker.links.mark(token, link, { used: answered });
  await broker.links.release(token, claim);
  broker.metrics.links.inc({ outcome: "answered" });
  const { decision } = given;
  await audit(broker, principal, "link.answer", delegation.id, {
    ...detailsOf(link),
    ...(decision !== undefined && { decision }),
  });
  return answeredAs(record, link);
}

/** Answers a repeated press, whose first response was lost. Null: the press was an approval that no longer counts. */
async function repeat(broker: Needs, link: Link): Promise<LinkAnswered | null> {
  const record = await readRecord(broker.redis, broker.shards, link.delegation);
  if (!record || openInterrupt(record)?.id !== link.question) return { delegation_id: link.delegation };
  return hasApproved(record, toPrincipal(link.person)) ? answeredAs(record, link) : null;
}

/** The outcome, with the approvals so far if the question needs more. */
function answeredAs(record: StoredDelegation, { question }: Link): LinkAnswered {
  const { interrupt } = toDelegation(record);
  const votes = interrupt?.id === question ? interrupt.votes : undefined;
  return {
    delegation_id: record.id,
    ...(votes && { votes: { needed: votes.needed, given: votes.given } }),
  };
}

const detailsOf = ({ subscription, channel, question, may }: Link) => ({
  ...{ interrupt_id: question, subscription, channel },
  ...(may !== "answer" && { button: may }),
});

const doesNotFit = (way: LinkQuestion["answer"]): ErrandError =>
  new ErrandError("forbidden", "The link may not answer the question in this way.", {
    recovery:
      way === "sign_in"
        ? "Sign in to answer it."
        : way === "decision"
          ? "Send the decision approve or deny."
          : "Send the answer as text.",
  });

/** The same for every request of the question. */
function toRequest({ id, requests }: Interrupt, { decision, text }: LinkAnswer): AnswerRequest {
  const input: AnswerInput = {
    ...(decision !== undefined && { decision }),
    ...(text !== undefined && { text }),
  };
  return requestOf(
    id,
    requests.map(({ request_id }) => [request_id, input]),
  );
}

async function open(broker: Needs, token: string, link: Link | null): Promise<Opened> {
  if (!link) {
    broker.metrics.links.inc({ outcome: "unknown" });
    broker.log.debug("an unknown link was used");
    throw refused();
  }
  const principal = toPrincipal(link.person);
  const found = await check(broker, link, principal);
  if (typeof found !== "string") return { link, principal, ...found };
  throw await refuse(broker, token, { link, principal }, found);
}

/** Counts and logs why a link is refused. Returns what is thrown, which does not say it. */
async function refuse(
  broker: Needs,
  token: string,
  { link, principal }: Pick<Opened, "link" | "principal">,
  reason: string,
): Promise<ErrandError> {
  broker.metrics.links.inc({ outcome: "refused" });
  // Not twice in a row for the same reason: a dead link must not fill the audit log.
  if (link.refused !== reason) {
    await broker.links.mark(token, link, { refused: reason });
    await audit(broker, principal, "link.refuse", link.delegation, { ...detailsOf(link), reason });
  }
  return refused();
}

const CLOSED = "its question is closed";

/** The link's question, or why the link answers nothing any more. */
async function check(
  broker: Needs,
  link: Link,
  principal: Principal,
): Promise<string | Pick<Opened, "record" | "delegation" | "interrupt">> {
  if (link.used !== undefined) return "it was used";
  const subscription = await broker.subscriptions.store.find(link.subscription);
  if (subscription?.owner !== link.person) return "its subscription was deleted";
  if (subscription.epoch !== link.epoch) return "its channel was replaced";
  if (!(await broker.tokens.isHolder(subscription.token))) return "its person has no valid token";
  const record = await readRecord(broker.redis, broker.shards, link.delegation);
  if (!record || openInterrupt(record)?.id !== link.question) return CLOSED;
  // Not from the cache: the operator may have just forbidden links.
  const agent = await broker.agents.read(record.get("target"));
  const notify = agent?.spec.notify;
  if (notify?.links !== "answer") return "the agent requires a sign-in";
  if (link.may !== "answer" && !ONE_TAP[notify.one_tap].includes(link.may))
    return "the agent allows no such button";
  if (!(await canSee(broker, principal, record)) || !mayControl(principal, record))
    return "its person may not answer it";
  const delegation = toDelegation(record);
  const { interrupt } = delegation;
  if (!interrupt || digestOf(interrupt) !== link.digest) return "its question is another";
  return { record, delegation, interrupt };
}

const busy = (): ErrandError =>
  new ErrandError("rate_limited", "Another answer by this link is being given.", { retry_after_seconds: 2 });

const refused = (): ErrandError =>
  new ErrandError("not_found", "The link is used, expired or unknown, or its question is closed.", {
    recovery: "Sign in to see what is still open.",
  });

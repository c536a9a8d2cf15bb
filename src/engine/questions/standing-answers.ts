/**
 * What the rules of an agent answer to a question. Limit: at most one command for an agent without rules; the script decides
 * whether what was read here still holds.
 */
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { matchesAction } from "../../schema/action-pattern.ts";
import type { Interrupt } from "../../schema/delegation.ts";
import type { AnswerRequest } from "../../schema/interrupt.ts";
import { personOf } from "../../schema/vote-text.ts";
import type { Votes } from "../../schema/votes.ts";
import { toPrincipal } from "../access/access.ts";
import type { Broker } from "../broker.ts";
import { chooseRules, isAboutActions, type Ruled } from "../rules/choose.ts";
import type { StoredRule } from "../rules/stored-rule.ts";
import { type ApprovalTerms, approvalTerms } from "./allowed-approval.ts";
import type { Author } from "./answer.ts";
import { type Audits, auditDecisions } from "./audit-decisions.ts";
import { hash } from "./hash.ts";
import type { Asked, Inputs } from "./shown-changes.ts";
import { countsAtOnce } from "./votes.ts";

/** An answer that the broker gives at once, in the name of its author. */
export interface Given {
  readonly inputs: Inputs;
  readonly author: Author;
  /** The scope and the id of the rule of each request. */
  readonly rules?: readonly string[];
}

interface Standing {
  readonly given: (Given & { readonly interrupt_id: string }) | null;
  /** The same approval by the rules of other people, as further votes. */
  readonly others: readonly Given[];
  /** Whether the question may be approved with the task: no rule denies it, or might. */
  readonly allowsOthers: boolean;
  /** What the agent's settings say of rules and approval in advance; undefined: not read. */
  readonly terms?: ApprovalTerms;
  /** The ids under which rules may have answered the same question before. */
  readonly earlierIds: readonly string[];
  /** The versions of the rules that were read; undefined: there are none. */
  readonly rules_seen?: readonly string[];
}
export const NO_STANDING: Standing = { given: null, others: [], allowsOthers: true, earlierIds: [] };

type Needs = Pick<Broker, "agents" | "rules" | "tokens">;

export async function standingAnswers(
  broker: Needs,
  record: StoredDelegation,
  asked: Pick<Interrupt, "kind" | "requests">,
  plainId: string,
): Promise<Standing> {
  if (!isAboutActions(asked)) return NO_STANDING;
  const { now, rules, seen, any } = await broker.rules.for(record.get("target"), record.get("delegator"));
  if (!any) return NO_STANDING;
  const terms = await approvalTerms(broker, record.get("target"));
  const { isAllowed, votes } = terms;
  if (!isAllowed) return { ...NO_STANDING, terms };
  const valid = (await withValidTokens(broker, rules, asked)).filter(
    ({ doc }) => doc.decision === "deny" || countsAtOnce(votes, doc.by, record.get("delegator")),
  );
  const choice = chooseRules(valid, asked, now);
  const [allowedId, deniedId] = [`int_${hash(plainId, "rule")}`, `int_${hash(plainId, "denied")}`];
  const denies = choice.kind === "person" || (choice.kind === "ruled" && choice.denies);
  return {
    given:
      choice.kind === "ruled"
        ? { ...givenBy(choice.answers), interrupt_id: denies ? deniedId : allowedId }
        : null,
    others: choice.kind === "ruled" && !denies ? othersOf(valid, asked, now, choice.answers, votes) : [],
    allowsOthers: !denies,
    terms,
    // An earlier approval does not count if a rule denies the question now.
    earlierIds: denies ? [deniedId] : [deniedId, allowedId],
    rules_seen: seen,
  };
}

/** An approval by each further person who has rules for the question, up to the number that the agent needs. */
function othersOf(
  rules: readonly StoredRule[],
  asked: Pick<Interrupt, "kind" | "requests">,
  now: number,
  first: readonly Ruled[],
  votes: Votes | null,
): readonly Given[] {
  const others: Given[] = [];
  let used = first;
  let left = rules;
  while (others.length + 1 < (votes?.needed ?? 1)) {
    const person = personOf(used[0]?.rule.doc.by ?? "");
    left = left.filter(({ doc }) => personOf(doc.by) !== person);
    const choice = chooseRules(left, asked, now);
    if (choice.kind !== "ruled") break;
    used = choice.answers;
    others.push(givenBy(used));
  }
  return others;
}

/**
 * A revocation of a token revokes its rules; this leaves out those of a token that has expired, of an operator's that was
 * replaced, and of one whose revocation was cut short. Reads each token once, and none if no rule is about these actions.
 */
async function withValidTokens(
  { tokens }: Pick<Broker, "tokens">,
  rules: readonly StoredRule[],
  asked: Pick<Interrupt, "kind" | "requests">,
): Promise<readonly StoredRule[]> {
  const names = asked.requests.flatMap(({ action }) => action?.name ?? []);
  const about = rules.filter(({ doc }) => names.some((name) => matchesAction(doc.action, name)));
  const holders = [...new Set(about.map(({ doc }) => doc.token))];
  const expiries = await Promise.all(holders.map((holder) => tokens.readExpiry(holder)));
  const valid = new Set(holders.filter((_, at) => isValid(expiries[at])));
  return about.filter(({ doc }) => valid.has(doc.token));
}

const isValid = (expiry: number | null | undefined): boolean =>
  expiry === null || (expiry !== undefined && expiry > Date.now());

function givenBy(answers: readonly Ruled[]): Given {
  const [first] = answers;
  return {
    inputs: answers.map(({ request_id, decision }) => [request_id, { decision }] as const),
    author: {
      by: first?.rule.doc.by ?? "",
      via: "rule",
      auto: true,
      rules: new Map(answers.map(({ request_id, rule }) => [request_id, rule.id])),
    },
    rules: answers.map(({ rule }) => `${rule.scope} ${rule.id}`),
  };
}

/** The request with which a person would give these answers. */
export function requestOf(interrupt_id: string, inputs: Inputs): AnswerRequest {
  const [first, second] = inputs;
  if (first && !second) return { interrupt_id, ...first[1] };
  return { interrupt_id, answers: Object.fromEntries(inputs) };
}

/** Every use of a rule is in the audit log, in the name of its creator. */
export async function auditRules(
  broker: Audits,
  record: StoredDelegation,
  { author, inputs }: Given,
  open: Asked & Pick<Interrupt, "id">,
  isVote = false,
): Promise<void> {
  const { by, via, rules } = author;
  if (!rules) return;
  const decided = { isVote, id: record.id, target: record.get("target"), via, open, inputs, rules };
  await auditDecisions(broker, toPrincipal(by), decided);
}

/** The rule about questions that need the approvals of several people, none of whom delegated the work. */
import { MOVES } from "../../../src/lifecycle/states.ts";
import { isBudgetQuestion } from "../../../src/schema/budget-question.ts";
import type { ShownAnswer, StoredEvent } from "../history.ts";
import { COUNCIL } from "../setup.ts";
import type { Facts, Violation } from "./facts.ts";

const NEEDED = 2;

/** The approvals of one answer so far. */
interface Ballot {
  readonly content: string;
  readonly votes: readonly string[];
}

/** `caller:ann` and `approver:ann` are one person. */
const personOf = (principal: string): string => principal.slice(principal.indexOf(":") + 1);
const same = (a: readonly string[], b: readonly string[]): boolean => a.join() === b.join();
const denies = ({ requests }: ShownAnswer): boolean =>
  requests.every(({ decision }) => decision !== "approve");

const contentOf = ({ requests }: ShownAnswer): string =>
  JSON.stringify(requests.map(({ request, decision, changes }) => [request, decision, changes]));

/** An approval is of two people who said the same, each once, and an accepted denial ends the question. */
export function outvoted(facts: Facts): Violation[] {
  const council = [...facts.records.values()].filter(({ target }) => target === COUNCIL);
  const found = (id: string, what: string, at?: number): Violation => ({
    ...{ rule: "outvoted", id, what },
    ...(at !== undefined && { at }),
  });
  const votes = council.flatMap(({ id, delegator }) => {
    const what = wrongVote(facts.history.stored.get(id) ?? [], delegator);
    return what === null ? [] : [found(id, what)];
  });
  const ids = new Set(council.map(({ id }) => id));
  const denials = facts.calls("answer").flatMap(({ result, id = "", decision, asked, end }) => {
    if (result !== "ok" || decision !== "deny" || !ids.has(id) || isBudgetQuestion(asked ?? "")) return [];
    const answer = facts.history.stored.get(id)?.find((event) => isAnswerTo(event, asked))?.answer;
    return answer && denies(answer) ? [] : [found(id, "a denial was accepted, and did not end it", end)];
  });
  return [...votes, ...denials];
}

const isAnswerTo = ({ status, answer }: StoredEvent, asked: string | undefined): boolean =>
  status === MOVES.answer.status && answer?.id === asked;

/** Why the votes of one delegation are wrong; null: they are right. */
function wrongVote(events: readonly StoredEvent[], delegator: string): string | null {
  const ballots = new Map<string, Ballot>();
  const closed = new Set<string>();
  for (const { seq, status, answer } of events) {
    if (!answer || isBudgetQuestion(answer.id)) continue;
    const before = ballots.get(answer.id) ?? { content: "", votes: [] };
    const why = closed.has(answer.id) ? "after its end" : wrongStep(before, answer, status, delegator);
    if (why !== null) return `event ${seq}, ${status} by ${answer.by}: ${why}`;
    if (status === MOVES.answer.status) closed.add(answer.id);
    ballots.set(answer.id, withVote(before, answer));
  }
  return null;
}

function withVote({ content, votes }: Ballot, answer: ShownAnswer): Ballot {
  const said = contentOf(answer);
  return { content: said, votes: [...(said === content ? votes : []), answer.by] };
}

function wrongStep(before: Ballot, answer: ShownAnswer, status: string, delegator: string): string | null {
  const isLast = status === MOVES.answer.status;
  if (denies(answer)) return isLast ? null : "a denial is no vote";
  const { content, votes } = withVote(before, answer);
  const people = votes.map(personOf);
  if (people.includes(personOf(delegator))) return "the delegator's approval does not count";
  if (new Set(people).size !== people.length) return `${people.join(" and ")} count each person once`;
  if (isLast !== votes.length >= NEEDED) return `${votes.length} of ${NEEDED} approved this`;
  if (!same(answer.votes ?? [], votes))
    return `it shows the votes of ${answer.votes?.join()}, not ${votes.join()}`;
  // Who changes their own mind voids nobody's approval.
  const isOther = (by: string): boolean => personOf(by) !== personOf(answer.by);
  const voided = content === before.content ? [] : before.votes.filter(isOther);
  return isLast || same(answer.voided ?? [], voided) ? null : `it shows ${answer.voided?.join()} as voided`;
}

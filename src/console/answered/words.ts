/** What somebody answered, in words. */
import type { SettledQuestion } from "../../schema/answered.ts";
import { notifiedPeople } from "../../schema/told-text.ts";
import { count, decided, nameOf } from "../ui/words.ts";

/** `approved scale with 2 changes`, or `answered 3 questions`. */
export function answerWords({ requests }: Pick<SettledQuestion, "requests">): string {
  const [first, second] = requests;
  if (first === undefined || second !== undefined) return `answered ${count(requests.length, "question")}`;
  const { decision, action, redacted, changes } = first;
  const what = action === undefined || decision === undefined ? "" : ` ${action}`;
  const edit = changes === undefined ? "" : ` with ${count(changes.total, "change")}`;
  return `${decided(decision)}${what}${edit}${redacted ? " with a secret" : ""}`;
}

/** Of the people that were notified. */
const NAMED = 5;

/** `Notified: approver ann by ntfy, email; bob by slack; and 2 more.` */
export function toldText(told: NonNullable<SettledQuestion["told"]>): string {
  const people = notifiedPeople(told);
  if (people.length === 0) return "Nobody was notified.";
  const named = people
    .slice(0, NAMED)
    .map(({ person, by }) => `${nameOf(person)} by ${[...by.keys()].join(", ").replace("_", " ")}`);
  const more = people.length > NAMED ? [`and ${people.length - NAMED} more`] : [];
  return `Notified: ${[...named, ...more].join("; ")}.`;
}

/** What somebody answered, in words. */
import type { SettledQuestion } from "../../schema/answered.ts";
import { notifiedText } from "../../schema/told-text.ts";
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

/** `Notified: approver ann by ntfy, email; bob by slack; and 2 more.` */
export function toldText(told: NonNullable<SettledQuestion["told"]>): string {
  const people = notifiedText(told, { nameOf });
  return people === "" ? "Nobody was notified." : `Notified: ${people}.`;
}

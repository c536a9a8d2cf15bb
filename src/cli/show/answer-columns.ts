/** The columns of `errand answers`. */
import type { SettledQuestion, SettledRequest } from "../../schema/answered.ts";
import { changesText } from "../../schema/change-text.ts";
import { notifiedText } from "../../schema/told-text.ts";
import { votesCount } from "../../schema/vote-text.ts";
import { shortIds } from "../input/short-id.ts";
import { ageColumn, type Column } from "./list-table.ts";

/** Everybody who approved it, or who answered. */
const byText = ({ by, outcome, votes = [] }: SettledQuestion): string =>
  outcome === "expired" ? "nobody" : votes.map((vote) => vote.by).join(", ") || (by ?? "nobody");

export const ANSWER_COLUMNS: readonly Column<SettledQuestion>[] = [
  ageColumn("age", ({ settled_at }) => settled_at, { wideName: "settled" }),
  {
    name: "id",
    cell: ({ delegation_id }, wide) =>
      wide ? delegation_id : (shortIds([delegation_id]).get(delegation_id) ?? ""),
    identifier: ({ delegation_id }) => delegation_id,
    isWhole: true,
  },
  { name: "target", cell: ({ target }) => target },
  { name: "delegator", cell: ({ delegator }) => delegator, shown: "wide" },
  { name: "by", cell: byText },
  { name: "via", cell: ({ via }) => via ?? "-" },
  {
    name: "answer",
    cell: answerCell,
    paint: ({ outcome }, { red }) => (outcome === "expired" ? red : (text) => text),
    isText: true,
  },
  {
    name: "question",
    cell: ({ requests }) => requests.map(questionText).join(" · "),
    shown: "wide",
    isText: true,
  },
  { name: "task", cell: ({ task_preview }) => task_preview, shown: "wide", isText: true },
];

const questionText = ({ question_preview, action }: SettledRequest): string =>
  question_preview || (action ?? "-");

/** With the question, unless the name of the action says what it was about, or it has a column of its own. */
function answerCell(settled: SettledQuestion, isWide: boolean): string {
  const { outcome, requests } = settled;
  const about = (request: SettledRequest) =>
    isWide || request.action !== undefined ? "" : `: ${questionText(request)}`;
  if (outcome === "answered") return requests.map((one) => `${answerText(one)}${about(one)}`).join(" · ");
  const asked = requests.map((one) => one.action ?? questionText(one)).join(" · ");
  const told = toldText(settled);
  const what = isWide ? "" : `: ${asked}`;
  // The end may be cut, so people who were notified come first.
  if (settled.told?.length) return `expired, ${told}${approvalsText(settled)}${what}`;
  const missing = approvalsText(settled) || " unanswered";
  return `expired${missing}${what}${told && `; ${told}`}`;
}

/** ` (1 of 2 approvals)`; empty of a question that needed one answer. */
const approvalsText = ({ needed, votes: given = [] }: SettledQuestion): string =>
  needed === undefined ? "" : ` (${votesCount({ needed, given })})`;

/** Who was notified of a question that expired, and how: `told approver:ann by ntfy, email; approver:bob by slack`. Empty: not known. */
export function toldText({ told }: Pick<SettledQuestion, "told">): string {
  if (told === undefined) return "";
  const people = notifiedText(told, { named: told.length });
  return people === "" ? "nobody was notified" : `told ${people}`;
}

/** `approve deploy, replicas 3 → 5`, or the text of the answer. */
function answerText({ action, decision, answer_preview, redacted, changes }: SettledRequest): string {
  const what = decision && (action === undefined ? decision : `${decision} ${action}`);
  const text = answer_preview && `"${answer_preview}"`;
  return [what, changes && changesText(changes), text, redacted && "(secret)"].filter(Boolean).join(", ");
}

/**
 * A question as a screen: all that its reader decides about, and the form of the answer. Text by others is indented, so
 * that none of it looks like a heading.
 */

import { timeLeft } from "../../client/words.ts";
import { textOf } from "../../schema/a2a.ts";
import { votedOtherwise } from "../../schema/voted-answers.ts";
import type { Frame, Size } from "../screen/full-screen.ts";
import { layout } from "../screen/layout.ts";
import type { Scroll } from "../screen/scroll.ts";
import { wrapped } from "../screen/wrap.ts";
import { oneLine, type Painter } from "../show/output.ts";
import { actionLines, optionLines } from "../show/request-lines.ts";
import { votesLine } from "../show/votes.ts";
import type { AnswerForm } from "./answer-form.ts";
import type { Question } from "./entry.ts";

export interface QuestionState {
  readonly question: Question;
  /** Why it is no longer open. */
  readonly closed: string | undefined;
  readonly form: AnswerForm | undefined;
  readonly scroll: Scroll;
  readonly status: string;
  /** In milliseconds since 1970. */
  readonly now: number;
}

const INDENT = "  ";
const KEYS = "a approve  d deny  r answer  o details  ↑↓ scroll  q back";
const EDIT_KEYS = "a approve  d deny  e edit arguments  r answer  o details  q back";
const FORM_KEYS = "Enter send  Esc back, keeping the text";
const NEXT_KEYS = "  Tab, Shift-Tab other requests";
const OPTION_KEYS = "  ↑↓ choose an option";

/** The whole question, and the task. */
export function questionLines(
  { interrupt, voted, delegator, id, task }: Question,
  width: number,
  paint: Painter,
) {
  const { requests } = interrupt;
  const section = (title: string, texts: readonly string[]) =>
    texts.length === 0
      ? []
      : [
          paint.bold(title),
          ...texts.flatMap((text) => wrapped(text, width - INDENT.length)).map((line) => INDENT + line),
          "",
        ];
  const asked = requests.flatMap(({ request_id, message, action, options = [], schema, edit }, at) => {
    const place = requests.length > 1 ? [`${at + 1}/${requests.length} ${oneLine(request_id, 64)}`] : [];
    const editable = edit === true ? ["(you may edit its arguments)"] : [];
    return [
      // Above the text, which may be longer than the screen.
      ...section(["Proposed action", ...place, ...editable].join(" "), action ? actionLines(action) : []),
      ...section(["Question", ...place].join(" "), [textOf(message) || "(without text)"]),
      ...section("Options", optionLines(options)),
      ...section("JSON schema of the data", schema === undefined ? [] : [JSON.stringify(schema)]),
    ];
  });
  const votes = votesLine(interrupt);
  const own = voted ? ["You approved. It waits for others."] : [];
  const approvals = section("Approvals", votes === undefined ? [] : [votes, ...own]);
  return [
    ...approvals,
    ...asked,
    ...section("Task", [task]),
    ...section("Delegation", [`${id} for ${delegator}`]),
  ];
}

export function questionFrame(
  size: Size,
  paint: Painter,
  body: readonly string[],
  state: QuestionState,
): Frame {
  const { question, closed, form, scroll, status, now } = state;
  const { interrupt, target } = question;
  const secret = interrupt.kind === "auth" ? " for a credential" : "";
  const over = closed === undefined ? "" : `This question is no longer open: ${oneLine(closed)}.`;
  const { foot, cursor } = form ? formFoot(form, size, paint) : { foot: [], cursor: undefined };
  return layout(size, paint, {
    title: `${target} asks${secret}`,
    aside: closed === undefined ? `${timeLeft(Date.parse(interrupt.expires_at) - now)} left` : "closed",
    body,
    scroll,
    foot,
    status: [over, status].filter(Boolean).join(" "),
    keys: form ? keysOf(form) : openKeys(interrupt),
    ...(cursor && { cursor }),
  });
}

function openKeys(interrupt: Question["interrupt"]): string {
  const keys = interrupt.requests[0]?.edit === true ? EDIT_KEYS : KEYS;
  return votedOtherwise(interrupt) ? keys.replace("a approve", "y approve as others  a as proposed") : keys;
}

function keysOf(form: AnswerForm): string {
  const isLong = form.mode === "answer" && form.interrupt.requests.length > 1;
  const hasOptions = form.mode === "answer" && (form.request?.options?.length ?? 0) > 0;
  return FORM_KEYS + (hasOptions ? OPTION_KEYS : "") + (isLong ? NEXT_KEYS : "");
}

/** The form takes at most half of the screen. */
function formFoot(form: AnswerForm, { columns, rows }: Size, paint: Painter) {
  const most = Math.max(1, Math.floor(rows / 2) - 3);
  const head = wrapped(`${form.label}:`, columns).map((line) => paint.bold(line));
  const { rows: typed = [""], cursor } = form.field?.rows(columns - 1, form.isSecret) ?? {};
  const problems = form.isSending
    ? [paint.dim("sending…")]
    : form.problems.flatMap((problem) => wrapped(problem, columns).map(paint.red)).slice(0, 4);
  const first = Math.max(0, Math.min((cursor?.row ?? 0) - most + 1, typed.length - most));
  const shown = typed.slice(first, first + most);
  const foot = [...problems, ...head];
  return {
    foot: [...foot, ...shown],
    cursor: cursor && { row: foot.length + cursor.row - first, column: cursor.column },
  };
}

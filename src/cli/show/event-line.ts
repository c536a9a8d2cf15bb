/** An event as one line of text. It shows the most useful fields; --json has all. */
import { budgetText } from "../../client/budget-text.ts";
import { durationText } from "../../client/words.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import { changeTexts } from "../../schema/change-text.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import type {
  AnsweredEvent,
  AwaitingEvent,
  DelegationEvent,
  FailedEvent,
  StatusEvent,
  VotedEvent,
} from "../../schema/event.ts";
import { shownName } from "../../schema/text.ts";
import type { TreeEvent } from "../../schema/tree.ts";
import { votesCount } from "../../schema/vote-text.ts";
import { shortIds } from "../input/short-id.ts";
import type { WatchedEvent } from "../watch-questions.ts";
import { oneLine, type Painter, statePaint, stateText } from "./output.ts";
import { actionsText, questionText } from "./questions.ts";
import { cutTo, displayWidth } from "./text.ts";
import { localTime } from "./time.ts";
import { missingText, votedChanges, votesLine } from "./votes.ts";

/** The event as the broker sent it. */
export const asSent = (event: WatchedEvent): object => (event.type === "UNKNOWN" ? event.event : event);

/** Local time, short id, agent and what happened. `width`: the longest line, at which its end is cut. */
export function eventLine(event: WatchedEvent, paint: Painter, width = Number.POSITIVE_INFINITY): string {
  if (event.type === "RESET") return paint.yellow("earlier events are no longer stored");
  const isSnapshot = event.type === "DELEGATION_SNAPSHOT";
  const { target, at } = isSnapshot
    ? { target: event.delegation.target, at: event.delegation.updated_at }
    : event;
  const id = shortIds([event.delegation_id]).get(event.delegation_id) ?? "";
  const head = [time(at), id, oneLine(target), ""].join("  ");
  const words = isSnapshot ? snapshotWords(event.delegation) : summary(event);
  const text = cutTo(words, Math.max(1, width - displayWidth(head)));
  return paint.dim(head) + colorOf(event, paint)(text);
}

/** An event of a tree: local time, short id, agent and state. */
export function nodeLine(event: TreeEvent, paint: Painter): string {
  if (event.type === "RESET") return paint.yellow("earlier events are no longer stored");
  const id = shortIds([event.delegation_id]).get(event.delegation_id) ?? "";
  const head = [time(event.at), id, oneLine(event.target), ""].join("  ");
  return paint.dim(head) + statePaint(event.state, paint)(stateText(event.state));
}

/** With the open question, or else the task. */
const snapshotWords = ({ state, interrupt, task_preview }: Delegation): string =>
  `${stateText(state)} ${interrupt ? askedText(interrupt, task_preview) : quoted(task_preview)}`;

/** The question, how many approvals there are, and the action that it proposes. */
function askedText(interrupt: Interrupt, otherwise = ""): string {
  const { votes } = interrupt;
  const changes = votedChanges(interrupt);
  const approvals = votes && votesLine(interrupt) !== undefined ? ` (${votesCount(votes)})` : "";
  const text = quoted(questionText(interrupt) || otherwise);
  return `${text}${changes ? ` ${changes}` : ""}${approvals}${actionsText(interrupt)}`;
}

function colorOf({ type, ...event }: WatchedEvent, { green, red, yellow, bold }: Painter) {
  if (type === "DELEGATION_COMPLETE") return green;
  if (type === "DELEGATION_FAILED") return red;
  if ("status" in event && event.status === "interrupted") return yellow;
  return type === "DELEGATION_SENT" ? bold : (text: string) => text;
}

function summary(event: DelegationEvent): string {
  switch (event.type) {
    case "DELEGATION_SENT":
      return words(event.status, event.behind && `behind ${event.behind}`, quoted(event.task_preview));
    case "DELEGATION_STATUS":
      return words(...statusWords(event));
    case "DELEGATION_COMPLETE": {
      const { duration_ms, response_preview } = event;
      return words(`completed in ${durationText(duration_ms)}`, response_preview && quoted(response_preview));
    }
    case "DELEGATION_FAILED":
      return words(event.state, missing(event) || reason(event.error, event.state));
    case "UNKNOWN":
      return oneLine(String(event.event.status ?? event.event.type));
  }
}

type Words = readonly (string | false | undefined)[];
const words = (...parts: Words): string => parts.filter(Boolean).join(" ");

function statusWords(event: StatusEvent): Words {
  const attempt =
    "attempt" in event && event.attempt !== undefined && event.attempt > 1 && `attempt ${event.attempt}`;
  const again = "retry_at" in event && event.retry_at && `not before ${time(event.retry_at)}`;
  switch (event.status) {
    case "progress": {
      const { done, total, message } = event.progress;
      return ["progress", done !== undefined && `${done}/${total ?? "?"}`, message && quoted(message)];
    }
    case "interrupted":
      return [isBudgetQuestion(event.interrupt.id) ? "the broker asks" : "asks", askedText(event.interrupt)];
    case "voted":
      return voted(event);
    case "answered":
      return ["answered", ...answered(event)];
    case "over_budget":
      return ["over budget:", budgetText(event.budget)];
    case "awaiting":
      return [`waits for ${childrenText(event.awaits)}`];
    case "resumed":
      return ["resumed", event.time_limit && "(the time is over)"];
    case "admitted":
      return ["now the first in its conversation"];
    case "retrying":
      return ["retrying", attempt, again, `(${reason(event.error, event.state)})`];
    case "released":
    case "lease_expired":
      return [event.status, attempt, again, event.reason && `(${oneLine(event.reason, 100)})`];
    default:
      return [event.status, attempt];
  }
}

/** `3 children`, or if fewer need to end, `2 of 3 children`. */
export const childrenText = ({ count, left }: Pick<AwaitingEvent["awaits"], "count" | "left">): string => {
  const all = count === 1 ? "a child" : `${count} children`;
  return left === count ? all : `${left} of ${all}`;
};

/** What, how many approved it, whose approvals it voids, and last by whom. */
function voted(event: VotedEvent): Words {
  const { by, via, auto, decision, changes, answer_preview, votes, needed, voided } = event;
  const edit = editText(changes);
  const what =
    decision === undefined
      ? oneLine(contentText(event), 100)
      : `${decision}${edit && `, ${oneLine(edit, 100)}`}`;
  return [
    `voted ${what && `${what}, `}${votes.length} of ${needed}`,
    voided && `(voids ${oneLine(voided.join(", "), 100)})`,
    `by ${oneLine(by)}${auto ? " in advance" : ""}`,
    decision && answer_preview && quoted(answer_preview),
    wayText(via),
  ];
}

/** The author of an answer, and the answer. */
function answered(event: AnsweredEvent): Words {
  const { by, via, auto, decision, changes, answer_preview } = event;
  const isSecret = "redacted" in event && event.redacted;
  const author = `by ${oneLine(by)}${auto ? " in advance" : ""}`;
  if (isOfSeveral(event)) return [author, oneLine(contentText(event), 100), wayText(via)];
  const edit = editText(changes);
  return [
    author,
    decision,
    edit && `(${oneLine(edit, 100)})`,
    answer_preview && quoted(answer_preview),
    isSecret && "(secret)",
    wayText(via),
  ];
}

const WAYS: Readonly<Record<string, string>> = {
  console: "in the console",
  mcp: "by MCP",
  a2a: "by A2A",
  "ag-ui": "by AG-UI",
};

/** `in the console`; empty for the HTTP API, which is the usual way of programs, and for what is not known. */
export const wayText = (via: string | undefined): string => WAYS[via ?? ""] ?? "";

type Content = Pick<AnsweredEvent, "decision" | "changes" | "answer_preview" | "redacted" | "answers">;

const isOfSeveral = ({ answers }: Pick<Content, "answers">): boolean => Object.keys(answers).length > 1;

/**
 * What an answer says: `approve, replicas 3 → 5, "gently"`, or to several requests `host: "db1"; consent: approve`. May have
 * control characters.
 */
export function contentText({ decision, changes, answer_preview, redacted, answers }: Content): string {
  const textOf = (one: Omit<Content, "answers">) =>
    [
      one.decision,
      editText(one.changes),
      one.answer_preview && `"${one.answer_preview}"`,
      one.redacted && "(secret)",
    ]
      .filter(Boolean)
      .join(", ");
  if (!isOfSeveral({ answers })) return textOf({ decision, changes, answer_preview, redacted });
  const texts = Object.entries(answers).map(([id, one]) => {
    const edit = changes?.[id];
    return `${shownName(id)}: ${textOf({ ...one, ...(edit && { changes: { [id]: edit } }) })}`;
  });
  return texts.join("; ");
}

/** What an answer changed: `replicas 3 → 5`. Empty: nothing. May have control characters. */
export const editText = (changes: AnsweredEvent["changes"]): string => changeTexts(changes).join("; ");

/** `interrupt_expired: 1 of 2 approvals: approver:ann`; empty unless a question that needed approvals has expired. */
const missing = (event: FailedEvent): string => {
  const text = missingText(event);
  return text && `${event.error.code}: ${oneLine(text, 100)}`;
};

function reason({ code, message }: { code: string; message: string }, state: string): string {
  return (code === state ? "" : `${code}: `) + oneLine(message, 100);
}

function quoted(text: string): string {
  return `"${oneLine(text, 60)}"`;
}

/** The local time of day. */
const time = (instant: string): string => localTime(instant).split(" ")[1] ?? instant;

/** An entry of the inbox: what its list and its question need of a delegation. */
import { textOf } from "../../schema/a2a.ts";
import { type Delegation, type Interrupt, isTerminal } from "../../schema/delegation.ts";
import { truncate } from "../../schema/text.ts";
import { hasVoted, votesCount } from "../../schema/vote-text.ts";
import type { Counted } from "../counted.ts";
import { mayAnswer } from "../rights.ts";
import { optionText, questionText } from "../show/questions.ts";
import { votedChanges, votersText, votesLine } from "../show/votes.ts";

export interface Entry
  extends Pick<
    Delegation,
    "id" | "state" | "version" | "target" | "delegator" | "finished_at" | "interrupt" | "created_at"
  > {
  /** The text of the task, at most {@link TASK_CHARS}. */
  readonly task: string;
  /** This person has approved the question, which waits for others. */
  readonly voted?: boolean;
  /** The approval of this person does not count now, so only denying is left. It changes with time: see {@link seenNow}. */
  readonly denyOnly?: boolean;
  /** The question, the reply or the error, for one line. */
  readonly summary: string;
}

export interface Question extends Entry {
  readonly interrupt: Interrupt;
}

const TASK_CHARS = 20_000;
const SUMMARY_CHARS = 400;

export const isQuestion = (entry: Entry): entry is Question => entry.interrupt !== null;

/** Whether it waits for the approvals of others. */
export const isForOthers = ({ voted, denyOnly }: Entry): boolean => voted === true || denyOnly === true;

export const isVoted = ({ voted }: Entry): boolean => voted === true;

export function toEntry(delegation: Delegation, principal: string): Entry {
  const { id, state, version, target, delegator, finished_at, interrupt, created_at, message } = delegation;
  const task = textOf(message);
  return {
    ...{ id, state, version, target, delegator, finished_at, interrupt, created_at },
    ...(interrupt && hasVoted(interrupt, principal) && { voted: true }),
    task: task.length > TASK_CHARS ? `${truncate(task, TASK_CHARS)}…` : task,
    summary: truncate(summaryOf(delegation), SUMMARY_CHARS),
  };
}

/** As it is at this moment. */
export const seenNow = (entry: Entry, counted: Pick<Counted, "isCounted">): Entry =>
  entry.interrupt && !counted.isCounted(entry) ? { ...entry, denyOnly: true } : entry;

function summaryOf({ interrupt, error, state, reply, artifacts, task_preview }: Delegation): string {
  if (interrupt) return questionSummary(interrupt) || task_preview;
  if (error) return error.code === state ? error.message : `${error.code}: ${error.message}`;
  const text = reply ? textOf(reply) : "";
  if (text !== "" || artifacts.length === 0) return text;
  return `${artifacts.length} artifact${artifacts.length === 1 ? "" : "s"}`;
}

/** The text first, with what people changed and how many did; then the action that an approval would allow, and who they are. */
function questionSummary(interrupt: Interrupt): string {
  const [first] = interrupt.requests;
  const { action, options = [] } = first ?? {};
  const proposed = action ? ` [${action.name} ${JSON.stringify(action.arguments)}]` : "";
  const choices = options.length > 0 ? ` (${options.map(optionText).join(" | ")})` : "";
  const text = questionText(interrupt);
  const { votes } = interrupt;
  if (!votes || votesLine(interrupt) === undefined) return `${text}${proposed}${choices}`.trim();
  const changes = votedChanges(interrupt);
  const approvals = `${changes ? ` ${changes}` : ""} (${votesCount(votes)})`;
  const people = votes.given.length === 0 ? "" : ` by ${votersText(interrupt)}`;
  // Long arguments hide only who approved.
  const asked = text === "" ? `${proposed}${approvals}` : `${text}${approvals}${proposed}`;
  return `${asked}${choices}${people}`.trim();
}

/** Whether the entry belongs in the inbox: questions to answer, and the principal's own results since an instant. */
export function belongs(principal: string, since: string, entry: Entry): boolean {
  if (isQuestion(entry)) return mayAnswer(principal, entry);
  if (!isTerminal(entry.state) || entry.delegator !== principal) return false;
  return Date.parse(entry.finished_at ?? "") >= Date.parse(since);
}

/** Questions first, the soonest to expire on top; then those that wait for others; then results, the newest on top. */
export function inOrder(entries: Iterable<Entry>): Entry[] {
  const expiry = ({ interrupt }: Entry) => Date.parse(interrupt?.expires_at ?? "");
  const ended = ({ finished_at }: Entry) => Date.parse(finished_at ?? "");
  return [...entries].sort((a, b) => {
    if (isQuestion(a) !== isQuestion(b)) return isQuestion(a) ? -1 : 1;
    if (isForOthers(a) !== isForOthers(b)) return isForOthers(a) ? 1 : -1;
    const byTime = isQuestion(a) ? expiry(a) - expiry(b) : ended(b) - ended(a);
    return byTime || a.id.localeCompare(b.id);
  });
}

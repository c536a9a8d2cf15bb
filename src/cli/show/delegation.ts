/** A delegation as text for a person: its fields as a table, then its reply. */
import { budgetText } from "../../client/budget-text.ts";
import { usageLine } from "../../client/usage.ts";
import { textOf } from "../../schema/a2a.ts";
import type { BudgetShown } from "../../schema/budget.ts";
import { DEFAULT_PRIORITY, type Delegation, isTerminal } from "../../schema/delegation.ts";
import { artifactText, filesText, howToSave } from "./artifact-line.ts";
import { historyRows, type IsVoid } from "./history.ts";
import { oneLine, progressText, stateText } from "./output.ts";
import { howToAnswer, requestLine } from "./questions.ts";
import { resultText } from "./reply.ts";
import { wrapRows } from "./text.ts";
import { localTime } from "./time.ts";
import { votesLine } from "./votes.ts";

/** How many of the newest messages are shown; `errand get --history` shows all. */
const MESSAGES = 6;
const MESSAGE_CHARS = 200;

/** What it and everything under it have used, and may use. */
function budgetRow({ exceeded, stops_at, of, ...budget }: BudgetShown): string {
  const until = exceeded && stops_at !== undefined ? `, until ${localTime(stops_at)}` : "";
  return `${budgetText(budget)}${exceeded ? ` (exceeded${until})` : ""}${of === undefined ? "" : `, part of that of ${of}`}`;
}

interface Describing {
  /** Where rows continue on the next line. */
  readonly columns?: number;
  /** False: the reader's approval does not count. */
  readonly isCounted?: boolean;
  /** Whether the message is an approval that counts no longer. */
  readonly isVoid?: IsVoid | undefined;
}

/** Without the last message of each of these ids: an earlier question may have the same ones. */
function withoutLast(history: Delegation["history"], ids: readonly string[] = []): Delegation["history"] {
  const last = new Set(ids.map((id) => history.findLastIndex(({ messageId }) => messageId === id)));
  return history.filter((_, at) => !last.has(at));
}

/** A priority other than the default one, and the deadline while it may end the delegation, or if it did. */
function termRows({ state, priority, effective_priority, deadline_at, error }: Delegation): string[][] {
  const rows: string[][] = [];
  const isRaised = effective_priority !== undefined && effective_priority !== priority;
  if (isRaised) rows.push(["priority", `${priority}, queued with ${effective_priority} because it waits`]);
  else if (priority !== DEFAULT_PRIORITY) rows.push(["priority", String(priority)]);
  if (!isTerminal(state) || error?.code === "deadline_exceeded")
    rows.push(["deadline", localTime(deadline_at)]);
  return rows;
}

/** `stateDetails` are rows of state-details.ts. */
export function describe(
  delegation: Delegation,
  stateDetails: readonly (readonly [string, string])[],
  { columns = Number.POSITIVE_INFINITY, isCounted = true, isVoid }: Describing = {},
): string {
  const { id, state, target, delegator, context_id, attempt, max_attempts, lease, progress, error } =
    delegation;
  const files = filesText(delegation.message);
  const rows: (readonly string[])[] = [
    ["delegation", id],
    ["state", stateText(state)],
    ["target", target],
    ["delegator", delegator],
    ["context", context_id],
    ["task", oneLine(delegation.task_preview, 100)],
    ...(files === "" ? [] : [["files", files]]),
    ["attempt", `${attempt} of ${max_attempts}`],
    ["created", localTime(delegation.created_at)],
    ...termRows(delegation),
  ];
  if (delegation.parent_id) rows.push(["parent", delegation.parent_id]);
  if (delegation.redrive_of) rows.push(["redrive of", delegation.redrive_of]);
  if (delegation.redriven_as) rows.push(["redriven as", delegation.redriven_as]);
  if (lease) rows.push(["leased", `by ${oneLine(lease.worker_id)} until ${localTime(lease.expires_at)}`]);
  const progressLine = progress && progressText(progress);
  if (progressLine) rows.push(["progress", progressLine]);
  if (delegation.budget) rows.push(["budget", budgetRow(delegation.budget)]);
  if (delegation.usage) rows.push(["usage", oneLine(usageLine(delegation.usage))]);
  const { interrupt } = delegation;
  // The open question is shown below, with the command that answers it; its approvals are among the messages after it.
  const others = withoutLast(
    delegation.history,
    interrupt?.requests.map(({ message }) => message.messageId),
  );
  const past = historyRows(others, MESSAGE_CHARS, { isVoid });
  if (past.length > MESSAGES)
    rows.push(["history", `${past.length - MESSAGES} earlier messages: 'errand get ${id} --history'`]);
  rows.push(...past.slice(-MESSAGES));
  for (const request of interrupt?.requests ?? []) {
    rows.push(["asks", requestLine(request, interrupt?.requests.length === 1)]);
  }
  const votes = interrupt && votesLine(interrupt);
  if (votes) rows.push(["votes", votes]);
  if (interrupt) {
    rows.push(["open until", `${localTime(interrupt.expires_at)} (${interrupt.id})`]);
    rows.push(["answer with", howToAnswer(delegation, isCounted)]);
  }
  if (delegation.awaits) rows.push(["children", `'errand list --tree ${id}'`]);
  if (delegation.finished_at) rows.push(["finished", localTime(delegation.finished_at)]);
  rows.push(...stateDetails);
  for (const artifact of delegation.artifacts) {
    rows.push(["artifact", `${artifactText(artifact)}: '${howToSave(id, artifact, delegation.artifacts)}'`]);
  }
  if (error) rows.push(["error", `${error.code}: ${oneLine(error.message)}`]);
  const reply = resultText(delegation) ?? (delegation.reply ? textOf(delegation.reply) : "");
  return wrapRows(rows, columns) + (reply === "" ? "" : `\n\n${reply}`);
}

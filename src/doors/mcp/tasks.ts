/**
 * A delegation as a task of the Tasks extension, and that extension's methods. Limit: no status notifications; clients
 * poll with `tasks/get`.
 */
import type { Broker } from "../../engine/broker.ts";
import { cancel } from "../../engine/delegations/cancel.ts";
import { toDelegation } from "../../engine/delegations/parse.ts";
import { read } from "../../engine/delegations/read.ts";
import { answeredParts, answerPart } from "../../engine/questions/answer-parts.ts";
import { isBudgetQuestion } from "../../schema/budget-question.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { ERRORS, ErrandError, isErrorCode } from "../../schema/errors.ts";
import { truncate } from "../../schema/text.ts";
import { votesText } from "../../schema/vote-text.ts";
import type { McpContext } from "./context.ts";
import { toAnswers, toInputRequests } from "./elicitation.ts";
import { progressLine, toDelegationView, toolErrorOf, viewToText } from "./tools/delegation-view.ts";
import { type TaskHandle, type ToolOutput, toCallToolResult } from "./tools/tool.ts";

const INTERNAL_ERROR = -32603;
const MIN_POLL_MS = 1_000;
const MAX_POLL_MS = 15_000;
/** A person needs time to read and think. */
const INPUT_POLL_MS = 3_000;

/** Failures decided by the broker, not by the agent. */
const BROKER_FAILURES = [
  "attempts_exhausted",
  "budget_exceeded",
  "worker_unavailable",
  "deadline_exceeded",
  "interrupt_expired",
  "not_picked_up",
];

const isBrokerFailure = ({ state, error }: Delegation): boolean =>
  state === "failed" &&
  error !== null &&
  BROKER_FAILURES.includes(error.code) &&
  isErrorCode(error.code) &&
  ERRORS[error.code].category === error.category;

function statusOf(delegation: Delegation): string {
  const { state } = delegation;
  if (state === "canceled") return "cancelled";
  if (!isTerminal(state)) return delegation.interrupt === null ? "working" : "input_required";
  return isBrokerFailure(delegation) ? "failed" : "completed";
}

function pollIntervalMs({ state, progress, interrupt }: Delegation): number {
  if (interrupt !== null) return INPUT_POLL_MS;
  const eta = state === "working" ? progress?.eta_seconds : undefined;
  if (eta === undefined) return MIN_POLL_MS;
  return Math.round(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, eta * 100)));
}

/** The time from creation to deletion. A live delegation counts as if it ended at its deadline. */
function ttlMs(broker: Broker, { created_at, deadline_at, finished_at }: Delegation): number {
  return Date.parse(finished_at ?? deadline_at) - Date.parse(created_at) + broker.retentionMs;
}

function statusMessageOf(delegation: Delegation): string {
  const { error, interrupt } = delegation;
  if (error !== null) return truncate(`${error.code}: ${error.message}`, 1024);
  if (interrupt !== null)
    return isBudgetQuestion(interrupt.id)
      ? "the broker asks for a larger budget"
      : [`${delegation.target} asks a question`, interrupt.votes && votesText(interrupt.votes)]
          .filter(Boolean)
          .join("; ");
  return isTerminal(delegation.state) ? `${delegation.target} is done` : progressLine(delegation);
}

const toTask = (broker: Broker, delegation: Delegation) => ({
  taskId: delegation.id,
  status: statusOf(delegation),
  statusMessage: statusMessageOf(delegation),
  createdAt: delegation.created_at,
  lastUpdatedAt: delegation.updated_at,
  ttlMs: ttlMs(broker, delegation),
  pollIntervalMs: pollIntervalMs(delegation),
});

/** Call it only for a stored delegation: the client may ask for it at once. */
export const toTaskHandle = (broker: Broker, delegation: Delegation): TaskHandle => ({
  resultType: "task",
  content: [],
  ...toTask(broker, delegation),
});

/** The output of the delegating tool for a finished delegation. */
export function finalOutput(delegation: Delegation): ToolOutput {
  const data = toDelegationView(delegation);
  return { text: viewToText(data), data, isError: delegation.state !== "completed" };
}

/** Throws `delegation_not_found` if there is none that the caller may see. */
export async function getTask({ broker, principal }: McpContext, taskId: string) {
  const record = await read(broker, principal, taskId);
  const delegation = toDelegation(record);
  const task = { resultType: "complete", ...toTask(broker, delegation) };
  if (delegation.interrupt !== null) {
    const answered = await answeredParts(broker, principal, record, delegation.interrupt.id);
    const inputRequests = toInputRequests(delegation, answered);
    // It waits for the approvals of others.
    if (Object.keys(inputRequests).length === 0) return { ...task, status: "working" };
    return { ...task, inputRequests };
  }
  if (task.status === "completed") {
    return { ...task, result: { resultType: "complete", ...toCallToolResult(finalOutput(delegation)) } };
  }
  if (task.status !== "failed") return task;
  const error = { code: INTERNAL_ERROR, message: statusMessageOf(delegation), data: toolErrorOf(delegation) };
  return { ...task, error };
}

/** Ignores answers to questions that are no longer open. */
export async function updateTask({ broker, principal, inputResponses }: McpContext, taskId: string) {
  const delegation = toDelegation(await read(broker, principal, taskId));
  const answers = toAnswers(delegation, inputResponses);
  if (delegation.interrupt !== null && Object.keys(answers).length > 0) {
    const { id: interrupt_id } = delegation.interrupt;
    await answerPart(broker, principal, taskId, { interrupt_id, answers }, { via: "mcp" }).catch(
      ignore("interrupt_not_open"),
    );
  }
  return { resultType: "complete" };
}

export async function cancelTask({ broker, principal }: McpContext, taskId: string) {
  await cancel(broker, principal, taskId, {}).catch(ignore("already_finished"));
  return { resultType: "complete" };
}

const ignore = (code: string) => (error: unknown) => {
  if (!(error instanceof ErrandError) || error.code !== code) throw error;
};

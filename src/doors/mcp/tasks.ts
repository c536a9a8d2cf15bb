/**
 * A delegation as a task of the Tasks extension, and the methods of that extension. Limit: to be asked for; its
 * status notifications are not sent.
 */

import type { Broker } from "../../engine/broker.ts";
import { cancel } from "../../engine/delegations/cancel.ts";
import { read } from "../../engine/delegations/read.ts";
import { answeredParts, answerPart } from "../../engine/questions/answer-parts.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { ERRORS, ErrandError, isErrorCode } from "../../schema/errors.ts";
import { truncate } from "../../schema/text.ts";
import type { Context } from "./context.ts";
import { toAnswers, toInputRequests } from "./elicitation.ts";
import { delegationOf, failureOf, stepOf, summarize, toText } from "./tools/delegation-view.ts";
import { type TaskHandle, type ToolAnswer, toResult } from "./tools/tool.ts";

const INTERNAL_ERROR = -32603;
const POLL_MS = 1_000;
const SLOWEST_POLL_MS = 15_000;
/** Somebody has to read and to think. */
const INPUT_POLL_MS = 3_000;

/** Ends that the broker came to, and no agent. */
const BROKERS = ["attempts_exhausted", "deadline_exceeded", "interrupt_expired", "not_picked_up"];

export const isBrokerFailure = ({ state, error }: Delegation): boolean =>
  state === "failed" &&
  error !== null &&
  BROKERS.includes(error.code) &&
  isErrorCode(error.code) &&
  ERRORS[error.code].category === error.category;

function statusOf(delegation: Delegation): string {
  const { state } = delegation;
  if (state === "canceled") return "cancelled";
  if (!isTerminal(state)) return delegation.interrupt === null ? "working" : "input_required";
  return isBrokerFailure(delegation) ? "failed" : "completed";
}

function pollMsOf({ state, progress, interrupt }: Delegation): number {
  if (interrupt !== null) return INPUT_POLL_MS;
  const eta = state === "working" ? progress?.eta_seconds : undefined;
  if (eta === undefined) return POLL_MS;
  return Math.round(Math.min(SLOWEST_POLL_MS, Math.max(POLL_MS, eta * 100)));
}

/** From its making to when it leaves at the latest: its end, and as long as what is finished is kept. */
function ttlMsOf(broker: Broker, { created_at, deadline_at, finished_at }: Delegation): number {
  return Date.parse(finished_at ?? deadline_at) - Date.parse(created_at) + broker.retentionMs;
}

function messageOf(delegation: Delegation): string {
  const { error, interrupt } = delegation;
  if (error !== null) return truncate(`${error.code}: ${error.message}`, 1024);
  if (interrupt !== null) return `${delegation.target} asks something`;
  return isTerminal(delegation.state) ? `${delegation.target} is done` : stepOf(delegation);
}

const baseOf = (broker: Broker, delegation: Delegation) => ({
  taskId: delegation.id,
  status: statusOf(delegation),
  statusMessage: messageOf(delegation),
  createdAt: delegation.created_at,
  lastUpdatedAt: delegation.updated_at,
  ttlMs: ttlMsOf(broker, delegation),
  pollIntervalMs: pollMsOf(delegation),
});

/** Only for what is written: the id has to be found from now on. */
export const toHandle = (broker: Broker, delegation: Delegation): TaskHandle => ({
  resultType: "task",
  content: [],
  ...baseOf(broker, delegation),
});

/** How the tool that made it answers once it is finished. */
export function finalAnswer(delegation: Delegation): ToolAnswer {
  const data = summarize(delegation);
  return { text: toText(data), data, isError: delegation.state !== "completed" };
}

/** Throws `delegation_not_found` for what is unknown and for what does not concern the caller. */
export async function getTask({ broker, principal }: Context, taskId: string) {
  const delegation = delegationOf(await read(broker, principal, taskId));
  const task = { resultType: "complete", ...baseOf(broker, delegation) };
  if (delegation.interrupt !== null) {
    const given = await answeredParts(broker, taskId, delegation.interrupt.id);
    return { ...task, inputRequests: toInputRequests(delegation, given) };
  }
  if (task.status === "completed") {
    return { ...task, result: { resultType: "complete", ...toResult(finalAnswer(delegation)) } };
  }
  if (task.status !== "failed") return task;
  const error = { code: INTERNAL_ERROR, message: messageOf(delegation), data: failureOf(delegation) };
  return { ...task, error };
}

/** Answers that come for what is not asked any more are passed over. */
export async function updateTask({ broker, principal, responses }: Context, taskId: string) {
  const delegation = delegationOf(await read(broker, principal, taskId));
  const answers = toAnswers(delegation, responses);
  if (delegation.interrupt !== null && Object.keys(answers).length > 0) {
    const { id: interrupt_id } = delegation.interrupt;
    await answerPart(broker, principal, taskId, { interrupt_id, answers }).catch(
      unless("interrupt_not_open"),
    );
  }
  return { resultType: "complete" };
}

export async function cancelTask({ broker, principal }: Context, taskId: string) {
  await cancel(broker, principal, taskId, { cascade: true }).catch(unless("already_finished"));
  return { resultType: "complete" };
}

const unless = (code: string) => (error: unknown) => {
  if (!(error instanceof ErrandError) || error.code !== code) throw error;
};

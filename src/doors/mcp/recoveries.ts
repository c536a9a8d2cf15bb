/** Recoveries for a model, which can only call tools. A code without an entry keeps its recovery in the error table. */
import type { DelegationError } from "../../schema/delegation.ts";
import { ERRORS, type ErrorCode, isErrorCode } from "../../schema/errors.ts";

export const RECOVERIES: Partial<Record<ErrorCode, string>> = {
  invalid_request: "Correct the arguments named in details.issues and call the tool again.",
  inexact_number: "Send the numbers named in details.issues as texts, in quotes.",
  unauthenticated:
    "No tool can fix this. Tell the user that the MCP configuration needs 'Authorization: Bearer <token>' with a token that is neither revoked nor expired.",
  forbidden:
    "Do not retry: the principal of your token lacks the permission. Call broker_health to see which principal it is, and tell the user.",
  not_accepted:
    "Do not retry. Pick another agent with discover_agents, or tell the user that the operator must grant access.",
  agent_unknown: "Call discover_agents for the names that exist, then call the tool again with one of them.",
  delegation_not_found:
    "Check the delegation_id with list_tasks. Finished delegations are deleted after the retention time.",
  lease_unknown: "Stop this work, and call poll_inbox for more work.",
  lease_lost:
    "Stop this work: details.reason says why the lease ended, and further calls for it are refused. Call poll_inbox for more work.",
  already_finished: "Call check_task_status to see the result; the state will not change.",
  interrupt_not_open:
    "Call check_task_status for the question that is open now, and answer it by its interrupt_id.",
  wrong_state: "Call check_task_status and act on its state.",
  not_a_child:
    "Pass only ids of delegations that you delegated with the delegation_id of this work as parent_id; details.children has the others.",
  limit_reached:
    "Do not retry: waiting does not help. Put the rest of the output into complete_task, or delegate the rest of the work with delegate_task.",
  payload_too_large: "Send less, or store the content somewhere and send its URL.",
  idempotency_conflict: "Omit idempotency_key, or use a new one for different work.",
  delegation_loop:
    "Do the work yourself, or call delegate_task with an agent that is not above you in the delegation tree.",
  queue_full:
    "Wait for retry_after_seconds, then call the tool again; or pick another agent with discover_agents.",
  rate_limited: "Wait for retry_after_seconds, then call the tool again; report less often.",
  quota_exceeded:
    "Wait for retry_after_seconds, then call the tool again; have fewer calls waiting at once. If details.quota is 'kept_bytes', tell the user to delete finished delegations, or to ask the operator for a larger share.",
  redis_unavailable:
    "The outcome is unknown. Wait a second, then call the tool again with the same arguments and the same idempotency_key.",
  overloaded: "Wait for retry_after_seconds, then call the tool again with the same arguments.",
  shutting_down: "Wait a second, then call the tool again with the same arguments.",
  attempts_exhausted:
    "Every attempt failed because no call came from its worker in time. Call discover_agents to see whether a worker is online, then delegate_task again if you still need the work.",
  worker_unavailable:
    "Its workers could not work, for example because a provider refuses them. Call discover_agents for another agent, or tell the user; then delegate_task again if you still need the work.",
  deadline_exceeded: "Call delegate_task again with a longer ttl_seconds if you still need the work.",
  interrupt_expired: "Call delegate_task again, and answer its question sooner with answer_task.",
  budget_exceeded:
    "It used more than its budget, which check_task_status shows. Call delegate_task again with a larger budget or smaller work, if the user wants that.",
  budget_exhausted:
    "The budget for this day or month is used up. Do not retry before details.resets_at; tell the user, or pick another agent with discover_agents.",
  not_picked_up:
    "No worker took it in time. Call discover_agents for an agent that is online, then delegate_task again.",
  rejected: "Change the work, or call delegate_task with another agent.",
  canceled: "Call delegate_task again if you still need the work.",
  agent_error: "The message comes from the agent. Change the work, or call delegate_task with another agent.",
};

/**
 * The recovery of a delegation's error. An agent may use a code of the broker with another meaning, so the stored
 * recovery decides which is meant.
 */
export function recoveryFor({ code, recovery }: Pick<DelegationError, "code" | "recovery">): string {
  const meant = [code, "rejected", "agent_error"].find(
    (one) => isErrorCode(one) && ERRORS[one].recovery === recovery,
  );
  return (meant !== undefined && isErrorCode(meant) && RECOVERIES[meant]) || recovery;
}

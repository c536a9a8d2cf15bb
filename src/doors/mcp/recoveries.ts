/**
 * What to do next, said to a model that has tools and nothing else. Limit: only where the table's own words speak
 * of something that a model does not have.
 */
import type { ErrorCode } from "../../schema/errors.ts";

export const RECOVERIES: Partial<Record<ErrorCode, string>> = {
  invalid_request: "Correct the arguments named in details.issues and call the tool again.",
  unauthenticated:
    "Nothing that you can call mends this: tell the user that the MCP configuration needs 'Authorization: Bearer <token>' with a token that is neither revoked nor expired.",
  forbidden:
    "Do not retry. This token's principal may not do that; tell the user who it is (broker_health says so), or use another tool.",
  not_accepted:
    "Do not retry. Pick another agent with discover_agents, or tell the user that the operator has to let you in.",
  agent_unknown: "Call discover_agents for the names that exist, then call the tool again with one of them.",
  delegation_not_found:
    "Check the delegation_id with list_tasks; finished delegations leave after the retention time.",
  lease_unknown: "Drop this work and call poll_inbox for what is next.",
  not_found: "Initialize a new session, or check the address.",
  lease_lost:
    "Stop this work: details.reason says why, and nothing that you send for it counts any more. Call poll_inbox for what is next.",
  already_finished: "Call check_task_status to see how it ended; its state will not change.",
  interrupt_not_open:
    "Call check_task_status to see what it asks now, and answer that question by its interrupt_id.",
  wrong_state: "Call check_task_status and act on its state.",
  limit_reached:
    "Waiting does not help. Put the rest into complete_task, or delegate it separately with delegate_task.",
  payload_too_large: "Send less, or put the content somewhere with a URL and send that.",
  idempotency_conflict: "Leave idempotency_key out, or use a new one for other work.",
  delegation_loop: "Do the work yourself, or call delegate_task with an agent that is not above you.",
  queue_full:
    "Wait retry_after_seconds, then call the tool again; or pick another agent with discover_agents.",
  rate_limited: "Wait retry_after_seconds, then call the tool again; report less often.",
  quota_exceeded:
    "Wait retry_after_seconds, then call the tool again; keep fewer calls waiting at once. If details.quota is 'kept_bytes', tell the user to delete finished delegations, or to ask the operator for a larger share.",
  redis_unavailable:
    "The outcome is unknown. Wait a second, then call the tool again with the same arguments and the same idempotency_key.",
  overloaded: "Wait retry_after_seconds, then call the tool again with the same arguments.",
  shutting_down: "Wait a second, then call the tool again with the same arguments.",
  attempts_exhausted:
    "Every worker that took it was lost. Call discover_agents to see whether any is there, then delegate_task again if the work is still wanted.",
  deadline_exceeded: "Call delegate_task again with a longer ttl_seconds if the work is still wanted.",
  interrupt_expired: "Call delegate_task again, and answer its question sooner with answer_task.",
  not_picked_up:
    "No worker took it in time. Call discover_agents for an agent that is online, then delegate_task again.",
  rejected: "Change the work, or call delegate_task with another agent.",
  canceled: "Call delegate_task again if it is still wanted.",
  agent_error: "The message is the agent's own: change the work, or call delegate_task with another agent.",
};

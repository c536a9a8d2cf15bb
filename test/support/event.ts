/** Events for tests of what reads them: with all members of their kind, as a broker sends them. */
import { toEvent } from "../../src/client/events.ts";
import type { DelegationEvent } from "../../src/schema/event.ts";

const AT = "2026-01-01T00:00:00.000Z";
const ERROR = {
  ...{ category: "UPSTREAM", code: "failed", message: "It failed.", retryable: false },
  recovery: "Read the message.",
};

/** The members of a kind that a test leaves out, by the status or, without one, by the state. */
export const MEMBERS: Readonly<Record<string, object>> = {
  queued: { type: "DELEGATION_SENT", priority: 5, task_preview: "a task" },
  delayed: { type: "DELEGATION_SENT", priority: 5, task_preview: "a task", not_before_at: AT },
  leased: { attempt: 1, worker_id: "w", expires_at: AT },
  reclaimed: { attempt: 1, worker_id: "w", expires_at: AT },
  progress: { progress: {} },
  artifact: { artifact: { artifactId: "a", parts: [] }, append: false, last_chunk: false },
  interrupted: { interrupt: { id: "int", kind: "input", requests: [], raised_at: AT, expires_at: AT } },
  answered: { interrupt_id: "int", by: "operator", answers: {} },
  awaiting: { awaits: { children: ["dlg_0_00000000000000000000000002"], count: 1, left: 1, expires_at: AT } },
  message: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "more" }] }, by: "operator" },
  retrying: { error: ERROR, attempt: 2 },
  over_budget: {
    budget: { limit: { tokens: 1 }, used: { tokens: 2, attempts: 1 }, exceeded: true, stops_at: AT },
  },
  broker_away: { attempt: 1, until: AT, expires_at: AT },
  completed: { type: "DELEGATION_COMPLETE", duration_ms: 0, attempt: 1 },
  failed: { type: "DELEGATION_FAILED", error: ERROR, attempt: 1 },
  canceled: { type: "DELEGATION_FAILED", error: { ...ERROR, code: "canceled" }, attempt: 1 },
  rejected: { type: "DELEGATION_FAILED", error: ERROR, attempt: 1 },
};

/** Throws if it is no event that a broker sends. */
export function eventWith(
  given: { readonly status?: string; readonly state: string; readonly seq: number } & Record<string, unknown>,
): DelegationEvent {
  const { status, state, seq } = given;
  const event = toEvent({
    ...{
      id: `${seq}-0`,
      type: "DELEGATION_STATUS",
      delegation_id: "dlg_0_00000000000000000000000001",
      at: AT,
    },
    ...{ target: "scout", delegator: "operator", context_id: "ctx_1" },
    ...MEMBERS[status ?? state],
    ...given,
  });
  if (
    event === null ||
    event.type === "UNKNOWN" ||
    event.type === "DELEGATION_SNAPSHOT" ||
    event.type === "RESET"
  )
    throw new Error(`not an event: ${JSON.stringify(given)}`);
  return event;
}

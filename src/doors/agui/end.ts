/** The event that ends a run: of a delegation that is finished, or that asks a question. */
import type { AgUiEvent } from "../../schema/ag-ui-event.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { toInterrupt } from "./interrupt.ts";
import { metadataOf } from "./messages.ts";

export interface RunIds {
  readonly threadId: string;
  readonly runId: string;
}

export function endOf(
  ids: RunIds,
  {
    id,
    state,
    interrupt,
    error,
    reply,
    usage,
  }: Pick<Delegation, "id" | "state" | "interrupt" | "error" | "reply" | "usage">,
): AgUiEvent {
  const used = usage && { usage: usage.total };
  if (interrupt) {
    const outcome = { type: "interrupt" as const, interrupts: [toInterrupt(id, interrupt)] };
    return { type: "RUN_FINISHED", ...ids, outcome };
  }
  if (state === "canceled") return { type: "RUN_FINISHED", ...ids, outcome: { type: "cancelled" } };
  if (error) {
    const { message, code, ...more } = error;
    return { type: "RUN_ERROR", message, code, metadata: metadataOf(id, { state, ...more, ...used }) };
  }
  const result = { delegation_id: id, ...(reply && { reply }), ...used };
  return { type: "RUN_FINISHED", ...ids, outcome: { type: "success" }, result };
}

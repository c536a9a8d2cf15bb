/** The event that ends a run: of a delegation that is finished, or that asks a question. */
import type { AgUiEvent, AgUiInterrupt } from "../../schema/ag-ui-event.ts";
import { choicesOf } from "../../schema/choices.ts";
import type { Delegation, Interrupt } from "../../schema/delegation.ts";
import { shownText } from "./content.ts";
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

/** The schema of the payload; absent if the answer can be any text or decision, or if there are several requests. */
function responseSchemaOf({ requests }: Interrupt): Record<string, unknown> | undefined {
  const [only, second] = requests;
  if (!only || second) return undefined;
  const { schema } = only;
  // For an action, the schema describes the arguments.
  const choices = choicesOf(only);
  if (choices.length > 0 && (only.action !== undefined || schema === undefined))
    return { enum: [...choices] };
  return typeof schema === "object" && schema !== null ? { ...schema } : undefined;
}

/** An open question as one AG-UI interrupt, however many requests it has: they are answered together. */
function toInterrupt(delegation_id: string, interrupt: Interrupt): AgUiInterrupt {
  const { id, kind, requests, raised_at, expires_at } = interrupt;
  const responseSchema = responseSchemaOf(interrupt);
  return {
    id,
    reason: kind === "auth" ? "auth_required" : "input_required",
    message: requests.map(({ message }) => shownText(message)).join("\n"),
    ...(responseSchema && { responseSchema }),
    expiresAt: expires_at,
    metadata: metadataOf(delegation_id, { kind, raised_at, requests }),
  };
}

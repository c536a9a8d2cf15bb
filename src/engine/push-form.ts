/**
 * Events as A2A updates in their plainest form: the state, and when it came. Limit: no messages, no artifacts.
 */
import { A2A_STATES, toA2aState } from "../schema/a2a-task.ts";
import { stateSchema } from "../schema/delegation.ts";
import { toInstant } from "../schema/values.ts";
import type { RenderPush } from "./push-delivery.ts";

export const renderPush: RenderPush = async (
  { at, state: stored, delegation_id: id, context_id },
  version,
) => {
  const state = toA2aState(stateSchema.parse(stored));
  const timestamp = toInstant(at);
  if (version === "0.3") {
    const status = { state: A2A_STATES[state].v03, timestamp };
    const task = { kind: "task", id, contextId: context_id, status };
    return { contentType: "application/json", bodies: [JSON.stringify(task)] };
  }
  const statusUpdate = { taskId: id, contextId: context_id, status: { state, timestamp } };
  return { contentType: "application/a2a+json", bodies: [JSON.stringify({ statusUpdate })] };
};

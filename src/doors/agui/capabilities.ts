/** An agent's capabilities in AG-UI's form. AG-UI defines no address for them; its clients look below the agent's URL. */
import type { StoredAgent } from "../../engine/agents/stored-agent.ts";
import type { AgUiCapabilities } from "../../schema/ag-ui-event.ts";
import type { Presence } from "../../schema/agent.ts";

export function toCapabilities({ name, spec, paused }: StoredAgent, presence: Presence): AgUiCapabilities {
  const { description, version, approvals } = spec;
  return {
    identity: {
      ...{ name, type: "errand", version: version || "1" },
      ...(description !== "" && { description }),
      metadata: { errand: { presence, paused } },
    },
    transport: {
      ...{ streaming: true, websocket: false, httpBinary: false, pushNotifications: false },
      // A broken stream cannot be continued; a new run can show the same delegation.
      resumable: false,
    },
    tools: { supported: false, clientProvided: false },
    state: { snapshots: true, deltas: true, persistentState: true },
    multiAgent: { supported: true, delegation: true },
    reasoning: { supported: false },
    humanInTheLoop: {
      ...{ supported: true, approvals: true, interventions: true, interrupts: true },
      approveWithEdits: true,
    },
    custom: { errand: { attach: true, follow_up: true, cancel: true, auto_approve: approvals !== "person" } },
  };
}

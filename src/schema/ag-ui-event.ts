/** The AG-UI 1.0 events and the capabilities that the broker sends. Limit: only the events and members that it uses. */
import * as z from "zod";
import { agUiMessageSchema } from "./ag-ui-input.ts";
import { jsonObjectSchema } from "./json-object.ts";

const metadataSchema = jsonObjectSchema;
const runShape = { threadId: z.string(), runId: z.string() };

/** RFC 6902; the broker needs only these operations. */
const patchSchema = z.array(
  z.discriminatedUnion("op", [
    z.object({ op: z.literal("add"), path: z.string(), value: z.unknown() }),
    z.object({ op: z.literal("replace"), path: z.string(), value: z.unknown() }),
    z.object({ op: z.literal("remove"), path: z.string() }),
  ]),
);
export type JsonPatch = z.infer<typeof patchSchema>;

const agUiInterruptSchema = z.object({
  id: z.string(),
  reason: z.enum(["input_required", "auth_required"]),
  message: z.string(),
  responseSchema: metadataSchema.optional(),
  expiresAt: z.string(),
  metadata: metadataSchema,
});
export type AgUiInterrupt = z.infer<typeof agUiInterruptSchema>;

export const agUiEventSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("RUN_STARTED"),
    ...runShape,
    protocolVersion: z.string(),
    metadata: metadataSchema,
  }),
  z.object({
    type: z.literal("RUN_FINISHED"),
    ...runShape,
    outcome: z.discriminatedUnion("type", [
      z.object({ type: z.literal("success") }),
      z.object({ type: z.literal("cancelled") }),
      z.object({ type: z.literal("interrupt"), interrupts: z.array(agUiInterruptSchema).min(1) }),
    ]),
    result: metadataSchema.optional(),
  }),
  z.object({
    type: z.literal("RUN_ERROR"),
    message: z.string(),
    code: z.string(),
    metadata: metadataSchema,
  }),
  z.object({ type: z.literal("MESSAGES_SNAPSHOT"), messages: z.array(agUiMessageSchema) }),
  z.object({ type: z.literal("STATE_SNAPSHOT"), snapshot: metadataSchema }),
  z.object({ type: z.literal("STATE_DELTA"), delta: patchSchema }),
  z.object({
    type: z.literal("ACTIVITY_SNAPSHOT"),
    messageId: z.string(),
    activityType: z.string(),
    content: metadataSchema,
  }),
  z.object({
    type: z.literal("ACTIVITY_DELTA"),
    messageId: z.string(),
    activityType: z.string(),
    patch: patchSchema,
  }),
  z.object({
    type: z.literal("TEXT_MESSAGE_START"),
    messageId: z.string(),
    role: z.enum(["assistant"]),
    metadata: metadataSchema,
  }),
  z.object({ type: z.literal("TEXT_MESSAGE_CONTENT"), messageId: z.string(), delta: z.string() }),
  z.object({ type: z.literal("TEXT_MESSAGE_END"), messageId: z.string() }),
  z.object({ type: z.literal("STEP_STARTED"), stepName: z.string() }),
  z.object({ type: z.literal("STEP_FINISHED"), stepName: z.string() }),
  z.object({
    type: z.literal("SUBAGENT_STARTED"),
    subagentRunId: z.string(),
    name: z.string(),
    description: z.string(),
  }),
  z.object({
    type: z.literal("SUBAGENT_FINISHED"),
    subagentRunId: z.string(),
    outcome: z.object({ type: z.enum(["success", "suspended"]) }),
  }),
  z.object({
    type: z.literal("SUBAGENT_ERROR"),
    subagentRunId: z.string(),
    message: z.string(),
    code: z.string(),
  }),
  z.object({ type: z.literal("CUSTOM"), name: z.string(), value: z.unknown() }),
]);
/** One event of a run. */
export type AgUiEvent = z.infer<typeof agUiEventSchema>;

export const agUiCapabilitiesSchema = z.object({
  identity: z.object({
    name: z.string(),
    type: z.string(),
    description: z.string().optional(),
    version: z.string(),
    metadata: metadataSchema,
  }),
  transport: z.object({
    streaming: z.boolean(),
    websocket: z.boolean(),
    httpBinary: z.boolean(),
    pushNotifications: z.boolean(),
    resumable: z.boolean(),
  }),
  tools: z.object({ supported: z.boolean(), clientProvided: z.boolean() }),
  state: z.object({ snapshots: z.boolean(), deltas: z.boolean(), persistentState: z.boolean() }),
  multiAgent: z.object({ supported: z.boolean(), delegation: z.boolean() }),
  reasoning: z.object({ supported: z.boolean() }),
  humanInTheLoop: z.object({
    supported: z.boolean(),
    approvals: z.boolean(),
    interventions: z.boolean(),
    interrupts: z.boolean(),
    approveWithEdits: z.boolean(),
  }),
  custom: z.object({ errand: metadataSchema }),
});
/** An agent's capabilities in AG-UI's form. */
export type AgUiCapabilities = z.infer<typeof agUiCapabilitiesSchema>;

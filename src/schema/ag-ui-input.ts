/**
 * The input of a run: `RunAgentInput` of AG-UI 1.0, and the broker's own settings in `forwardedProps.errand`.
 * Members that AG-UI does not define are dropped, as its specification demands. Limit: the application's tools are not called.
 */
import * as z from "zod";
import { delegateSettingsShape } from "./delegate-settings.ts";
import { delegateRequestSchema } from "./delegation.ts";
import { jsonObjectSchema } from "./json-object.ts";
import { LIMITS } from "./limits.ts";
import { boundedArray, contextIdSchema, delegationIdSchema } from "./values.ts";

/** As long as the ids that the broker gives to messages. */
const anyIdSchema = z.string().max(2048);
/** Some clients send `null` for an absent member. */
const optional = <T extends z.ZodType>(schema: T) => schema.nullish();
const metadataSchema = optional(jsonObjectSchema);

/** Drops items of a kind that a later version of AG-UI may have added. */
const ofKnownKind = <T extends z.ZodType>(item: T, member: string, kinds: readonly string[], max: number) =>
  z.preprocess(
    (list: z.input<T>[]) => (Array.isArray(list) ? list.filter((one) => isKnown(one, member, kinds)) : list),
    boundedArray(item, 0, max),
  );

const hasMember = <K extends string>(value: unknown, member: K): value is Record<K, unknown> =>
  typeof value === "object" && value !== null && member in value;

function isKnown(item: unknown, member: string, kinds: readonly string[]): boolean {
  if (!hasMember(item, member)) return true;
  const kind = item[member];
  return typeof kind !== "string" || kinds.includes(kind);
}

const sourceSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("data"), value: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal("url"), value: z.string(), mimeType: optional(z.string()) }),
  z.object({
    type: z.literal("file"),
    value: z.string(),
    mimeType: optional(z.string()),
    provider: optional(z.string()),
  }),
]);

const partShape = { id: optional(z.string()), metadata: optional(z.unknown()) };
const MEDIA = ["image", "audio", "video", "document"] as const;
const contentPartSchema = z.discriminatedUnion("type", [
  z.object({ ...partShape, type: z.literal("text"), text: z.string() }),
  z.object({ ...partShape, type: z.enum(MEDIA), source: sourceSchema }),
]);
/** A piece of a user's message: text, or an image, sound, video or document. */
export type ContentPart = z.output<typeof contentPartSchema>;

const contentSchema = z.union([
  z.string(),
  ofKnownKind(contentPartSchema, "type", ["text", ...MEDIA], LIMITS.parts.value),
]);

const baseShape = {
  id: anyIdSchema,
  name: optional(z.string()),
  encryptedValue: optional(z.string()),
  subagentRunId: optional(z.string()),
  metadata: metadataSchema,
};
const { name: _unnamed, ...namelessShape } = baseShape;

const toolCallSchema = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
  encryptedValue: optional(z.string()),
  metadata: metadataSchema,
});

const ROLES = ["user", "assistant", "system", "developer", "tool", "reasoning", "activity"] as const;
export const agUiMessageSchema = z.discriminatedUnion("role", [
  z.object({ ...baseShape, role: z.literal("user"), content: contentSchema }),
  z.object({
    ...baseShape,
    role: z.literal("assistant"),
    content: optional(z.string()),
    toolCalls: optional(z.array(toolCallSchema)),
  }),
  z.object({ ...baseShape, role: z.enum(["system", "developer"]), content: z.string() }),
  z.object({
    ...namelessShape,
    role: z.literal("tool"),
    content: contentSchema,
    toolCallId: z.string(),
    error: optional(z.string()),
  }),
  z.object({ ...namelessShape, role: z.literal("reasoning"), content: z.string() }),
  z.object({
    ...namelessShape,
    role: z.literal("activity"),
    activityType: z.string(),
    content: jsonObjectSchema,
  }),
]);
/** A message of the conversation, as a client sends it and as a snapshot repeats it. */
export type AgUiMessage = z.output<typeof agUiMessageSchema>;

const resumeEntrySchema = z.object({
  interruptId: z.string().min(1).max(255),
  /** `cancelled` denies a question that offers `deny`; otherwise it cancels the delegation. */
  status: z.enum(["resolved", "cancelled"]),
  /** The body of an answer without `interrupt_id`, a value that fits the question's schema, or one of its options. */
  payload: z.unknown().optional(),
  metadata: metadataSchema,
});
export type ResumeEntry = z.output<typeof resumeEntrySchema>;

export const agUiPropsSchema = z
  .strictObject({
    /** Show the delegation; never delegate. */
    attach: z.boolean().optional(),
    /** The delegation to attach to, or to continue. Default: that of the last user message, or the caller's newest in the thread. */
    delegation_id: delegationIdSchema.optional(),
    /** The last user message is a follow-up to the delegation in progress, not new work. */
    follow_up: z.boolean().optional(),
    /** Cancel the delegation, and everything delegated under it. */
    cancel: z.union([z.boolean(), z.strictObject({ reason: z.string().max(1024).optional() })]).optional(),
    ...delegateSettingsShape,
    metadata: delegateRequestSchema.shape.metadata.unwrap().optional(),
    callback: delegateRequestSchema.shape.callback,
  })
  .refine(
    ({ attach = false, follow_up = false, cancel = false }) =>
      [attach, follow_up, cancel !== false].filter(Boolean).length < 2,
    { error: "give at most one of attach, follow_up and cancel", path: ["attach"] },
  )
  .refine(
    ({ attach, follow_up, cancel, delegation_id }) =>
      delegation_id === undefined || attach || follow_up || cancel,
    {
      error: "requires attach, follow_up or cancel",
      path: ["delegation_id"],
    },
  );
/** The broker's settings of a run. A run that continues work ignores the settings of new work. */
export type AgUiProps = z.output<typeof agUiPropsSchema>;

export const runAgentInputSchema = z.object({
  /** The conversation, which is the delegations' `context_id`: 1 to 512 characters. */
  threadId: contextIdSchema,
  runId: z.string().min(1).max(255),
  protocolVersion: optional(z.string()),
  parentRunId: optional(z.string()),
  /** The last user message becomes the delegation's message. */
  messages: ofKnownKind(agUiMessageSchema, "role", ROLES, LIMITS.parts.value),
  /** Not used: agents cannot call tools of the application. */
  tools: optional(z.array(z.unknown())),
  /** Reaches the agent in the message's metadata, as `ag-ui`. */
  context: optional(z.array(z.object({ description: z.string(), value: z.string() }))),
  /** The application's state. Events write to its member `errand` only. */
  state: z.unknown().optional(),
  forwardedProps: z.preprocess(
    (value) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}),
    z.looseObject({ errand: agUiPropsSchema.optional() }),
  ),
  resume: optional(
    z
      .array(resumeEntrySchema)
      .max(100)
      .refine(
        (entries) => new Set(entries.map(({ interruptId }) => interruptId)).size === entries.length,
        "each interruptId must be unique",
      ),
  ),
});
export type RunAgentInput = z.output<typeof runAgentInputSchema>;

/**
 * What the worker reads of an agent's messages. The schemas accept more than the protocol allows, because agents send
 * kinds that it does not know, and leave out what it requires.
 */
import * as z from "zod";

const absent = <T extends z.ZodType>(schema: T) => schema.nullish().catch(undefined).optional();
const text = z.string();
const meta = absent(z.record(z.string(), z.unknown()));

export const initializedSchema = z.object({
  protocolVersion: z.number(),
  agentInfo: absent(z.object({ name: absent(text), title: absent(text), version: absent(text) })),
  agentCapabilities: absent(
    z.object({
      loadSession: absent(z.boolean()),
      promptCapabilities: absent(z.object({ embeddedContext: absent(z.boolean()) })),
      sessionCapabilities: absent(
        z.object({ resume: absent(z.object({})), additionalDirectories: absent(z.object({})) }),
      ),
    }),
  ),
});
export type Initialized = z.infer<typeof initializedSchema>;

const choiceSchema = z.object({ value: text });
const configOptionSchema = z.object({
  id: text,
  category: absent(text),
  type: absent(text),
  currentValue: z.unknown().optional(),
  /** Values, or groups of them. */
  options: absent(z.array(z.union([choiceSchema, z.object({ options: z.array(choiceSchema) })]))),
});
export type ConfigOption = z.infer<typeof configOptionSchema>;

/** The answer to `session/load` and `session/resume`. */
export const settingsSchema = z.object({
  modes: absent(z.object({ currentModeId: absent(text), availableModes: z.array(z.object({ id: text })) })),
  configOptions: absent(z.array(configOptionSchema)),
});
export type Settings = z.infer<typeof settingsSchema>;
export const newSessionSchema = settingsSchema.extend({ sessionId: text.min(1).max(1024) });

export const promptedSchema = z.object({ stopReason: text, usage: z.unknown().optional(), _meta: meta });
export type Prompted = z.infer<typeof promptedSchema>;

const diffSchema = z.object({ type: z.literal("diff"), path: text, oldText: text.nullish(), newText: text });
export type Diff = z.infer<typeof diffSchema>;
const saidSchema = z.object({
  type: z.literal("content"),
  content: z.object({ type: z.literal("text"), text }),
});
const shownSchema = z.discriminatedUnion("type", [diffSchema, saidSchema]);
/** Terminals and images are for clients that show them. */
const contentSchema = absent(z.array(z.unknown())).transform((all) =>
  all?.flatMap((one) => shownSchema.safeParse(one).data ?? []),
);

const toolShape = {
  toolCallId: text,
  title: absent(text),
  name: absent(text),
  kind: absent(text),
  status: absent(text),
  content: contentSchema.optional(),
  rawInput: z.unknown().optional(),
  _meta: meta,
};
const toolCallSchema = z.object(toolShape);
export type ToolCall = z.infer<typeof toolCallSchema>;

const chunkShape = {
  content: z.object({ type: text, text: absent(text) }),
  messageId: absent(text),
  _meta: meta,
};
const usageUpdateShape = {
  used: absent(z.number()),
  size: absent(z.number()),
  cost: absent(z.object({ amount: z.number(), currency: text })),
};
export const updateSchema = z.discriminatedUnion("sessionUpdate", [
  z.object({ sessionUpdate: z.literal("agent_message_chunk"), ...chunkShape }),
  z.object({ sessionUpdate: z.literal("tool_call"), ...toolShape }),
  z.object({ sessionUpdate: z.literal("tool_call_update"), ...toolShape }),
  z.object({
    sessionUpdate: z.literal("plan"),
    entries: z.array(z.object({ content: text, status: absent(text) })),
  }),
  z.object({ sessionUpdate: z.literal("usage_update"), ...usageUpdateShape }),
]);
export type Update = z.infer<typeof updateSchema>;

export const updateParamsSchema = z.object({ sessionId: text, update: z.unknown().optional() });

const optionSchema = z.object({ optionId: text, name: text, kind: text });
export type PermissionOption = z.infer<typeof optionSchema>;
export const permissionSchema = z.object({
  sessionId: text,
  toolCall: toolCallSchema,
  options: z.array(optionSchema).min(1),
});
export type Permission = z.infer<typeof permissionSchema>;

export const elicitationSchema = z.object({
  sessionId: absent(text),
  mode: text,
  message: text,
  requestedSchema: z.record(z.string(), z.unknown()).optional(),
  url: text.optional(),
});
export type Elicitation = z.infer<typeof elicitationSchema>;

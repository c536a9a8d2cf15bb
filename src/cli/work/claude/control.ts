/**
 * The messages that Claude Code reads and writes besides its events, with `--input-format stream-json` and
 * `--permission-prompt-tool stdio`. They are those of its Agent SDK. Seen with version 2.1.331.
 */
import * as z from "zod";

const absent = <T extends z.ZodType>(schema: T) => schema.nullish().catch(undefined).optional();

/** What Claude Code asks before it uses a tool, as far as the worker shows it. */
export const toolRequestSchema = z.object({
  tool_name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
  tool_use_id: absent(z.string()),
  /** Why it asks. */
  decision_reason: absent(z.string()),
  description: absent(z.string()),
});
export type ToolRequest = z.infer<typeof toolRequestSchema>;

export const controlRequestSchema = z.object({
  type: z.literal("control_request"),
  request_id: z.string(),
  request: z.looseObject({ subtype: z.string() }),
});

export type ToolDecision =
  | { readonly behavior: "allow"; readonly updatedInput: Readonly<Record<string, unknown>> }
  | { readonly behavior: "deny"; readonly message: string };

export const answerTo = (requestId: string, response: ToolDecision) => ({
  type: "control_response",
  response: { subtype: "success", request_id: requestId, response },
});

export const refusalOf = (requestId: string, error: string) => ({
  type: "control_response",
  response: { subtype: "error", request_id: requestId, error },
});

export const userMessage = (text: string, uuid: string) => ({
  type: "user",
  message: { role: "user", content: [{ type: "text", text }] },
  parent_tool_use_id: null,
  uuid,
});

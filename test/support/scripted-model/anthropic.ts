/** Anthropic's messages API. */
import { z } from "zod";
import { type Api, newId, parametersSchema, TOKENS, textOf, toolOf } from "./api.ts";
import type { Item } from "./script.ts";

const blockSchema = z.looseObject({ type: z.string() });
const bodySchema = z.object({
  model: z.string().catch("scripted"),
  stream: z.boolean().catch(false),
  messages: z
    .array(z.object({ role: z.string(), content: z.union([z.string(), z.array(blockSchema)]) }))
    .catch([]),
  tools: z.array(z.object({ name: z.string(), input_schema: parametersSchema })).catch([]),
});

const USAGE = {
  input_tokens: TOKENS.input,
  output_tokens: TOKENS.output,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
};
const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

/** As the provider says it. */
const WORDS: Readonly<Record<number, string>> = {
  401: "invalid x-api-key",
  429: "This request would exceed your account’s rate limit. Please try again later.",
};

export const anthropic: Api = {
  path: /\/messages$/,
  read: (body) => {
    const { model, stream, messages, tools } = bodySchema.parse(body);
    return {
      model,
      streams: stream,
      items: messages.flatMap(itemsOf),
      tools: tools.map((tool) => toolOf(tool.name, tool.input_schema)),
    };
  },
  write: (turn, model, streams) => {
    const isRun = turn.kind === "run";
    const block = isRun
      ? { type: "tool_use", id: newId("toolu"), name: turn.tool, input: turn.arguments }
      : { type: "text", text: turn.text };
    const stop = { stop_reason: isRun ? "tool_use" : "end_turn", stop_sequence: null };
    const message = { id: newId("msg"), type: "message", role: "assistant", model, usage: USAGE };
    if (!streams) return { json: { ...message, content: [block], ...stop } };
    const start = isRun ? { ...block, input: {} } : { type: "text", text: "" };
    const delta = isRun
      ? { type: "input_json_delta", partial_json: JSON.stringify(turn.arguments) }
      : { type: "text_delta", text: turn.text };
    const events = [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: start },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: stop, usage: { output_tokens: TOKENS.output } },
      { type: "message_stop" },
    ];
    return { events: events.map((data) => ({ name: data.type, data })) };
  },
  failed: (status) => ({
    status,
    headers: { "x-should-retry": "false" },
    json: {
      type: "error",
      error: { type: TYPES[status] ?? "api_error", message: WORDS[status] ?? "Try again later." },
    },
  }),
};

function itemsOf({ role, content }: z.infer<typeof bodySchema>["messages"][number]): Item[] {
  // Claude Code shows what the user says during a turn as a message of the system.
  const by = role === "assistant" ? "model" : "user";
  if (typeof content === "string") return [{ by, text: content }];
  return content.map((block) => ({ by: block.type === "tool_result" ? "tool" : by, text: textOf(block) }));
}

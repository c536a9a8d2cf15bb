/** OpenAI's chat completions API. */
import { z } from "zod";
import { type Api, newId, parametersSchema, TOKENS, textOf, toolOf } from "./api.ts";
import type { Item } from "./script.ts";

const bodySchema = z.object({
  model: z.string().catch("scripted"),
  stream: z.boolean().catch(false),
  messages: z.array(z.looseObject({ role: z.string() })).catch([]),
  tools: z
    .array(z.object({ function: z.object({ name: z.string(), parameters: parametersSchema }) }))
    .catch([]),
});

const BY: Readonly<Record<string, Item["by"]>> = { user: "user", tool: "tool" };
const USAGE = {
  prompt_tokens: TOKENS.input,
  completion_tokens: TOKENS.output,
  total_tokens: TOKENS.input + TOKENS.output,
};

/** As the provider says it. */
const WORDS: Readonly<Record<number, string>> = {
  401: "Incorrect API key provided: scripted.",
  429: "You exceeded your current quota, please check your plan and billing details.",
};

export const chat: Api = {
  path: /\/chat\/completions$/,
  read: (body) => {
    const { model, stream, messages, tools } = bodySchema.parse(body);
    return {
      model,
      streams: stream,
      items: messages
        .filter(({ role }) => role !== "system" && role !== "developer")
        .map((message) => ({ by: BY[message.role] ?? "model", text: textOf(message) })),
      tools: tools.map((tool) => toolOf(tool.function.name, tool.function.parameters)),
    };
  },
  write: (turn, model, streams) => {
    const isRun = turn.kind === "run";
    const call = isRun && {
      id: newId("call"),
      type: "function",
      function: { name: turn.tool, arguments: JSON.stringify(turn.arguments) },
    };
    const message = call
      ? { role: "assistant", content: null, tool_calls: [{ index: 0, ...call }] }
      : { role: "assistant", content: isRun ? "" : turn.text };
    const finish_reason = isRun ? "tool_calls" : "stop";
    const common = { id: newId("chatcmpl"), created: 1, model };
    if (!streams)
      return {
        json: {
          ...common,
          object: "chat.completion",
          choices: [{ index: 0, message, finish_reason }],
          usage: USAGE,
        },
      };
    const chunk = { ...common, object: "chat.completion.chunk" };
    return {
      events: [
        { data: { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] } },
        { data: { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage: USAGE } },
        { data: "[DONE]" },
      ],
    };
  },
  failed: (status) => ({
    status,
    headers: { "x-should-retry": "false" },
    json: {
      error: {
        message: WORDS[status] ?? "Try again later.",
        type: status === 429 ? "insufficient_quota" : "invalid_request_error",
        code: status === 429 ? "insufficient_quota" : "invalid_api_key",
      },
    },
  }),
};

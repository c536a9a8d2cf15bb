/** OpenAI's responses API. */
import { z } from "zod";
import { type Api, newId, optional, parametersSchema, TOKENS, textOf, toolOf } from "./api.ts";
import type { Item } from "./script.ts";

const inputSchema = z.looseObject({ type: optional(z.string()), role: optional(z.string()) });
const toolSchema = z.object({ name: optional(z.string()), type: z.string(), parameters: parametersSchema });
/** Codex offers the tools of an MCP server as a namespace. */
const namespaceSchema = toolSchema.extend({ tools: z.array(toolSchema).catch([]) });
const SEPARATOR = "|";

const bodySchema = z.object({
  model: z.string().catch("scripted"),
  stream: z.boolean().catch(false),
  input: z.union([z.string(), z.array(inputSchema)]).catch([]),
  tools: z.array(namespaceSchema).catch([]),
});

const nameOf = ({ name, type }: z.infer<typeof toolSchema>): string => name ?? type;

const toolsOf = (tool: z.infer<typeof namespaceSchema>) =>
  tool.tools.length === 0
    ? [toolOf(nameOf(tool), tool.parameters)]
    : tool.tools.map((one) => toolOf(`${nameOf(tool)}${SEPARATOR}${nameOf(one)}`, one.parameters));

/** With the namespace of the tool, if it has one. */
function calledBy(tool: string): { readonly name: string; readonly namespace?: string } {
  const [first = "", second] = tool.split(SEPARATOR);
  return second === undefined ? { name: first } : { namespace: first, name: second };
}

const USAGE = {
  input_tokens: TOKENS.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: TOKENS.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: TOKENS.input + TOKENS.output,
};

/** As the provider says it. */
const WORDS: Readonly<Record<number, string>> = {
  401: "Incorrect API key provided: scripted.",
  429: "The usage limit has been reached",
};

export const responses: Api = {
  path: /\/responses$/,
  read: (body) => {
    const { model, stream, input, tools } = bodySchema.parse(body);
    return {
      model,
      streams: stream,
      items: typeof input === "string" ? [{ by: "user", text: input }] : input.map(itemOf),
      tools: tools.flatMap(toolsOf),
    };
  },
  write: (turn, model, streams) => {
    const isRun = turn.kind === "run";
    const item = isRun
      ? {
          ...{ type: "function_call", id: newId("fc"), call_id: newId("call"), ...calledBy(turn.tool) },
          ...{ arguments: JSON.stringify(turn.arguments), status: "completed" },
        }
      : {
          ...{ type: "message", id: newId("msg"), role: "assistant", status: "completed" },
          content: [{ type: "output_text", text: turn.text, annotations: [] }],
        };
    const whole = {
      ...{ id: newId("resp"), object: "response", created_at: 1, status: "completed", model },
      ...{ output: [item], usage: USAGE },
    };
    if (!streams) return { json: whole };
    const begun = { ...item, status: "in_progress", ...(isRun ? { arguments: "" } : { content: [] }) };
    const text = isRun
      ? []
      : [
          {
            type: "response.output_text.delta",
            ...{ item_id: item.id, output_index: 0, content_index: 0, delta: turn.text },
          },
        ];
    const events = [
      { type: "response.created", response: { ...whole, status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: begun },
      ...text,
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ];
    return { events: events.map((data) => ({ name: data.type, data })) };
  },
  failed: (status) => ({
    status,
    json: {
      error: {
        type: status === 429 ? "usage_limit_reached" : "invalid_request_error",
        message: WORDS[status] ?? "Try again later.",
        ...(status === 429 && { plan_type: "plus", resets_in_seconds: 3600 }),
      },
    },
  }),
};

function itemOf(input: z.infer<typeof inputSchema>): Item {
  if (input.type?.endsWith("_output")) return { by: "tool", text: textOf(input.output) };
  return { by: input.role === "user" ? "user" : "model", text: textOf(input.content ?? "") };
}

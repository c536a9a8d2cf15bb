/**
 * Codex CLI in non-interactive mode. The flags and the events follow
 * https://developers.openai.com/codex/noninteractive and the output of version 0.169.0.
 */
import * as z from "zod";
import { isObject } from "../../../schema/json-schema/keywords.ts";
import { absent, type Preset, type ResultBySchema, type Seen } from "./preset.ts";

/**
 * The schema of a result as a file for Codex, which passes it on as a strict one. The provider refuses a strict schema
 * unless each object in it is closed and requires all its members, and takes only some keywords
 * (https://platform.openai.com/docs/guides/structured-outputs).
 */
const KEYWORDS = [
  ...["type", "enum", "const", "anyOf", "$ref", "$defs", "title", "description"],
  ...["properties", "required", "additionalProperties", "items", "minItems", "maxItems"],
  ...["multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"],
];

const codexResult: ResultBySchema = {
  takes: (schema) =>
    isObject(schema) && schema.type === "object" && schema.anyOf === undefined && isStrict(schema),
  args: (_schema, file) => ["--output-schema", file],
};

/** The broker has checked the schema, so the values of its keywords have the right form. */
function isStrict(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { type, properties, items, anyOf, $defs } = schema;
  const members = isObject(properties) ? properties : {};
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  const isClosed = schema.additionalProperties === false && requiresAll(schema.required, members);
  const within = [
    ...Object.values(members),
    ...(isObject($defs) ? Object.values($defs) : []),
    ...(Array.isArray(anyOf) ? anyOf : []),
    ...(items === undefined ? [] : [items]),
  ];
  return (
    Object.keys(schema).every((name) => KEYWORDS.includes(name)) &&
    (isClosed || (properties === undefined && !types.includes("object"))) &&
    within.every(isStrict)
  );
}

const requiresAll = (required: unknown, members: object): boolean =>
  Array.isArray(required) && Object.keys(members).every((name) => required.includes(name));

const tokens = z.int().min(0);
const eventSchema = z.object({
  type: z.string(),
  thread_id: absent(z.string()),
  message: absent(z.string()),
  error: absent(z.object({ message: z.string() })),
  usage: absent(
    z.object({
      input_tokens: tokens,
      output_tokens: tokens,
      cached_input_tokens: absent(tokens),
      reasoning_output_tokens: absent(tokens),
    }),
  ),
  item: absent(
    z.object({
      type: z.string(),
      text: absent(z.string()),
      message: absent(z.string()),
      command: absent(z.string()),
    }),
  ),
});
type Event = z.infer<typeof eventSchema>;

export const codex: Preset = {
  program: "codex",
  name: "Codex",
  // Flags come before 'resume'; '-' reads the prompt from stdin.
  args: (session, extra, folders) => [
    ...["exec", "--json"],
    ...folders.flatMap((folder) => ["--add-dir", folder]),
    ...extra,
    ...(session === undefined ? [] : ["resume", session]),
    "-",
  ],
  result: codexResult,
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
  readStderr: (line) => (ESCALATION.test(line) ? { refused: ["a command outside its sandbox"] } : {}),
};

/** Of the program's log: with `exec`, nobody can approve what the sandbox does not allow, and no event says so. */
const ESCALATION = /\bapproval policy is Never\b/;

function seen({ type, thread_id, message, error, item, usage }: Event): Seen {
  if (type === "thread.started") return { session: thread_id ?? undefined };
  if (type === "turn.completed" && usage) {
    const { input_tokens, output_tokens, cached_input_tokens, reasoning_output_tokens } = usage;
    const more = {
      cached_tokens: cached_input_tokens ?? undefined,
      reasoning_tokens: reasoning_output_tokens ?? undefined,
    };
    return { conversationUsage: { input_tokens, output_tokens, ...more } };
  }
  if (type === "turn.failed") {
    const failure = error?.message ?? "the turn failed";
    return { failure, ...spoken(failure) };
  }
  // Not every error ends the turn: Codex also reports reconnections.
  if (type === "error") return { progress: message ?? undefined };
  // A warning, for example of a model that it does not know.
  if (item?.type === "error") return { progress: item.message ?? undefined };
  if (item == null) return {};
  if (item.type === "agent_message" && type === "item.completed")
    return { began: true, answer: item.text ?? "", progress: item.text ?? undefined };
  return { began: true, progress: item.command ?? item.text ?? undefined };
}

/** The error of a failed turn is the program's own text. */
function spoken(text: string): Seen {
  const status = /^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b/.exec(text)?.[1];
  if (status !== undefined) return { status: Number(status) };
  if (/^(?:You(?:'|’)ve hit your usage limit|Quota exceeded)/i.test(text)) return { cause: "limit" };
  if (/^stream disconnected before completion: error sending request\b/.test(text))
    return { cause: "unreachable" };
  return {};
}

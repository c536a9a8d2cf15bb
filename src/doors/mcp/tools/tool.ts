/** A tool as data: its texts, schemas, visibility and handler. The list for clients and the docs are generated from it. */
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Principal } from "../../../engine/access/access.ts";
import { customAsObject } from "../../../schema/custom-as-object.ts";
import type { McpContext } from "../context.ts";
import { toolErrorSchema } from "../errors.ts";
import type { FileBlock } from "./content.ts";
import { checkArguments, readArguments } from "./lenient.ts";

/**
 * A tool's schema as clients see it. Providers refuse a whole request for a keyword that they do not know, so it has only
 * those that all large ones take. What it leaves out, the tool's own check still enforces.
 */
type Json = Readonly<Record<string, unknown>>;

/** Everything that a listed schema may contain. */
const LISTED_KEYWORDS: ReadonlySet<string> = new Set([
  ...["type", "description", "enum", "default", "anyOf"],
  ...["properties", "required", "items", "minItems", "maxItems"],
  ...["minimum", "maximum", "minLength", "maxLength", "pattern"],
]);

const PRIMITIVES = [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "object" }];
/** Any JSON value: a schema without a type is refused, and so is a list without items. */
const ANY = [...PRIMITIVES, { type: "array", items: { anyOf: PRIMITIVES } }];

function toListedSchema(schema: Json): Json {
  const listed: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (!LISTED_KEYWORDS.has(keyword)) continue;
    if (keyword === "properties" && isJson(value)) {
      listed[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, isJson(one) ? toListedSchema(one) : one]),
      );
    } else if (keyword === "items" && isJson(value)) listed[keyword] = toListedSchema(value);
    else if (keyword === "anyOf" && Array.isArray(value)) listed[keyword] = value.map(toListedSchema);
    else listed[keyword] = value;
  }
  if (typeof schema.exclusiveMinimum === "number") listed.minimum = schema.exclusiveMinimum;
  // Its pattern is a page long.
  if (schema.format !== undefined) delete listed.pattern;
  const isTyped = listed.type !== undefined || listed.anyOf !== undefined;
  return isTyped ? listed : { ...listed, anyOf: ANY };
}

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** Text for the model, and the same content as data for programs. */
export interface ToolOutput {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  /** Files, as content after the text. */
  readonly blocks?: readonly FileBlock[];
}

/** Returned in place of a result to clients with the Tasks extension. */
export interface TaskHandle {
  readonly resultType: "task";
  /** The SDK requires it. */
  readonly content: [];
  readonly [member: string]: unknown;
}

/** A protocol result that is sent to the client unchanged, in place of the tool's output. */
export type DirectResult = { readonly result: InputRequiredResult | TaskHandle };

interface ToolSpec<I extends z.ZodRawShape> {
  readonly name: string;
  readonly title: string;
  /** For the model: what it does, when to use it, what to call next. */
  readonly description: string;
  readonly input: I;
  /** Clients see every member as optional, because an error has none of them. */
  readonly output: z.ZodRawShape;
  /** The kinds of principals whose tool list shows it. The engine checks permissions. */
  readonly visibleTo: readonly Principal["kind"][];
  /** The tool changes nothing. */
  readonly readOnly?: true;
  /** The tool may end work, for example by a cancel. */
  readonly destructive?: true;
  /** A repeated call changes nothing more. */
  readonly idempotent?: true;
  /** Names that it does not have, but that a caller may expect: such a member is refused and not ignored. */
  readonly meant?: readonly string[];
  readonly handle: (
    context: McpContext,
    input: z.output<z.ZodObject<I, z.core.$strict>>,
  ) => Promise<ToolOutput | DirectResult>;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly visibleTo: readonly Principal["kind"][];
  readonly readOnly: boolean;
  readonly annotations: Readonly<Record<string, boolean>>;
  readonly input: z.ZodType;
  /** JSON Schemas. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly run: (args: unknown, context: McpContext) => Promise<ToolOutput | DirectResult>;
}

const jsonSchema = (schema: z.ZodType, io: "input" | "output"): Record<string, unknown> => {
  const { $schema: _dialect, ...members } = z.toJSONSchema(schema, { io, unrepresentable: customAsObject });
  return members;
};

/** Of all tools. */
const argumentNames = new Set<string>();

export function defineTool<I extends z.ZodRawShape>(spec: ToolSpec<I>): Tool {
  const {
    name,
    title,
    description,
    readOnly = false,
    destructive = false,
    idempotent = false,
    meant,
    handle,
  } = spec;
  const input = z.strictObject(spec.input);
  const output = z
    .object({ ...spec.output, ignored_arguments: z.array(z.string()) })
    .partial()
    .extend({ error: toolErrorSchema.optional() });
  const schema = jsonSchema(input, "input");
  for (const argument of Object.keys(spec.input)) argumentNames.add(argument);
  return {
    name,
    title,
    description,
    visibleTo: spec.visibleTo,
    readOnly,
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: readOnly || idempotent,
      openWorldHint: !readOnly,
    },
    input,
    inputSchema: toListedSchema(schema),
    outputSchema: jsonSchema(output, "output"),
    async run(sent, context) {
      const read = readArguments(schema, sent, { ...(meant && { meant }), ofTools: argumentNames });
      return withIgnored(await handle(context, checkArguments(input, read)), read.ignored);
    },
  };
}

/** Says which arguments the tool ignored. */
function withIgnored(
  output: ToolOutput | DirectResult,
  ignored: readonly string[],
): ToolOutput | DirectResult {
  if (ignored.length === 0) return output;
  if ("result" in output) {
    const { result } = output;
    const _meta = { ...(isMembers(result._meta) && result._meta), "errand/ignored_arguments": ignored };
    return { result: { ...result, _meta } };
  }
  const text = `${output.text}\n\nIgnored arguments, which this tool does not have: ${ignored.join(", ")}.`;
  return { ...output, text, data: { ...output.data, ignored_arguments: ignored } };
}
const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

export function toCallToolResult(answer: ToolOutput): CallToolResult {
  return {
    content: [{ type: "text", text: answer.text }, ...(answer.blocks ?? [])],
    structuredContent: { ...answer.data },
    ...(answer.isError === true && { isError: true }),
  };
}

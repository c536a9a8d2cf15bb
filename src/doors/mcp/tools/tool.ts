/**
 * A tool as data: what goes in, what comes out, whose it is, and the verb behind it. The list that clients get is made
 * from these, and so are the docs. Limit: a handler calls one verb of the engine; what it shows is view.ts's business.
 */
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Principal } from "../../../engine/access/access.ts";
import { check } from "../../http/route.ts";
import type { Context } from "../context.ts";
import { toolErrorSchema } from "../errors.ts";

/** Text for the model, and the same as data for programs. */
export interface ToolAnswer {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

/** A handle in the place of a result, for clients with the Tasks extension. */
export interface TaskHandle {
  readonly resultType: "task";
  /** The SDK would add it. */
  readonly content: [];
  readonly [member: string]: unknown;
}

/** What is no answer yet. */
export type Unfinished = { readonly result: InputRequiredResult | TaskHandle };

interface Spec<I extends z.ZodRawShape> {
  readonly name: string;
  readonly title: string;
  /** For the model: what it does, when to use it, what to call next. */
  readonly description: string;
  readonly input: I;
  /** Every member may be absent: an answer that is an error has none of them. */
  readonly output: z.ZodRawShape;
  /** Whose list it stands in; who may use it is the engine's to say. */
  readonly for: readonly Principal["kind"][];
  /** It changes nothing. */
  readonly reads?: true;
  /** Something is over after it. */
  readonly ends?: true;
  /** The same call again changes nothing more. */
  readonly repeatable?: true;
  readonly handle: (
    context: Context,
    input: z.output<z.ZodObject<I, z.core.$strict>>,
  ) => Promise<ToolAnswer | Unfinished>;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly for: readonly Principal["kind"][];
  readonly reads: boolean;
  readonly annotations: Readonly<Record<string, boolean>>;
  readonly input: z.ZodType;
  /** JSON Schemas, made once. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly run: (args: unknown, context: Context) => Promise<ToolAnswer | Unfinished>;
}

const jsonSchema = (schema: z.ZodType, io: "input" | "output"): Record<string, unknown> => {
  const { $schema: _dialect, ...members } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return members;
};

export function tool<I extends z.ZodRawShape>(spec: Spec<I>): Tool {
  const { name, title, description, reads = false, ends = false, repeatable = false, handle } = spec;
  const input = z.strictObject(spec.input);
  const output = z.object(spec.output).partial().extend({ error: toolErrorSchema.optional() });
  return {
    name,
    title,
    description,
    for: spec.for,
    reads,
    annotations: {
      readOnlyHint: reads,
      destructiveHint: ends,
      idempotentHint: reads || repeatable,
      openWorldHint: !reads,
    },
    input,
    inputSchema: jsonSchema(input, "input"),
    outputSchema: jsonSchema(output, "output"),
    run: (args, context) => handle(context, check(input, args, "arguments")),
  };
}

export function toResult(answer: ToolAnswer): CallToolResult {
  return {
    content: [{ type: "text", text: answer.text }],
    structuredContent: { ...answer.data },
    ...(answer.isError === true && { isError: true }),
  };
}

/** What one API of a provider reads and writes. */
import { z } from "zod";
import type { Item, OfferedTool, Turn } from "./script.ts";

export interface Api {
  readonly path: RegExp;
  readonly read: (body: unknown) => Asked;
  readonly write: (turn: Exclude<Turn, { kind: "fail" }>, model: string, streams: boolean) => Reply;
  /** An error of the provider with this HTTP status. */
  readonly failed: (status: number) => Reply;
}

export interface Asked {
  readonly model: string;
  readonly streams: boolean;
  readonly items: readonly Item[];
  readonly tools: readonly OfferedTool[];
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly events?: readonly { readonly name?: string; readonly data: unknown }[];
}

/** In each answer, so that a test can tell what a program counts. */
export const TOKENS = { input: 11, output: 7 } as const;

let count = 0;
/** Unique in this process. */
export const newId = (prefix: string): string => {
  count += 1;
  return `${prefix}_${count}`;
};

export const optional = <T extends z.ZodType>(schema: T) => schema.nullish().catch(undefined);

const parameterSchema = z.object({ type: z.unknown().optional() });
export const parametersSchema = optional(
  z.object({ properties: optional(z.record(z.string(), z.unknown())) }),
);

export function toolOf(name: string, schema: z.infer<typeof parametersSchema>): OfferedTool {
  const entries = Object.entries(schema?.properties ?? {}).map(([key, value]) => {
    const { type } = parameterSchema.catch({}).parse(value);
    return [key, { isList: type === "array" || type === "ARRAY" }] as const;
  });
  return { name, parameters: Object.fromEntries(entries) };
}

/** The text of a content that is a text or a list of parts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).join("\n");
  const {
    text,
    content: inner,
    output,
  }: { text?: unknown; content?: unknown; output?: unknown } = Object(content);
  if (typeof text === "string") return text;
  return inner === undefined && output === undefined ? "" : textOf(inner ?? output);
}

/** Schemas of zod and other libraries, by the interfaces that they share: https://standardschema.dev. */
import * as z from "zod";
import { phrase } from "../schema/phrases.ts";

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A schema that knows the type of its value: one of zod 4, or of another library with Standard Schema. */
export interface TypedSchema<T = unknown> {
  readonly "~standard": {
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    /** Needed for a question: people and programs get the schema as JSON. */
    readonly jsonSchema?: {
      input(options: { readonly target: "draft-2020-12" }): Record<string, unknown>;
    };
  };
}

/** Data that a schema refuses, with the reasons and their places. */
export class InvalidDataError extends Error {
  override readonly name = "InvalidDataError";
  /** What is wrong, each with its place, such as `server.port`; empty: the whole. */
  readonly issues: readonly { readonly path: string; readonly reason: string }[];

  constructor(what: string, issues: readonly SchemaIssue[]) {
    const read = issues.map(({ message, path = [] }) => ({
      path: path.map(stepOf).join("."),
      reason: message,
    }));
    super(
      `${what}: ${read.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)).join("; ")}`,
    );
    this.issues = read;
  }
}

const stepOf = (step: PropertyKey | { readonly key: PropertyKey }): string =>
  String(typeof step === "object" ? step.key : step);

export const isTyped = (schema: unknown): schema is TypedSchema =>
  schema !== null && (typeof schema === "object" || typeof schema === "function") && "~standard" in schema;

/** The JSON Schema of a typed schema; any other schema as it is. */
export function jsonSchemaOf(schema: unknown): unknown {
  if (!isTyped(schema)) return schema;
  const { jsonSchema } = schema["~standard"];
  if (!jsonSchema)
    throw new TypeError(
      "this schema has no `~standard.jsonSchema`, so people could not be shown a form: pass a JSON Schema, or a schema of zod 4.2 or later",
    );
  return jsonSchema.input({ target: "draft-2020-12" });
}

/** The value as the schema returns it. Throws {@link InvalidDataError}. */
export async function validated<T>(schema: TypedSchema<T>, value: unknown, what: string): Promise<T> {
  const result = await schema["~standard"].validate(value);
  if (result.issues) throw new InvalidDataError(what, (await issuesIn(schema, value)) ?? result.issues);
  return result.value;
}

/** The issues of a schema of zod. The schema's own messages come first, then those that the program has given zod. */
async function issuesIn(schema: object, value: unknown): Promise<readonly SchemaIssue[] | undefined> {
  if (!(schema instanceof z.ZodType)) return undefined;
  return (await schema.safeParseAsync(value, { error: ownPhrase })).error?.issues;
}
const ownPhrase: z.core.$ZodErrorMap = (issue) => z.config().customError?.(issue) ?? phrase(issue);

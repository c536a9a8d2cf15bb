/** The fields of a JSON Schema that is simple enough for a form. */
import * as z from "zod";

const TYPES = ["string", "number", "integer", "boolean", "array"] as const;

const propertySchema = z.looseObject({
  type: z.enum(TYPES).optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  enum: z.array(z.string()).optional(),
  items: z.looseObject({ enum: z.array(z.string()) }).optional(),
  default: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.int().optional(),
  maxLength: z.int().optional(),
});
const objectSchema = z.looseObject({
  type: z.literal("object"),
  properties: z.record(z.string(), propertySchema),
  required: z.array(z.string()).optional(),
});
/** A schema with one of these keywords gets no form, because a form could not check it. */
const COMPLEX = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties"];

export interface Field {
  readonly name: string;
  readonly type: (typeof TYPES)[number];
  readonly title: string;
  readonly description: string;
  /** The values of an enum, or of a list of enum values. */
  readonly choices: readonly string[];
  readonly isRequired: boolean;
  readonly initial: unknown;
  /** Limits that the browser checks; the rest is checked when the form is sent. */
  readonly limits: {
    readonly min?: number | undefined;
    readonly max?: number | undefined;
    readonly minLength?: number | undefined;
    readonly maxLength?: number | undefined;
  };
}

/** Null: a form cannot express it. */
export function fieldsOf(schema: unknown): readonly Field[] | null {
  const { data } = objectSchema.safeParse(schema);
  if (!data || isComplex(data)) return null;
  const fields: Field[] = [];
  for (const [name, property] of Object.entries(data.properties)) {
    const { type = property.enum ? "string" : undefined, title = name, description = "" } = property;
    const choices = property.enum ?? property.items?.enum ?? [];
    if (type === undefined || isComplex(property) || (type === "array" && choices.length === 0)) return null;
    const isRequired = data.required?.includes(name) === true;
    const { default: initial, minimum: min, maximum: max, minLength, maxLength } = property;
    const limits = type === "string" ? { minLength, maxLength } : { min, max };
    fields.push({ name, type, title, description, choices, isRequired, initial, limits });
  }
  return fields.length > 0 ? fields : null;
}

const isComplex = (schema: object): boolean => COMPLEX.some((key) => key in schema);

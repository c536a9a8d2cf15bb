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
  pattern: z.string().optional(),
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
  /** The limits in words, such as "1 to 9". */
  readonly bounds: readonly string[];
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
    const bounds = boundsOf(type, property);
    fields.push({ name, type, title, description, choices, isRequired, initial, bounds, limits });
  }
  return fields.length > 0 ? fields : null;
}

function boundsOf(type: Field["type"], property: z.infer<typeof propertySchema>): string[] {
  const { minimum, maximum, minLength, maxLength, pattern } = property;
  if (type === "number" || type === "integer") return rangeOf(minimum, maximum, "");
  if (type !== "string") return [];
  return [
    ...rangeOf(minLength, maxLength, " characters"),
    ...(pattern === undefined ? [] : [`pattern ${pattern}`]),
  ];
}

function rangeOf(min: number | undefined, max: number | undefined, unit: string): string[] {
  if (min !== undefined && max !== undefined) return [`${min} to ${max}${unit}`];
  if (min !== undefined) return [`at least ${min}${unit}`];
  return max === undefined ? [] : [`at most ${max}${unit}`];
}

const isComplex = (schema: object): boolean => COMPLEX.some((key) => key in schema);

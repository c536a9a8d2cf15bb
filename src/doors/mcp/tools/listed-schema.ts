/**
 * A tool's schema as clients see it. Providers refuse a whole request for a keyword that they do not know, so it has only
 * those that all large ones take. What it leaves out, the tool's own check still enforces.
 */
type Json = Readonly<Record<string, unknown>>;

/** Everything that a listed schema may contain. */
export const LISTED_KEYWORDS: ReadonlySet<string> = new Set([
  ...["type", "description", "enum", "default", "anyOf"],
  ...["properties", "required", "items", "minItems", "maxItems"],
  ...["minimum", "maximum", "minLength", "maxLength", "pattern"],
]);

const PRIMITIVES = [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "object" }];
/** Any JSON value: a schema without a type is refused, and so is a list without items. */
const ANY = [...PRIMITIVES, { type: "array", items: { anyOf: PRIMITIVES } }];

export function toListedSchema(schema: Json): Json {
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

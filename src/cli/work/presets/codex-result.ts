/**
 * The schema of a result as a file for Codex, which passes it on as a strict one. The provider refuses a strict schema
 * unless each object in it is closed and requires all its members, and takes only some keywords
 * (https://platform.openai.com/docs/guides/structured-outputs).
 */
import { isObject } from "../../../schema/json-schema/keywords.ts";
import type { ResultBySchema } from "./preset.ts";

const KEYWORDS = [
  ...["type", "enum", "const", "anyOf", "$ref", "$defs", "title", "description"],
  ...["properties", "required", "additionalProperties", "items", "minItems", "maxItems"],
  ...["multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"],
];

export const codexResult: ResultBySchema = {
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

/**
 * The schema of a result as an argument of Claude Code: its model must call a tool with the result, which comes apart from
 * the answer. The provider takes only objects as the input of a tool, and no choice at the root.
 */
import { isObject } from "../../../schema/json-schema/keywords.ts";
import type { ResultBySchema } from "./preset.ts";

const CHOICES = ["allOf", "anyOf", "oneOf"];

export const claudeResult: ResultBySchema = {
  takes: (schema) => isObject(schema) && schema.type === "object" && !CHOICES.some((name) => name in schema),
  args: (schema) => ["--json-schema", JSON.stringify(schema)],
  isApart: true,
};

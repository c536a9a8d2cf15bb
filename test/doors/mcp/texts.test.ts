/** Texts for models name only tools and arguments that exist. */
import { expect, test } from "vitest";
import { RECOVERIES } from "../../../src/doors/mcp/recoveries.ts";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { stateSchema } from "../../../src/schema/delegation.ts";
import { ERRORS } from "../../../src/schema/errors.ts";
import { presenceSchema } from "../../../src/schema/presence.ts";

const properties = (schema: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(Object(schema.properties));
const ofErrors = ["retry_after_seconds", "message_id", "kept_bytes", "resets_at"];
const ofWork = ["confirm_by"];

test("texts for models name only tools, arguments and fields that exist", () => {
  const known = new Set<string>([
    ...TOOLS.flatMap(({ name, inputSchema, outputSchema }) => [
      name,
      ...properties(inputSchema),
      ...properties(outputSchema),
    ]),
    ...Object.keys(ERRORS),
    ...stateSchema.options,
    ...Object.keys(presenceSchema.shape),
    ...ofErrors,
    ...ofWork,
  ]);
  const texts = [
    ...Object.entries(RECOVERIES),
    ...TOOLS.map(({ name, description }) => [name, description] as const),
  ];
  for (const [where, text] of texts) {
    const words = text.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [];
    expect(
      words.filter((word) => !known.has(word)),
      where,
    ).toEqual([]);
    expect(text, where).not.toMatch(/\/v1|HTTP|--|\?[a-z]+=/);
  }
});

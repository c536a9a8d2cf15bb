/** Answers of a newer broker: unknown fields are ignored, wrong ones are refused. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { parseLenient } from "../../src/client/lenient.ts";

describe("lenient reading", () => {
  const schema = z.strictObject({
    list: z.array(z.strictObject({ a: z.int(), inner: z.strictObject({ b: z.string() }).nullable() })),
  });

  test("removes unknown fields at every depth and keeps the rest", () => {
    const value = {
      x: 1,
      list: [
        { a: 1, y: 2, inner: { b: "b", z: {} } },
        { a: 2, inner: null },
      ],
    };
    expect(parseLenient(schema, value)).toEqual({
      success: true,
      data: {
        list: [
          { a: 1, inner: { b: "b" } },
          { a: 2, inner: null },
        ],
      },
    });
  });

  test("leaves the value as it was sent", () => {
    const value = { x: 1, list: [] };
    expect(parseLenient(schema, value)).toEqual({ success: true, data: { list: [] } });
    expect(value).toEqual({ x: 1, list: [] });
  });

  test("still refuses wrong values", () => {
    const parsed = parseLenient(schema, { x: 1, list: [{ a: "one", inner: null }] });
    expect(parsed.success).toBe(false);
    expect(parseLenient(schema, undefined).success).toBe(false);
  });
});

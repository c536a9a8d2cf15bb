import { expect, test } from "vitest";
import { hasParts } from "../../../src/doors/agui/content.ts";

test("content is compared as the JSON that is stored", () => {
  const content = (metadata: object) => [{ type: "text" as const, text: "go", metadata }];
  // JSON has no -0.
  expect(hasParts(content({ x: -0, y: 1 }), [{ text: "go", metadata: { y: 1, x: 0 } }])).toBe(true);
  expect(hasParts(content({ x: -1 }), [{ text: "go", metadata: { x: 1 } }])).toBe(false);
  expect(hasParts("go", [{ text: "go" }])).toBe(true);
  expect(hasParts("go", [{ text: "go", filename: "a" }])).toBe(false);
});

import { expect, test } from "vitest";
import { artifactSchema, messageSchema } from "../../src/schema/a2a.ts";
import { delegateRequestSchema } from "../../src/schema/delegation.ts";
import { jsonObjectSchema } from "../../src/schema/json-object.ts";

const OBJECT = { a: 1, b: { c: [] } };

test("an object is passed on as it is, not as a copy of each member", () => {
  expect(jsonObjectSchema.parse(OBJECT)).toBe(OBJECT);
  const message = { role: "ROLE_USER", parts: [{ data: OBJECT }], metadata: OBJECT };
  expect(messageSchema.parse({ ...message, messageId: "m" }).metadata).toBe(OBJECT);
  expect(artifactSchema.parse({ artifactId: "a", parts: [], metadata: OBJECT }).metadata).toBe(OBJECT);
  expect(delegateRequestSchema.parse({ target: "scout", task: "x", metadata: OBJECT }).metadata).toBe(OBJECT);
});

test.each([[null], [[]], ["text"], [1], [undefined], [new Date(0)], [new Map()], [new Uint8Array(1)]])(
  "%j is none",
  (value) => {
    expect(jsonObjectSchema.safeParse(value).error?.issues).toMatchObject([
      { message: "Invalid input: expected an object" },
    ]);
  },
);

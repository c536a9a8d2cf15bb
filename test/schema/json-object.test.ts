import { expect, test } from "vitest";
import { artifactSchema, messageSchema } from "../../src/schema/a2a.ts";
import { delegateRequestSchema } from "../../src/schema/delegation.ts";
import { readAs } from "../../src/schema/issues.ts";
import { jsonObjectSchema } from "../../src/schema/json-object.ts";

const OBJECT = { a: 1, b: { c: [] } };

test("an object is passed on as it is, not as a copy of each member", () => {
  expect(jsonObjectSchema.parse(OBJECT)).toBe(OBJECT);
  const message = { role: "ROLE_USER", parts: [{ data: OBJECT }], metadata: OBJECT };
  expect(messageSchema.parse({ ...message, messageId: "m" }).metadata).toBe(OBJECT);
  expect(artifactSchema.parse({ artifactId: "a", parts: [], metadata: OBJECT }).metadata).toBe(OBJECT);
  expect(delegateRequestSchema.parse({ target: "scout", task: "x", metadata: OBJECT }).metadata).toBe(OBJECT);
});

test.each([
  [null, "must be an object, not null"],
  [[], "must be an object, not a list"],
  ["text", "must be an object, not a string"],
  [1, "must be an object, not a number"],
  [undefined, "missing"],
  [new Date(0), "must be an object"],
  [new Map(), "must be an object"],
  [new Uint8Array(1), "must be an object"],
])("%j is none", (value, message) => {
  expect(readAs(jsonObjectSchema, value).error?.issues).toMatchObject([{ message }]);
});

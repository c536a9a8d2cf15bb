/** How an error of the library looks when nobody catches it. */
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { localError } from "../../src/client/errors.ts";

test("an error that is printed says once what is wrong and what to do; its JSON is the problem document", () => {
  const error = localError({
    code: "unreachable",
    category: "TRANSPORT",
    detail: "nothing answers at http://127.0.0.1:1",
    recovery: "Start the broker.",
  });
  const printed = inspect(error);
  for (const text of ["nothing answers at", "Start the broker.", "'unreachable'"])
    expect(printed.split(text)).toHaveLength(2);
  expect(JSON.parse(JSON.stringify(error))).toEqual(error.problem);
});

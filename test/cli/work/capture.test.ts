/** Which line of a command's output is its progress. */
import { expect, test } from "vitest";
import { LatestLine } from "../../../src/cli/work/capture.ts";

const latest = (...chunks: readonly Buffer[]) => {
  const lines = new LatestLine(100);
  return chunks.map((chunk) => lines.add(chunk));
};

test("lines that are not UTF-8 are skipped, and characters cut between chunks are not", () => {
  expect(latest(Buffer.from("one\ncaf\xe9\n", "latin1"))).toEqual(["one"]);
  const whole = Buffer.from("one\ncafé\n");
  expect(latest(whole.subarray(0, 8), whole.subarray(8))).toEqual(["one", "café"]);
});

test("what follows a NUL byte is binary, also where it looks like text", () => {
  const png = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n", "latin1");
  expect(latest(Buffer.from("drawing\n"), png, Buffer.from("k\nz\n"))).toEqual([
    "drawing",
    undefined,
    undefined,
  ]);
});

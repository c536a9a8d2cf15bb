/** What the supervisor learns when no process can be started. */
import { expect, onTestFinished, test } from "vitest";
import type { ChildEnd } from "../../src/gateways/child.ts";
import { forkWith } from "../../src/gateways/fork.ts";

test("a gateway whose process cannot be started ends with the code of a temporary failure, and says why", async () => {
  const node = process.execPath;
  process.execPath = "/none/node";
  onTestFinished(() => {
    process.execPath = node;
  });
  const lines: string[] = [];
  const child = forkWith((line) => lines.push(line))();
  const end = await new Promise<ChildEnd>((resolve) => child.onEnd(resolve));
  expect(end).toEqual({ code: 75, signal: null });
  expect(lines.join()).toContain("ENOENT");
});

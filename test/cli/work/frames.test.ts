/** Lines of JSON as programs print them, read from stdout. */
import { expect, test } from "vitest";
import { Frames } from "../../../src/cli/work/acp/frames.ts";
import { codex } from "../../../src/cli/work/presets/codex.ts";
import { gemini } from "../../../src/cli/work/presets/gemini.ts";
import { lines, verdictOf } from "./verdict-of.ts";

function framesOf(text: string, size: number) {
  const frames: unknown[] = [];
  const others: string[] = [];
  const reader = new Frames({
    onFrame: (line) => frames.push(JSON.parse(Buffer.from(line).toString("utf8"))),
    onOther: (line) => others.push(line.toString("utf8")),
    onEndless: () => undefined,
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.add(bytes.subarray(at, at + size));
  return { frames, others };
}

test.each([1, 3, 1_000])(
  "white space and byte order marks before a frame are no part of it (%i bytes)",
  (size) => {
    const text = '\uFEFF{"a":1}\n  {"b":2}\r\n\uFEFF\t{"c":3}\n\r\n  a warning {"d":4}\n';
    const { frames, others } = framesOf(text, size);
    expect(frames).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
    expect(others.join("")).toContain('a warning {"d":4}');
  },
);

test("a preset's program may begin with a byte order mark, and write null for what it leaves out", () => {
  const usage = { input_tokens: 10, output_tokens: 2, cached_input_tokens: null };
  const said = { type: "agent_message", text: "hi", command: null, message: null };
  const { verdict, run } = verdictOf(
    codex,
    `\uFEFF${lines(
      { type: "thread.started", thread_id: "t1", message: null, error: null, item: null, usage: null },
      { type: "item.completed", message: null, item: said },
      { type: "turn.completed", usage },
    )}`,
  );
  expect(verdict).toEqual({ kind: "completed", answer: "hi" });
  expect([run.session, run.used.conversationUsage]).toEqual(["t1", { input_tokens: 10, output_tokens: 2 }]);
  expect(verdictOf(gemini, `\uFEFF${lines({ type: "init", session_id: "s" })}`).run.session).toBe("s");
});

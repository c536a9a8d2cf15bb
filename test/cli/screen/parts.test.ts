/** The parts of a full-screen view: keys, the text field, wrapped text, the position in a text. */
import { emitKeypressEvents, type Key as ReadlineKey } from "node:readline";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { type Key, KeyDecoder } from "../../../src/cli/screen/keys.ts";
import { Scroll } from "../../../src/cli/screen/scroll.ts";
import { TextField } from "../../../src/cli/screen/text-field.ts";
import { wrapped } from "../../../src/cli/screen/wrap.ts";
import { displayWidth } from "../../../src/cli/show/text.ts";

function keysOf(typed: string): Key[] {
  const stream = new PassThrough();
  const decoder = new KeyDecoder();
  const keys: Key[] = [];
  emitKeypressEvents(stream);
  stream.on("keypress", (text: string | undefined, key: ReadlineKey) => {
    keys.push(...decoder.decode(text, key));
  });
  stream.emit("data", Buffer.from(typed));
  return keys;
}

test("keys have names; a pasted text is one key that presses no other", () => {
  expect(keysOf("aJ é😀").map(({ name, text }) => [name, text])).toEqual(
    ["a", "J", " ", "é", "😀"].map((text) => [text, text]),
  );
  expect(keysOf("\u001b[A\r\n\u007f\u0015\u001b[Z\u001ba\u001b[6~").map(({ name }) => name)).toEqual([
    "up",
    "enter",
    "enter",
    "backspace",
    "ctrl+u",
    "shift+tab",
    "escape",
    "a",
    "pagedown",
  ]);
  expect(keysOf("\u001b[200~a\rq\u001b[31m\u001b[201~d")).toEqual([
    { name: "paste", text: "a\nq" },
    { name: "d", text: "d" },
  ]);
  // A paste that never ends does not catch Ctrl-C.
  expect(keysOf("\u001b[200~x\u0003y").map(({ name }) => name)).toEqual(["ctrl+c", "y"]);
});

function typed(field: TextField, keys: string): TextField {
  for (const key of keysOf(keys)) field.press(key);
  return field;
}

test("a text field has the usual keys, and moves by whole characters", () => {
  const field = typed(new TextField(), "one two👩‍👧‍👦");
  expect(typed(field, "\u007f").text).toBe("one two");
  expect(typed(field, "\u0017three").text).toBe("one three");
  expect(typed(field, "\u0001\u001b[C\u001b[3~x\u0005!").text).toBe("oxe three!");
  expect(typed(field, "\u001b[D\u001b[D\u000b").text).toBe("oxe thre");
  expect(typed(field, "\u0015").text).toBe("");
  expect(field.press({ name: "f5", text: "" })).toBe(false);
});

test("the rows of a text field fit, show the cursor in its place, and hide a secret", () => {
  expect(new TextField("日本語").rows(4)).toEqual({ rows: ["日本", "語"], cursor: { row: 1, column: 2 } });
  expect(new TextField("abcd").rows(4)).toEqual({ rows: ["abcd", ""], cursor: { row: 1, column: 0 } });
  expect(new TextField("a\nb").rows(9)).toEqual({ rows: ["a⏎", "b"], cursor: { row: 1, column: 1 } });
  expect(new TextField("a\nb").rows(9, true).rows).toEqual(["•••"]);
  expect(new TextField("\u202ea\u009bb").rows(9).rows).toEqual(["\ufffda b"]);
  expect(typed(new TextField("日本語"), "\u001b[D\u001b[D").rows(9).cursor).toEqual({ row: 0, column: 2 });
});

test("text is broken between words, or within a long one; lines keep their indentation", () => {
  expect(wrapped("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrapped("  one two three\n\nend", 7)).toEqual(["  one", "  two", "  three", "", "end"]);
  expect(wrapped("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
  expect(wrapped("\u001b[2Jred\u202e\u0007 x", 20)).toEqual(["red  x"]);
  const text = `${"長い文章を書く😀 and words ".repeat(30)}\n${"\t".repeat(30)}deep`;
  for (const width of [1, 2, 5, 80]) {
    const widths = wrapped(text, width).map(displayWidth);
    expect(Math.max(...widths)).toBeLessThanOrEqual(Math.max(2, width));
  }
});

test("a position stays within its text", () => {
  const scroll = new Scroll();
  scroll.fit(30, 10);
  for (const [name, at] of [
    ["down", 1],
    ["k", 0],
    ["up", 0],
    ["pagedown", 9],
    ["G", 20],
    ["j", 20],
    [" ", 20],
    ["home", 0],
  ] as const) {
    scroll.press(name);
    expect([name, scroll.at]).toEqual([name, at]);
  }
  scroll.press("end");
  scroll.fit(12, 10);
  expect(scroll.at).toBe(2);
  scroll.fit(3, 10);
  expect(scroll.at).toBe(0);
});

/** Web addresses in plain text. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { piecesOf } from "../../src/console/ui/pieces.ts";

const linksIn = (text: string): string[] =>
  piecesOf(text).flatMap((piece) => (piece.isLink ? [piece.text] : []));

test.each([
  ["Done: https://git.example.com/web/pull/4812", ["https://git.example.com/web/pull/4812"]],
  ["open https://git.example.com/login/device …", ["https://git.example.com/login/device"]],
  ["See http://a.example/b?c=d&e=f#g.", ["http://a.example/b?c=d&e=f#g"]],
  ["(https://a.example/b) and https://a.example/c, too", ["https://a.example/b", "https://a.example/c"]],
  ["https://de.example/wiki/Rot_(Farbe).", ["https://de.example/wiki/Rot_(Farbe)"]],
  ["**https://a.example/b**", ["https://a.example/b"]],
  ["见https://a.example/c，请看", ["https://a.example/c"]],
  // Not the whole address, another host than it seems, no web, no address.
  ["https://de.example/wiki/München", []],
  ["https://bank.example@evil.example/ https://:bank.example@evil.example/", []],
  ["javascript:alert(1) file:///etc/passwd xhttps://a.example", []],
  ["http:// https://) https://[", []],
])("%s", (text, links) => {
  expect(linksIn(text)).toEqual(links);
});

test("the pieces together are the text, and each link is a web address", async () => {
  const words = [
    "https://",
    "http://a.example",
    "/b",
    ")",
    "(",
    ".",
    "]",
    "é",
    "，",
    " ",
    "javascript:",
    "@",
    "\n",
  ];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: "grapheme" })))
    .map((all) => all.join(""));
  await fc.assert(
    fc.property(text, (given) => {
      const pieces = piecesOf(given);
      expect(pieces.map((piece) => piece.text).join("")).toBe(given);
      for (const { text: piece, isLink } of pieces)
        if (isLink) expect(new URL(piece).protocol).toMatch(/^https?:$/);
    }),
  );
});

test("a hostile text is quickly read: of many links the others are text, and so is a very long one", () => {
  expect(linksIn("https://a.example ".repeat(1_000))).toHaveLength(200);
  expect(linksIn(`https://a.example/${"b".repeat(2_000)}`)).toEqual([]);
  expect(linksIn(`https://a.example/${")".repeat(200_000)}`.repeat(5))).toEqual([]);
  expect(linksIn("https://".repeat(100_000))).toEqual([]);
});

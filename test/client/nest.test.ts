/** A tree from a list of delegations. */
import { expect, test } from "vitest";
import { type Nested, nest } from "../../src/client/tree.ts";

type One = { readonly id: string; readonly parent_id: string | null };

const of = (line: string): One[] =>
  line.split(" ").map((pair) => {
    const [id = "", parent] = pair.split("<");
    return { id, parent_id: parent ?? null };
  });

const drawn = ({ one, below, isOrphan }: Nested<One>): string =>
  `${isOrphan ? "?" : ""}${one.id}${below.length === 0 ? "" : `(${below.map(drawn).join(" ")})`}`;

test.each([
  ["level by level", "r a<r b<r c<a d<a e<b", "r(a(c d) b(e))"],
  ["children before their parents", "e<b c<a d<a b<r a<r r", "r(b(e) a(c d))"],
  ["the root is a child itself", "r<above a<r", "r(a)"],
  ["a parent that was not read", "r a<r c<gone d<c", "r(a ?c(d))"],
  ["one alone", "r", "r"],
])("%s", (_, given, expected) => {
  const root = nest(of(given), "r");
  expect(root && drawn(root)).toBe(expected);
});

test("without the root there is no tree", () => {
  expect(nest(of("a<r"), "r")).toBeUndefined();
});

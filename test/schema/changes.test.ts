import fc from "fast-check";
import { expect, test } from "vitest";
import { boundedChanges, type Change, changeSchema, changesOf, pathText } from "../../src/schema/changes.ts";

/** Often with the same names and values, so that two of them differ in a few places only. */
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, -0, 1e21, "", "a", "a\r\n", "💾", "\ud800"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc
      .array(fc.tuple(fc.constantFrom("a", "b", "__proto__", "constructor", "0"), tie("value")), {
        maxLength: 4,
      })
      .map((members) => Object.fromEntries(members)),
  ),
})).value;

/** As the other side reads it. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function apply(value: unknown, { path, ...change }: Change): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return change.to;
  const isLast = rest.length === 0;
  const inner = (own: unknown) => apply(own, { path: rest, ...change });
  if (Array.isArray(value)) return value.map((item, index) => (index === name ? inner(item) : item));
  const entries = Object.entries(value ?? {});
  if (isLast && !("to" in change)) return Object.fromEntries(entries.filter(([own]) => own !== name));
  if (isLast && !("from" in change)) return Object.fromEntries([...entries, [name, change.to]]);
  return Object.fromEntries(entries.map(([own, member]) => [own, own === name ? inner(member) : member]));
}

test("a value has no changes from itself", () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(changesOf(value, sent(value))).toEqual([]);
    }),
  );
});

test("the changes make one value of the other, and no part is named twice", () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const changes = changesOf(before, after);
      expect(sent(changes.reduce(apply, before))).toEqual(sent(after));
      expect(new Set(changes.map(({ path }) => JSON.stringify(path))).size).toBe(changes.length);
      expect(changes.every((change) => changeSchema.safeParse(change).success)).toBe(true);
    }),
  );
});

test("only the own members of a value count", () => {
  const proto: unknown = JSON.parse('{ "__proto__": 1 }');
  expect(changesOf({}, proto)).toEqual([{ path: ["__proto__"], to: 1 }]);
  expect(changesOf(proto, {})).toEqual([{ path: ["__proto__"], from: 1 }]);
  expect(changesOf({}, { constructor: 1 })).toEqual([{ path: ["constructor"], to: 1 }]);
});

test("what changed is named as finely as it can be", () => {
  const before = { hosts: ["a", "b"], limits: { cpu: 1 }, tags: ["x"], old: 1, items: [{ n: 1 }, { n: 2 }] };
  const after = {
    hosts: ["a", "c"],
    limits: { cpu: 2 },
    tags: ["x", "y"],
    new: null,
    items: [{ n: 1 }, { n: 3 }],
  };
  expect(changesOf(before, after)).toEqual([
    { path: ["hosts", 1], from: "b", to: "c" },
    { path: ["limits", "cpu"], from: 1, to: 2 },
    { path: ["tags"], from: ["x"], to: ["x", "y"] },
    { path: ["old"], from: 1 },
    { path: ["items", 1, "n"], from: 2, to: 3 },
    { path: ["new"], to: null },
  ]);
  expect(changesOf({ a: {} }, { a: [] })).toEqual([{ path: ["a"], from: {}, to: [] }]);
  expect(pathText(["items", 1, "n"])).toBe("items.1.n");
});

test("of many and long changes a bounded part is kept, and it is bounded already", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\0", '"', "💾", "\ud800"), maxLength: 400 });
  const value = fc.oneof(json, text, fc.array(text, { maxLength: 3 }));
  const change = fc.record(
    {
      path: fc.array(fc.oneof(text, fc.nat()), { maxLength: 20 }),
      from: value,
      to: value,
    },
    { requiredKeys: ["path"] },
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const bounded = boundedChanges(changes);
      expect(bounded.total).toBe(changes.length);
      expect(bounded.changes.length).toBe(Math.min(20, changes.length));
      for (const [index, { path, ...values }] of bounded.changes.entries()) {
        const { path: _, ...full } = changes[index] ?? { path: [] };
        expect(Object.keys(values)).toEqual(Object.keys(full));
        expect(path.length).toBeLessThanOrEqual(16);
        for (const name of path) expect(String(name).length).toBeLessThanOrEqual(101);
        for (const one of Object.values(values)) expect(JSON.stringify(one).length).toBeLessThanOrEqual(200);
      }
      expect(boundedChanges(bounded.changes).changes).toEqual(bounded.changes);
    }),
  );
  const short = [{ path: ["hosts"], from: 12, to: "x".repeat(198) }];
  expect(boundedChanges(short).changes).toEqual(short);
  expect(boundedChanges([{ path: [], to: "x".repeat(199) }]).changes[0]?.to).toBe(`${"x".repeat(197)}…`);
});

test("ten thousand leaves are compared, and the one that differs is found", () => {
  const rows = (last: number) => Array.from({ length: 10_000 }, (_, n) => ({ n: n === 9_999 ? last : n }));
  expect(changesOf({ rows: rows(1) }, { rows: rows(2) })).toEqual([
    { path: ["rows", 9_999, "n"], from: 1, to: 2 },
  ]);
});

/** The files of a delegation in the console: names, sizes, types, tables, and the beginnings of long texts. */
import { expect, test } from "vitest";
import { filesOf } from "../../src/console/delegation/files/file-list.ts";
import { endingOf, kindOf, typeOf, typeWord } from "../../src/console/delegation/files/kinds.ts";
import { beginningOf } from "../../src/console/delegation/files/lines.ts";
import { parseTable } from "../../src/console/delegation/files/table.ts";
import { bytesIn, bytesOf, safeName, sizeText, textIn } from "../../src/console/ui/bytes.ts";
import { isMarkdown } from "../../src/console/ui/marks.ts";
import { type Delegation, delegationSchema } from "../../src/schema/delegation.ts";
import { eventWith } from "../support/event.ts";

test.each([
  ["notes.md", "notes.md"],
  ["../../etc/passwd", "passwd.txt"],
  ["C:\\Users\\ann\\run.log", "run.log"],
  [".bashrc", "bashrc.txt"],
  ["", "file.txt"],
  ["///", "file.txt"],
  ["..", "file.txt"],
  // Letters that turn the others round would hide the ending.
  ["invoice\u202Efdp.exe", "invoicefdp.exe"],
  ['a<b>:"c|d?*.txt', "a_b___c_d__.txt"],
  ["line\nbreak\u0000.txt", "linebreak.txt"],
  ["con.txt", "_con.txt"],
  ["Übersicht für März.csv", "Übersicht für März.csv"],
  ["no ending", "no ending.txt"],
  [`${"long".repeat(100)}.tar.gz`, `${"long".repeat(25)}.gz`],
  ["😀".repeat(200), `${"😀".repeat(100)}.txt`],
])("%j is saved as %j", (name, safe) => {
  expect(safeName(name, "txt")).toBe(safe);
});

test("names and contents that an agent made to be slow are not", () => {
  // In linear time: quadratic would be hours, and the test would end it.
  expect(safeName(`a${" ".repeat(900_000)}a`, "txt").length).toBeLessThan(120);
  expect(bytesIn(`${"=".repeat(1_000_000)}A`)).toBe(750_000);
});

test("sizes in words, and the bytes of base64", () => {
  expect([0, 1, 999, 1_000, 42_345, 999_960, 12_345_678].map(sizeText)).toEqual([
    "0 bytes",
    "1 byte",
    "999 bytes",
    "1.0 kB",
    "42.3 kB",
    "1.0 MB",
    "12.3 MB",
  ]);
  for (const text of ["", "a", "ab", "abc", "grün"]) {
    const base64 = Buffer.from(text).toString("base64");
    expect([bytesIn(base64), bytesIn(base64.replaceAll("=", "")), textIn(base64)]).toEqual([
      Buffer.byteLength(text),
      Buffer.byteLength(text),
      text,
    ]);
  }
  expect(textIn("/w==")).toBeNull();
  expect([...(bytesOf("_-8") ?? [])]).toEqual([255, 239]);
  expect(bytesOf("not base64!")).toBeNull();
});

test.each([
  ["text/csv; charset=utf-8", "x", "text/csv", "table"],
  ["Text/X-Diff", "x", "text/x-diff", "diff"],
  ["application/octet-stream", "fix.PATCH", "text/x-diff", "diff"],
  ["text/plain", "notes.md", "text/markdown", "markdown"],
  ["text/plain", "run", "text/plain", "text"],
  [undefined, "run.log", "text/plain", "text"],
  [undefined, "table.tsv", "text/tab-separated-values", "table"],
  ["application/problem+json", "x", "application/problem+json", "json"],
  // It may hold scripts.
  ["image/svg+xml", "x.svg", "image/svg+xml", "other"],
  ["application/zip", "pixel.png", "application/zip", "other"],
])("%s, %s: %s, shown as %s", (mediaType, name, type, kind) => {
  expect([typeOf(mediaType, name), kindOf(typeOf(mediaType, name))]).toEqual([type, kind]);
});

test("a type in words, and the ending of a name that has none", () => {
  expect(["", "text/csv", "application/gzip", "image/webp"].map(typeWord)).toEqual([
    "text",
    "table",
    "application/gzip",
    "image",
  ]);
  expect(["text/markdown", "image/jpeg", "text/x-python", "", "application/gzip"].map(endingOf)).toEqual([
    "md",
    "jpg",
    "txt",
    "bin",
    "bin",
  ]);
});

const table = (text: string, rows = 9, columns = 9) => parseTable(text, { rows, columns });

test("fields in quotes have separators, line breaks and quotes", () => {
  expect(table('a,"b, c","d ""e"""\r\n1,"two\nlines",\r\n').rows).toEqual([
    ["a", "b, c", 'd "e"'],
    ["1", "two\nlines", ""],
  ]);
  expect(table("\ufeffa;b\n1,5;2").rows).toEqual([
    ["a", "b"],
    ["1,5", "2"],
  ]);
  expect(table("a\tb\n\nc").rows).toEqual([
    ["a", "b"],
    ["", ""],
    ["c", ""],
  ]);
  // Not closed, and text after the quotes.
  expect(table('a,b\n"c, d').rows).toEqual([
    ["a", "b"],
    ["c, d", ""],
  ]);
  expect(table('a,b\n"c"d,e,').rows).toEqual([
    ["a", "b", ""],
    ["cd", "e", ""],
  ]);
  expect(table("").rows).toEqual([]);
  expect(table('"').rows).toEqual([[""]]);
});

test("of a large table, the first rows and columns are taken, and the others counted", () => {
  const text = Array.from({ length: 100 }, (_, row) => `${row},${"x,".repeat(row)}`).join("\n");
  const { rows, moreRows, moreColumns } = table(text, 3, 2);
  expect(rows).toEqual([
    ["0", ""],
    ["1", "x"],
    ["2", "x"],
  ]);
  expect([moreRows, moreColumns]).toEqual([97, 99]);
});

test("the beginning of a text is so many lines, and of each so many characters", () => {
  const cut = (text: string) => beginningOf(text, { lines: 2, width: 3 });
  expect(cut("a\nb\n")).toEqual({ text: "a\nb", lines: 2, isWhole: true });
  expect(cut("a\nb\nc")).toEqual({ text: "a\nb", lines: 3, isWhole: false });
  expect(cut("abcd\nb")).toEqual({ text: "abc…\nb", lines: 2, isWhole: false });
  expect(cut("")).toEqual({ text: "", lines: 1, isWhole: true });
});

test("a text that says it is plain is not Markdown, whatever signs it has", () => {
  const of = (text: string, mediaType?: string) => isMarkdown({ text, mediaType });
  expect([
    of("# A"),
    of("a **b**"),
    of("- a"),
    of("[a](b)"),
    of("x", "text/markdown; charset=utf-8"),
  ]).toEqual(Array(5).fill(true));
  expect([of("def __init__(self):"), of("a * b"), of("# A", "text/plain"), of("2 ** 3")]).toEqual(
    Array(4).fill(false),
  );
});

test("texts in a row are one file, with the time of its latest part; other files stand where they came from", () => {
  const parts = [{ text: "one\ntw", mediaType: "text/plain" }, { text: "o\n" }, { data: { a: 1 } }];
  const raw = Buffer.from("a,b").toString("base64");
  const delegation = {
    target: "scout",
    delegator: "caller:ann",
    created_at: "2026-01-01T00:00:00.000Z",
    finished_at: "2026-01-01T00:01:00.000Z",
    artifacts: [
      { artifactId: "a1", name: "run.log", parts: parts.slice(0, 2) },
      { artifactId: "a2", parts },
    ],
    message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "Do" }, { raw, filename: "in.csv" }] },
    reply: {
      messageId: "m2",
      role: "ROLE_AGENT",
      parts: [{ url: "https://files.example/out/report.pdf?a=b" }],
    },
    history: [],
  } satisfies Partial<Delegation>;
  const read = delegationSchema.pick({
    ...{ target: true, delegator: true, created_at: true, finished_at: true },
    ...{ artifacts: true, message: true, reply: true, history: true },
  });
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
  const event = (second: number) =>
    eventWith({
      ...{ seq: second, at: at(second), state: "working", status: "artifact" },
      artifact: { artifactId: "a1", superseded: true },
    });
  const groups = filesOf(read.parse(delegation), [event(1), event(2)]);
  const seen = groups.map(({ title, files }) => [
    title,
    ...files.map(({ name, size, parts, at, pieces }) => [
      name,
      size,
      parts,
      at,
      ...pieces.map(({ kind, content }) => `${kind}: ${content}`),
    ]),
  ]);
  expect(seen).toEqual([
    [
      "From scout",
      ["run.log", 8, 2, at(2), "text: one\ntwo\n"],
      ["a2", 8 + '{\n  "a": 1\n}'.length, 3, null, "text: one\ntwo\n", 'json: {\n  "a": 1\n}'],
    ],
    [
      "In its reply",
      ["report.pdf", 0, 1, delegation.finished_at, "link: https://files.example/out/report.pdf?a=b"],
    ],
    ["With the task, from ann", ["in.csv", 3, 1, delegation.created_at, `table: ${raw}`]],
  ]);
});

test("the pieces of a file are one file; two files of one artifact are two", () => {
  const message = { messageId: "m1", role: "ROLE_USER" as const, parts: [{ text: "Do" }] };
  const contents = (parts: Delegation["artifacts"][number]["parts"]) => {
    const of = {
      target: "scout",
      delegator: "operator" as const,
      reply: null,
      history: [],
      finished_at: null,
    };
    const found = filesOf({ ...of, message, created_at: "", artifacts: [{ artifactId: "a", parts }] }, []);
    return found[0]?.files[0]?.pieces.map(({ content }) => content);
  };
  const named = { filename: "a.bin", mediaType: "image/png" };
  const [cut, end] = [
    { raw: "AAAA", ...named },
    { raw: "BB==", ...named },
  ];
  expect(contents([cut, end])).toEqual(["AAAABB=="]);
  expect(contents([end, cut])).toEqual(["BB==", "AAAA"]);
  expect(contents([cut, { ...cut, filename: "b" }])).toHaveLength(2);
  expect(contents([{ raw: "AAAA" }, { raw: "AAAA" }])).toHaveLength(2);
});

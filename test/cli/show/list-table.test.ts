/** Tables that fit the terminal, and what text takes on it. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { type Column, ListTable, type TableOptions } from "../../../src/cli/show/list-table.ts";
import { cutTo, displayWidth, padTo } from "../../../src/cli/show/text.ts";
import { ageText, localTime } from "../../../src/cli/show/time.ts";
import { host } from "../fake-host.ts";

interface Row {
  readonly id: string;
  readonly task: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: "id", cell: ({ id }) => id, paint: (_row, { green }) => green },
  { name: "task", cell: ({ task }) => task, isText: true },
  { name: "length", cell: ({ task }) => String(task.length), shown: "wide" },
  { name: "hidden", cell: () => "found", shown: "named" },
];

async function linesOf(
  rows: readonly Row[],
  options: TableOptions = {},
  { columns, env = {} }: { columns?: number; env?: Record<string, string> } = {},
): Promise<string[]> {
  const stdout = Object.assign(new PassThrough(), columns !== undefined && { columns });
  const isTty = { stdin: false, stdout: columns !== undefined, stderr: false };
  await new ListTable({ ...host(), childEnv: env, stdout, isTty }, COLUMNS, options).print(rows);
  return String(stdout.read()).trimEnd().split("\n");
}

const LONG = [
  { id: "one", task: "a task ".repeat(40) },
  { id: "日本語の名前", task: "長い文章を書く".repeat(20) },
];

test.each([[80], [120], [30]])("no line is longer than a terminal of %i columns", async (columns) => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colors
  const plain = (await linesOf(LONG, {}, { columns })).map((line) => line.replace(/\u001b\[\d+m/g, ""));
  expect(plain).toHaveLength(3);
  expect(Math.max(...plain.map(displayWidth))).toBeLessThanOrEqual(columns);
  expect(plain[1]).toMatch(/^one +a task .*…$/);
});

test("a single field goes into a pipe without its head, and whole", async () => {
  const tasks = LONG.map(({ task }) => task.trimEnd());
  expect(await linesOf(LONG, { output: ["task"] })).toEqual(tasks);
  expect((await linesOf(LONG, { output: ["id", "task"] }))[0]).toMatch(/^ID +TASK$/);
  const [head] = await linesOf(LONG, { output: ["id"] }, { columns: 80, env: { NO_COLOR: "1" } });
  expect(head).toBe("ID");
});

test("an id is never cut: texts give way first, then the other columns", () => {
  const id = "sub_1zh5xt1r5mdtpwemek1cw3yabc";
  const columns: readonly Column<string>[] = [
    { name: "id", cell: (row) => row, isWhole: true },
    { name: "state", cell: () => "failing since this morning" },
    { name: "channels", cell: () => "webhook hooks.example/a-long-path", isText: true },
  ];
  const line = (width: number) => new ListTable(host(), columns, {}, width).lines([id])[1] ?? "";
  expect(line(80)).toBe(`${id}  failing since this morning  webhook hooks.examp…`);
  expect(line(50)).toMatch(new RegExp(`^${id}  \\S.*…  \\S.*…$`));
  expect(displayWidth(line(50))).toBe(50);
  expect(line(20)).toContain(id);
});

test("minor columns are left out before a name is cut", () => {
  const name = "a-rather-long-name-of-an-agent";
  const columns: readonly Column<string>[] = [
    { name: "agent", cell: (row) => row },
    { name: "queued", cell: () => "12" },
    { name: "delayed", cell: () => "3", isMinor: true },
    { name: "oldest", cell: () => "5 min", isMinor: true },
  ];
  const heads = (width: number) =>
    new ListTable(host(), columns, {}, width).lines([name])[0]?.trim().split(/ +/);
  expect(heads(80)).toEqual(["AGENT", "QUEUED", "DELAYED", "OLDEST"]);
  expect(heads(50)).toEqual(["AGENT", "QUEUED", "DELAYED"]);
  expect(heads(40)).toEqual(["AGENT", "QUEUED"]);
});

test("without a terminal: 80 columns and no color; NO_COLOR is honored", async () => {
  const piped = await linesOf(LONG);
  expect(Math.max(...piped.map(displayWidth))).toBe(80);
  expect(piped.join("")).not.toContain("\u001b");
  expect((await linesOf(LONG, {}, { columns: 80 })).join("")).toContain("\u001b[32mone");
  expect((await linesOf(LONG, {}, { columns: 80, env: { NO_COLOR: "1" } })).join("")).not.toContain("\u001b");
});

test("--wide cuts nothing and shows more; -o chooses fields in its order", async () => {
  const [head, first] = await linesOf(LONG, { wide: true });
  expect(head).toMatch(/^ID +TASK +LENGTH$/);
  expect(first).toContain("a task ".repeat(40).trim());
  expect(await linesOf([{ id: "one", task: "dig" }], { output: ["hidden", "id"] })).toEqual([
    "HIDDEN  ID",
    "found   one",
  ]);
});

test("the head is printed once, and later portions line up", async () => {
  const stdout = new PassThrough();
  const table = new ListTable({ ...host(), stdout }, COLUMNS, {});
  await table.print([{ id: "long-name", task: "a" }]);
  await table.print([{ id: "b", task: "c\u001b[2J\n\u202ed\u2066" }]);
  expect(String(stdout.read())).toBe("ID         TASK\nlong-name  a\nb          c d\n");
});

test.each([
  ["abc", 3],
  ["äé", 2],
  ["e\u0301", 1],
  ["日本", 4],
  ["한글", 4],
  ["ｆｕ", 4],
  ["👍", 2],
  ["👩‍👩‍👧", 2],
  ["🇩🇪", 2],
  ["❤️", 2],
  ["\u200b", 0],
  ["\u0600漢", 2],
])("%j takes %i columns", (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test("text is cut between characters", () => {
  expect(cutTo("日本語", 6)).toBe("日本語");
  expect(cutTo("日本語", 5)).toBe("日本…");
  expect(cutTo("日本語", 4)).toBe("日…");
  expect(padTo("日", 4)).toBe("日  ");
});

test.each([
  [0, "0s"],
  [119, "119s"],
  [120, "2m"],
  [7199, "119m"],
  [7200, "2h"],
  [172_800, "2d"],
])("%i seconds ago is %s", (seconds, text) => {
  expect(ageText(new Date(1e12 - seconds * 1000).toISOString(), 1e12)).toBe(text);
});

test("local time has its zone", () => {
  expect(localTime("2026-01-31T08:00:00.123Z")).toMatch(/^2026-01-3[01] \d\d:\d\d:00 (?:UTC|[+-]\d\d:\d\d)$/);
});

/** File names from names that others chose. */
import { expect, test } from "vitest";
import { FileNames } from "../../src/cli/file-names.ts";

test.each([
  ["report.pdf", "report.pdf"],
  ["../../etc/passwd", "_.._etc_passwd"],
  ["/etc/passwd", "_etc_passwd"],
  ["..", "file"],
  ["", "file"],
  [".bashrc", "bashrc"],
  ["-rf", "rf"],
  ["a\\b:c.txt", "a_b_c.txt"],
  ["a\u001b[2J\nb\u202e.txt", "a b.txt"],
  ["a\u0000b", "a b"],
  [" spaced . ", "spaced ."],
])("%j becomes %j", (wanted, name) => {
  expect(new FileNames().next(wanted, "file")).toBe(name);
});

test("no name is given out twice, also not in another case", () => {
  const names = new FileNames();
  const given = ["a.txt", "A.TXT", "a.txt", "a-2.txt", "é", "e\u0301"].map((name) =>
    names.next(name, "file"),
  );
  expect(given).toEqual(["a.txt", "A-2.TXT", "a-3.txt", "a-2-2.txt", "é", "e\u0301-2"]);
});

test("a long name is cut on a character, and keeps its extension", () => {
  for (const name of [`${"ü".repeat(300)}.txt`, `a.${"b".repeat(300)}`, "日".repeat(300)]) {
    const cut = new FileNames().next(name, "file");
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(200);
    expect(Buffer.byteLength(cut)).toBeGreaterThan(190);
    expect(cut).not.toContain("\ufffd");
    expect(cut.endsWith(".txt")).toBe(name.endsWith(".txt"));
  }
});

test("a path keeps its folders, unless it leads out of them or a file has the name of one", () => {
  const names = new FileNames();
  const wanted = [
    "src/a.ts",
    "src/A.ts",
    "src",
    "src/.git/x",
    "./b",
    "../b",
    "/etc/passwd",
    "c//d",
    "src-2/e",
  ];
  expect(wanted.map((name) => names.nextPath(name, "file"))).toEqual([
    ...["src/a.ts", "src/A-2.ts", "src-2", "src/git/x", "_b", "_b-2", "_etc_passwd", "c__d", "src-2_e"],
  ]);
  expect(names.nextPath("d/".repeat(400), "file")).not.toContain("/");
});

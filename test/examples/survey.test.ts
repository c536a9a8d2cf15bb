/** What the demo's agent counts, and which folders it refuses. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { report, survey } from "../../examples/survey.ts";

async function repository(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "errand-test-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

describe("counting", () => {
  test.each([
    ["code, comment and blank lines", "a.ts", "// one\n\nconst a = 1; // two\n/*\n\n*/\n", [6, 1, 4]],
    ["comment signs in strings", "a.ts", 'f("// no", `\n/* no */\n`);\n', [3, 3, 0]],
    ["quotes in regular expressions", "a.ts", "f(/[\"'`/]/);\n// comment\n", [2, 1, 1]],
    ["a division", "a.ts", "const a = b / c; // d / e\nx();", [2, 2, 0]],
    ["a comment that never ends", "a.ts", "x();\n/* one\ntwo\n", [3, 1, 2]],
    ["Lua", "a.lua", "-- one\n--[[ two\nthree ]] local a = '--'\n", [3, 1, 2]],
    ["an empty file", "a.ts", "", [0, 0, 0]],
    ["Windows line endings", "a.ts", "a();\r\n\r\n// b\r\n", [3, 1, 1]],
  ])("%s", async (_what, name, text, [lines, code, comments]) => {
    const { files } = await survey(await repository({ [name]: text }), ".");
    expect(files).toEqual([{ path: name, lines, code, comments }]);
  });

  test("identifiers of the code alone, and no keywords", async () => {
    const root = await repository({
      "a.ts": 'const toString = "text"; // words\nif (toString) run(toString);\n',
    });
    expect([...(await survey(root, ".")).words]).toEqual([
      ["toString", 3],
      ["run", 1],
    ]);
  });

  test("source files at any depth, listed one by one, without installed, built and hidden ones", async () => {
    const root = await repository({
      "src/b/c.ts": "1;\n2;\n",
      "src/a.lua": "x()\n",
      "src/notes.md": "no\n",
      "src/constructor": "no\n",
      "src/node_modules/x.js": "no\n",
      "src/dist/x.js": "no\n",
      "src/.cache/x.js": "no\n",
    });
    const reported: unknown[] = [];
    const found = await survey(root, "src/", { onFile: (...what) => void reported.push(what) });
    expect(reported).toEqual([
      ["src/a.lua", 0, 2],
      ["src/b/c.ts", 1, 2],
    ]);
    expect(report(found).split("\n")).toEqual([
      "src/: 2 source files, 3 lines",
      "3 lines of code, 0 of comment, 0 blank",
      "identifiers: x 1",
      "largest files:",
      "     2  src/b/c.ts",
      "     1  src/a.lua",
    ]);
  });

  test("a folder without source files is not an error", async () => {
    const root = await repository({ "docs/a.md": "no\n" });
    expect(report(await survey(root, "docs"))).toContain("docs: 0 source files, 0 lines");
  });

  test("stops between two files when its signal aborts", async () => {
    const stop = new AbortController();
    const root = await repository({ "a.ts": "", "b.ts": "" });
    const reported: string[] = [];
    const onFile = (path: string) => {
      reported.push(path);
      stop.abort(new Error("enough"));
    };
    await expect(survey(root, ".", { onFile, signal: stop.signal })).rejects.toThrow("enough");
    expect(reported).toEqual(["a.ts"]);
  });
});

describe("refusals", () => {
  test.each([
    ["nowhere", "no_such_folder", "there is no folder nowhere"],
    ["a.ts", "not_a_folder", "a.ts is not a folder"],
    ["..", "outside_repo", ".. is outside the repository"],
    ["src/../../nowhere", "outside_repo", "src/../../nowhere is outside the repository"],
    ["/", "outside_repo", "/ is outside the repository"],
    ["way-out", "outside_repo", "way-out is outside the repository"],
    ["a\0b", "no_such_folder", "there is no folder a\0b"],
  ])("%j", async (folder, code, message) => {
    const root = await repository({ "a.ts": "", "src/b.ts": "" });
    await symlink(tmpdir(), join(root, "way-out"));
    await expect(survey(root, folder)).rejects.toMatchObject({ code, message });
  });

  test("names that only look like a path out of the folder are accepted", async () => {
    const root = await repository({ "..hidden/a.ts": "a();\n" });
    expect((await survey(root, "..hidden")).files).toHaveLength(1);
  });
});

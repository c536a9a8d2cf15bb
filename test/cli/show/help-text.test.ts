/** Help that fits the terminal. */
import { execFileSync } from "node:child_process";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { buildProgram, everyCommand, pathOf } from "../../../src/cli/program.ts";
import { runCli } from "../../../src/cli/run.ts";
import { fitHelp } from "../../../src/cli/show/help-text.ts";
import { host, run } from "../fake-host.ts";

const commands = everyCommand(
  await buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() }),
).map(pathOf);

test("paragraphs are wrapped, and what is indented stays", () => {
  const text = "One two three\nfour five.\n\nList:\n  a   b\n  c   d\nsix";
  expect(fitHelp(text, 12)).toBe("One two\nthree four\nfive.\n\nList:\n  a   b\n  c   d\nsix");
});

test("an example continues between words of the shell", () => {
  expect(fitHelp(`  $ errand list --state 'a b  c' "d  e" --all`, 24)).toBe(
    ["  $ errand list \\", "      --state 'a b  c' \\", '      "d  e" --all'].join("\n"),
  );
});

test("a long script in an example continues after one of its commands, with the same meaning", () => {
  const line = `  $ sh -c 'case "$1" in a) echo one; exit 3;; b*) echo two;; *) echo none;; esac' x beta`;
  const fitted = fitHelp(line, 40);
  expect(fitted).toBe(
    [
      "  $ sh -c \\",
      `      'case "$1" in a) echo one;`,
      "      exit 3;; b*) echo two;;",
      "      *) echo none;; esac' \\",
      "      x beta",
    ].join("\n"),
  );
  for (const one of [line, fitted])
    expect(execFileSync("sh", ["-c", one.replace("$ ", "")], { encoding: "utf8" })).toBe("two\n");
});

describe.each(commands)("%s --help", (path) => {
  test.each([80, 100, 300])("fits a terminal of %i columns", async (columns) => {
    const stdout = Object.assign(new PassThrough(), { columns });
    const isTty = { stdin: true, stdout: true, stderr: true };
    const argv = [...path.split(" ").slice(1), "--help"];
    expect(await runCli(argv, { ...host(), stdout, isTty })).toBe(0);
    const lines = String(stdout.read()).split("\n");
    expect(lines.filter((line) => [...line].length > Math.min(columns, 100))).toEqual([]);
  });
});

test("the global options and the exit codes are listed once, and every other help says where", async () => {
  for (const path of commands) {
    const { stdout } = await run([...path.split(" ").slice(1), "--help"]);
    const isRoot = path === "errand";
    expect(stdout.includes("--token <token>")).toBe(isRoot);
    expect(/^Exit codes:$/m.test(stdout)).toBe(isRoot);
    expect(stdout.includes("Options of all commands: --json, --url, --token. 'errand --help'")).toBe(!isRoot);
  }
});

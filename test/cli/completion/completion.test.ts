/** Completion: the bash script in a real bash; all three scripts have every command and option. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { buildProgram, everyCommand } from "../../../src/cli/program.ts";
import { freshDir } from "../../support/program.ts";
import { host, run } from "../fake-host.ts";

async function scriptIn(dir: string): Promise<string> {
  const { code, stdout, stderr } = await run(["completion", "bash"]);
  expect([code, stderr]).toEqual([0, ""]);
  const path = join(dir, "errand.bash");
  writeFileSync(path, stdout);
  return path;
}

/** The completions that bash offers for the last word. */
function offered(script: string, dir: string, ...words: string[]): string[] {
  const body = [
    'source "$1"',
    "shift",
    'COMP_WORDS=("$@")',
    "COMP_CWORD=$(($# - 1))",
    "_errand",
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join("; ");
  const out = execFileSync("bash", ["--norc", "-uc", body, "bash", script, "errand", ...words], {
    cwd: dir,
    encoding: "utf8",
  });
  return out.split("\n").filter((word) => word !== "");
}

test("bash completes commands, options, choices and files", async () => {
  const dir = freshDir();
  const script = await scriptIn(dir);
  writeFileSync(join(dir, "task.md"), "");
  const words = (...line: string[]) => offered(script, dir, ...line);
  expect(words("de")).toEqual(["demo", "delegate", "deny", "delete"]);
  expect(words("agent", "")).toEqual(expect.arrayContaining(["list", "get", "put", "delete"]));
  expect(words("--json", "agent", "pu")).toEqual(["put"]);
  expect(words("delegate", "scout", "--wa")).toEqual(["--wait", "--watch"]);
  expect(words("delegate", "--js")).toEqual(["--json"]);
  expect(words("list", "--state", "c")).toEqual(["completed", "canceled"]);
  expect(words("delegate", "--file", "ta")).toEqual(["task.md"]);
  expect(words("delegate", "--priority", "")).toEqual([]);
  expect(words("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
  expect(words("work", "--agent", "scout", "--", "a")).toEqual([]);
});

describe.each(["bash", "zsh", "fish"])("the script for %s", (shell) => {
  test("has every command and every option", async () => {
    const { code, stdout } = await run(["completion", shell]);
    expect(code).toBe(0);
    for (const command of everyCommand(
      buildProgram({ host: host(), end: () => undefined, unknownIds: new Map() }),
    )) {
      expect(stdout).toContain(command.name());
      for (const { long, description } of command.options) {
        expect(stdout).toContain(shell === "fish" ? `-l ${long?.slice(2)}` : long);
        if (shell === "zsh") expect(stdout).toContain(description.replaceAll("'", "'\\''"));
      }
    }
  });
});

test("an unknown shell is a usage error that lists the supported ones", async () => {
  const { code, stderr } = await run(["completion", "tcsh"]);
  expect(code).toBe(64);
  expect(stderr).toContain("bash, zsh, fish");
});

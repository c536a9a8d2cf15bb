/** The commands of a developer: CONTRIBUTING.md, package.json and the help list the same, and a wrong name is refused. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const run = (...args: string[]) => {
  const ran = spawnSync(process.execPath, ["scripts/run.mjs", ...args], { cwd: ROOT, encoding: "utf8" });
  return { code: ran.status, stdout: ran.stdout, stderr: ran.stderr };
};
/** What follows the first empty line, or what precedes it. */
const part = (text: string, at: 0 | 1) => text.split("\n\n")[at]?.trim() ?? "";
/** The names at the starts of lines: `npm test` is `test`. */
const names = (list: string) => [...list.matchAll(/^(?:npm (?:run )?)?([\w-]+) /gm)].map(([, name]) => name);
const blocks = [...read("CONTRIBUTING.md").matchAll(/^```\w+\n([\s\S]*?)\n```$/gm)].map(([, text]) => text);

const help = run("--help");
const proofs = run("prove");

test("CONTRIBUTING.md lists the commands and the proofs as the program does", () => {
  expect([help.code, help.stderr, proofs.code, proofs.stderr]).toEqual([0, "", 0, ""]);
  expect(blocks.slice(0, 2)).toEqual([part(help.stdout, 0), part(proofs.stdout, 1)]);
  expect(names(part(proofs.stdout, 1))).toContain("chaos");
});

test("package.json has a script for each command, and those that npm calls by itself", () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(read("package.json")));
  const listed = names(part(help.stdout, 0));
  expect(listed).toHaveLength(10);
  expect(Object.keys(scripts)).toEqual([...listed, "prepack", "postpack", "prepublishOnly"]);
});

test("every mention of a command names one that exists", () => {
  const listed = spawnSync("git", ["grep", "-hoE", "npm run (-s )?[a-z][a-z:-]*( -- [a-z]+[a-z-]*)?"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const said = listed.stdout.split("\n").filter((line) => line !== "");
  expect(said.length).toBeGreaterThan(30);
  const unknown = said.filter((line) => {
    const [, name = "", , first] = /^npm run (?:-s )?([\w:-]+)( -- ([\w-]+))?$/.exec(line) ?? [];
    if (!names(part(help.stdout, 0)).includes(name)) return true;
    return name === "prove" && first !== undefined && !names(part(proofs.stdout, 1)).includes(first);
  });
  expect([...new Set(unknown)]).toEqual([]);
});

test("a wrong name is refused with the nearest; help of a proof is its own", () => {
  expect(run("prove", "chaso", "--help")).toEqual({
    code: 64,
    stdout: "",
    stderr: "There is no proof 'chaso'. Do you mean 'chaos'? 'npm run prove' lists all.\n",
  });
  const own = run("prove", "mutants", "--help");
  expect([own.code, own.stderr]).toEqual([0, ""]);
  expect(own.stdout).toMatch(/^npm run prove -- mutants \[options\][\s\S]*--no-baseline/);
  expect(run("chaos")).toEqual({ code: 64, stdout: "", stderr: help.stdout });
});

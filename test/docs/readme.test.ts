/** The walk-through with curl in README.md, pasted into a shell. Needs bash and curl. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";

const page = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

test("the block runs as it is, and its delegation completes", async () => {
  const [, block = ""] = /```sh\n(token=[^`]*curl[^`]*)```/.exec(page) ?? [];
  const { url } = await startBroker();
  const cwd = freshDir();
  mkdirSync(join(cwd, ".errand"));
  writeFileSync(join(cwd, ".errand", "operator-token"), `${OPERATOR}\n`);
  const script = block.replace("http://127.0.0.1:4180", url);
  expect(script).toContain(url);
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], { cwd, timeout: 180_000 });
  expect(stdout).toContain('"message":"counting"');
  expect(stdout).toContain("DELEGATION_COMPLETE");
}, 180_000);

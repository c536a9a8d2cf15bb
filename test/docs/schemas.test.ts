/** The section on schemas in docs/library.md: its example runs, and every schema that it names is exported. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as schemas from "../../src/schema/index.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const [, section = ""] = readFileSync(join(ROOT, "docs/library.md"), "utf8").split("\n## Schemas\n");

test("the example delegates and reads the events", async () => {
  const [, code = ""] = /```ts\n(.*?)```/s.exec(section) ?? [];
  expect(code).toContain('"errand-broker/schema"');
  const file = join(freshDir(), "example.mts");
  writeFileSync(file, code.replace("errand-broker/schema", join(ROOT, "src/schema/index.ts")));
  const { url } = await startBroker();
  await client(url).agent("scout");
  const { token } = await as(url, "caller:alice");
  const { stdout } = await promisify(execFile)("node", ["--import", "tsx", file], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: token },
  });
  expect(stdout).toBe("submitted DELEGATION_SENT\n");
}, 120_000);

test("every schema that the page names is exported", () => {
  const named = [...section.matchAll(/`(\w+Schema|ERRORS)`/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((name) => !Object.hasOwn(schemas, name))).toEqual([]);
});

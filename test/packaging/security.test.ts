/** The tests that SECURITY.md names exist, and the page is in the package. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { ROOT } from "./registry.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const PAGE = read("SECURITY.md");

test("the tests that it names exist", () => {
  const named = [...PAGE.matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
  expect(named.length).toBeGreaterThan(5);
  const exists = (path: string): boolean => {
    const [head = "", tail = ""] = path.split("*");
    if (!path.includes("*")) return existsSync(join(ROOT, path));
    return readdirSync(join(ROOT, dirname(head))).some(
      (file) => join(dirname(head), file).startsWith(head) && file.endsWith(tail),
    );
  };
  expect(named.filter((path) => !exists(path))).toEqual([]);
});

test("the page is in the package, the README links to it, and it says how to report", () => {
  const { files } = z.object({ files: z.array(z.string()) }).parse(JSON.parse(read("package.json")));
  expect(files).toContain("SECURITY.md");
  expect(read("README.md")).toContain("(SECURITY.md)");
  expect(PAGE).toContain("Report a vulnerability");
});

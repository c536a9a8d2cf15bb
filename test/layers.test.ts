import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SRC = new URL("../src/", import.meta.url);
const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
const folderOf = (file: string): string | null => (file.includes("/") ? (file.split("/")[0] ?? null) : null);

test("a folder of src imports only folders that sort after it", () => {
  const upward = files.flatMap((file) => {
    const text = readFileSync(new URL(file, SRC), "utf8");
    const imports = [...text.matchAll(/from "(\.[^"]+)"/g)].map((match) => match[1] ?? "");
    return imports.flatMap((target) => {
      const [from, to] = [
        folderOf(file),
        folderOf(new URL(target, new URL(file, SRC)).href.slice(SRC.href.length)),
      ];
      return from !== null && (to === null || to < from) ? [`${file} imports ${target}`] : [];
    });
  });
  expect(files.length).toBeGreaterThan(40);
  expect(upward).toEqual([]);
});

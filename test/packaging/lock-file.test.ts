/** The lock file pins where each package comes from and what it contains, so that `npm ci` installs nothing unchecked. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";

const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      name: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      link: z.boolean().optional(),
      inBundle: z.boolean().optional(),
    }),
  ),
});

const { packages } = lockSchema.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
const installed = Object.entries(packages).filter(
  ([path, { link, inBundle }]) => path !== "" && link !== true && inBundle !== true,
);

test("every package has the file that npm takes from the registry, and its hash", () => {
  expect(installed.length).toBeGreaterThan(100);
  const faults = installed.flatMap(([path, { version, name, resolved = "", integrity = "" }]) => {
    const full = name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const file = `/${full}/-/${full.slice(full.lastIndexOf("/") + 1)}-${version}.tgz`;
    const isFile = /^https:\/\/[a-z.]+\//.test(resolved) && resolved.endsWith(file);
    return isFile && /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity) ? [] : [path];
  });
  expect(faults).toEqual([]);
  expect(new Set(installed.map(([, { resolved = "" }]) => new URL(resolved).origin)).size).toBe(1);
});

/** The lines that `errand serve` prints for people. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { howClientsConnect, nextSteps, reachableLines, variablesFor } from "../../src/serve/lines.ts";
import { ownCommand } from "../../src/serve/own-command.ts";
import { freshDir } from "../support/program.ts";

/** A folder with the program's start, as a clone has it. */
function clone(): string {
  const folder = freshDir();
  writeFileSync(join(folder, "errand"), "", { mode: 0o755 });
  return folder;
}

const STARTED = {
  dataDir: resolve(".errand"),
  url: "http://127.0.0.1:4181",
  hasOwnToken: false,
  announced: { isFound: true, other: null },
};

test("the lines to paste name a broker that the CLI does not find by itself", async () => {
  const folder = clone();
  const linesOf = async (changes: Partial<typeof STARTED> | object) => {
    const variables = variablesFor({ ...STARTED, ...changes });
    return nextSteps({ folder, path: "", program: join(folder, "dist/errand.js"), variables }).split("\n");
  };
  expect((await linesOf({})).at(-1)).toBe("  ./errand watch");
  expect((await linesOf({ dataDir: "/data/x" })).slice(1)).toEqual([
    "  ERRAND_DATA_DIR=/data/x ./errand work --agent scout -- wc -w",
    '  ERRAND_DATA_DIR=/data/x ./errand delegate scout "count these words" --wait',
    "  ERRAND_DATA_DIR=/data/x ./errand watch",
  ]);
  expect((await linesOf({ dataDir: "/it's" })).at(-1)).toBe("  ERRAND_DATA_DIR='/it'\\''s' ./errand watch");
  const other = { isFound: false, other: { url: "http://127.0.0.1:4180", port: 4180, pid: 1 } };
  expect((await linesOf({ dataDir: "/data/x", announced: other })).at(-1)).toBe(
    "  ERRAND_URL=http://127.0.0.1:4181 ERRAND_TOKEN=\"$(cat '/data/x/operator-token')\" ./errand watch",
  );
  // A secret is not printed, but named.
  const own = { ...STARTED, dataDir: "/data/x", hasOwnToken: true };
  expect((await linesOf(own)).at(-1)).toBe("  ERRAND_DATA_DIR=/data/x ./errand watch");
  expect(howClientsConnect(own)).toBe(
    "to use the CLI in another shell, set ERRAND_DATA_DIR=/data/x and ERRAND_TOKEN",
  );
});

test("the program is named as a shell finds it", () => {
  const folder = clone();
  const program = join(folder, "dist/errand.js");
  const elsewhere = freshDir();
  expect(ownCommand({ folder, path: "", program })).toBe("./errand");
  expect(ownCommand({ folder: elsewhere, path: "", program })).toBe(join(folder, "errand"));
  const installed = { path: `/nowhere:${folder}`, program: join(elsewhere, "dist/errand.js") };
  expect(ownCommand({ folder: elsewhere, ...installed })).toBe("errand");
  const fetched = "/home/me/.npm/_npx/1a/node_modules/errand-broker/dist/errand.js";
  expect(ownCommand({ folder: elsewhere, path: "", program: fetched })).toBe("npx errand-broker");
  const place = join(freshDir(), "_npx/1a");
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "package.json"), '{"dependencies":{"errand-broker":"file:../a.tgz"}}');
  const unpacked = join(place, "node_modules/errand-broker/dist/errand.js");
  expect(ownCommand({ folder: elsewhere, path: "", program: unpacked })).toBe(`node ${unpacked}`);
  expect(ownCommand({ ...installed, folder: elsewhere, path: "" })).toBe(`node ${installed.program}`);
  mkdirSync(join(elsewhere, "node_modules/.bin"), { recursive: true });
  mkdirSync(join(elsewhere, "dist"));
  writeFileSync(installed.program, "", { mode: 0o755 });
  symlinkSync(installed.program, join(elsewhere, "node_modules/.bin/errand"));
  expect(ownCommand({ folder: elsewhere, ...installed })).toBe("npx errand-broker");
});

test("a broker on all interfaces says where others reach it, and warns while there is no TLS", () => {
  const interfaces = {
    lo: [{ address: "127.0.0.1", family: "IPv4" as const, internal: true }],
    eth0: [
      { address: "192.0.2.7", family: "IPv4" as const, internal: false },
      { address: "2001:db8::7", family: "IPv6" as const, internal: false },
      { address: "fe80::1", family: "IPv6" as const, internal: false },
    ],
  };
  const lines = (host: string, publicUrl?: string) =>
    reachableLines({ host, port: 4180, publicUrl }, interfaces);
  expect(lines("0.0.0.0")).toEqual([
    "other machines reach it at http://192.0.2.7:4180",
    expect.stringMatching(/^warning: without TLS/),
  ]);
  expect(lines("::")[0]).toBe("other machines reach it at http://192.0.2.7:4180, http://[2001:db8::7]:4180");
  expect(lines("0.0.0.0", "https://errand.example.org")).toHaveLength(1);
  expect(lines("192.0.2.7")).toEqual([expect.stringMatching(/^warning: without TLS/)]);
  for (const host of ["127.0.0.1", "localhost", "::1"]) expect(lines(host)).toEqual([]);
});

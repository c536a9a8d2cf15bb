/** The allowed imports, which keep the folders of `src` apart. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** The folders of `src`: each imports only folders that come later. */
const LAYERS = [
  // What runs.
  ...["offline", "serve", "gateway"],
  // What works beside the broker.
  ...["backup", "cli", "client"],
  // The broker, from the request to Redis.
  ...["doors", "engine", "events", "gateways", "lifecycle", "queue", "redis"],
  // What several of them use.
  ...["lease-holder", "relay", "schema", "telemetry", "util"],
];

/** Package → the only folders that may import it. */
const PACKAGES: Record<string, readonly string[]> = {
  bullmq: ["queue/"],
  ioredis: ["redis/"],
  // A table without dependencies.
  "hono/utils/mime": ["cli/files/"],
  aws4fetch: ["engine/files/s3/"],
  hono: ["doors/"],
  "@hono/node-server": ["doors/"],
  commander: ["cli/"],
  "@a2a-js/sdk": ["doors/a2a/", "relay/"],
  "@modelcontextprotocol/server": ["doors/mcp/"],
  "@agentclientprotocol/sdk": ["cli/work/acp/"],
  preact: ["console/"],
  "@preact/signals": ["console/"],
  marked: ["console/markdown/"],
  dompurify: ["console/markdown/"],
};

/** Folder → the only other folders that it may import. */
const FOLDERS: Record<string, readonly string[]> = {
  client: ["lease-holder", "schema", "util"],
  "lease-holder": ["schema", "util"],
  relay: ["schema", "telemetry", "util"],
  // The console runs in browsers and uses HTTP, like every other client of the broker.
  console: ["client", "schema"],
  // So does the CLI.
  cli: ["client", "lease-holder", "relay", "schema", "telemetry", "util"],
};
/** These also run in browsers, so they import nothing of Node. */
const BROWSER = ["client", "console", "lease-holder", "util"];
/** Programs of their own: nothing imports them, so they may import the folders before them, too. */
const PROGRAMS = ["console"];

/** File → what it imports. */
function importsIn(folder: "src" | "bench"): Map<string, readonly string[]> {
  const root = fileURLToPath(new URL(`../${folder}/`, import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.tsx?$/.test(file),
  );
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(root, file), "utf8");
      return [file, [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, to = ""]) => to)];
    }),
  );
}

const imports = importsIn("src");
const folderOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] ?? "") : "");
const isRelative = (to: string): boolean => to.startsWith(".");
const resolve = (file: string, to: string): string => normalize(join(dirname(file), to));

/** Every import for which `isWrong` is true, as text. */
const wrong = (isWrong: (file: string, to: string) => boolean): string[] =>
  [...imports].flatMap(([file, all]) =>
    all.filter((to) => isWrong(file, to)).map((to) => `${file} imports ${to}`),
  );

test("a folder of src imports only folders that come later in the list", () => {
  expect(imports.size).toBeGreaterThan(200);
  const folders = new Set([...imports.keys()].map(folderOf));
  expect([...folders].filter((one) => one !== "").sort()).toEqual([...LAYERS, ...PROGRAMS].sort());
  expect(
    wrong((file, to) => {
      const from = folderOf(file);
      if (from === "" || !isRelative(to)) return false;
      const folder = folderOf(resolve(file, to));
      if (folder === "") return !["offline", "serve"].includes(from);
      return PROGRAMS.includes(folder)
        ? folder !== from
        : LAYERS.indexOf(folder) < LAYERS.indexOf(from) && !PROGRAMS.includes(from);
    }),
  ).toEqual([]);
});

test("ARCHITECTURE.md lists the folders in this order", () => {
  const page = readFileSync(new URL("../ARCHITECTURE.md", import.meta.url), "utf8");
  const [, table = ""] = /\n\| folder \| what \|.*\n\|.*\n((?:\|.*\n)+)/.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| `([a-z-]+)\/` /gm)].map(([, name]) => name);
  expect(listed).toEqual([...LAYERS, ...PROGRAMS]);
});

test("only the entries lie in src itself", () => {
  expect([...imports.keys()].filter((file) => folderOf(file) === "").sort()).toEqual([
    "config.ts",
    "index.ts",
    "main.ts",
  ]);
});

test("a package with a folder of its own is imported nowhere else", () => {
  expect(
    wrong((file, to) => {
      const known = Object.entries(PACKAGES).find(([name]) => to === name || to.startsWith(`${name}/`));
      return known?.[1].every((folder) => !file.startsWith(folder)) ?? false;
    }),
  ).toEqual([]);
});

/** The import cycles: for each, the list of its files. (Tarjan's strongly connected components.) */
function cycles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const visit = (file: string): number => {
    order.set(file, order.size);
    let low = order.size - 1;
    path.push(file);
    for (const to of (imports.get(file) ?? []).filter(isRelative).map((name) => resolve(file, name))) {
      if (!imports.has(to)) continue;
      if (!order.has(to)) low = Math.min(low, visit(to));
      else if (path.includes(to)) low = Math.min(low, lowest.get(to) ?? order.get(to) ?? 0);
    }
    lowest.set(file, low);
    if (low === order.get(file)) {
      const cycle = path.splice(path.indexOf(file));
      if (cycle.length > 1) found.push(cycle.sort());
    }
    return low;
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return found;
}

test("no file imports itself through others, types included", () => {
  expect([...cycles(imports), ...cycles(importsIn("bench"))]).toEqual([]);
});

test("the client, the relay and the CLI import only the folders that they may", () => {
  expect(
    wrong((file, to) => {
      const allowed = FOLDERS[folderOf(file)];
      if (!allowed || !isRelative(to)) return false;
      const folder = folderOf(resolve(file, to));
      return folder !== "" && folder !== folderOf(file) && !allowed.includes(folder);
    }),
  ).toEqual([]);
  expect(wrong((file, to) => BROWSER.includes(folderOf(file)) && to.startsWith("node:"))).toEqual([]);
});

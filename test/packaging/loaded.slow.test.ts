/** What commands load: their start takes as long as that does. Times are measured by the scenario `start` of `npm run bench`. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { CERTIFICATE } from "../support/certificate.ts";
import { listen } from "../support/listen.ts";
import { errand, freshDir, MAIN } from "../support/program.ts";

const HOOK = fileURLToPath(new URL("../support/loaded-modules.mjs", import.meta.url));

const LISTS: Readonly<Record<string, unknown>> = {
  "/v1/delegations": { delegations: [], next_cursor: null, scanned_to: null },
  "/v1/agents": { agents: [], next_cursor: null },
};
/** What a broker without agents and delegations answers. */
const answer: Parameters<typeof createServer>[1] = ({ url = "" }, response) => {
  const body = LISTS[url.replace(/\?.*/, "")];
  response.writeHead(200, { "errand-broker": "brk_1", "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

/** What a command loads: the files of the build with their sizes, and Node's own modules. */
async function loadedBy(...args: string[]) {
  const cwd = freshDir();
  const port = await listen(createServer(answer));
  const file = join(cwd, "loaded");
  const run = errand(cwd, args, {
    ...{ ERRAND_URL: `http://127.0.0.1:${port}`, ERRAND_TOKEN: "t" },
    ...{ LOADED_MODULES: file, NODE_OPTIONS: `--import ${HOOK}` },
  });
  expect(await run.ended(), run.stderr()).toBe(0);
  const lines = readFileSync(file, "utf8").split("\n");
  const names = lines
    .filter((line) => line.startsWith("file:") && line.includes("/dist/"))
    .map((url) => basename(url));
  const bytes = names.reduce((sum, name) => sum + statSync(join(dirname(MAIN), name)).size, 0);
  const own = lines.flatMap((line) => /^NativeModule (.*)/.exec(line)?.[1] ?? []);
  return { names, kilobytes: bytes / 1000, own };
}

test("errand list loads neither fetch nor what other commands need", async () => {
  const { names, kilobytes, own } = await loadedBy("list");
  expect(own).toContain("http");
  expect(own.filter((name) => /undici|^crypto$|^https$|^zlib$/.test(name))).toEqual([]);
  expect(names).toContain("errand.js");
  // Now 6 files of 385 kB: the program, its start with zod and commander, and small ones.
  expect(names.length).toBeLessThanOrEqual(7);
  expect(kilobytes).toBeLessThan(400);
}, 60_000);

test("another command loads some files more, and no fetch either", async () => {
  const { names, kilobytes, own } = await loadedBy("agent", "list");
  expect(own.filter((name) => /undici/.test(name))).toEqual([]);
  // Now 14 files of 720 kB.
  expect(names.length).toBeLessThanOrEqual(20);
  expect(kilobytes).toBeLessThan(800);
}, 60_000);

test("the version loads nothing of the CLI", async () => {
  const { names } = await loadedBy("--version");
  expect(names).toEqual(["errand.js"]);
}, 60_000);

test("by https, with a certificate that NODE_EXTRA_CA_CERTS names", async () => {
  const cwd = freshDir();
  const server = createTlsServer(CERTIFICATE, answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const url = `https://localhost:${typeof address === "object" && address ? address.port : 0}`;
  const trusted = join(cwd, "trusted.pem");
  writeFileSync(trusted, CERTIFICATE.cert);
  const env = { ERRAND_URL: url, ERRAND_TOKEN: "t" };
  const trusting = errand(cwd, ["list"], { ...env, NODE_EXTRA_CA_CERTS: trusted });
  expect([await trusting.ended(), trusting.stderr()]).toEqual([0, "errand: no delegations yet.\n"]);
  const other = errand(cwd, ["list"], env);
  expect(await other.ended()).toBe(78);
  expect(other.stderr()).toContain(`no broker can be reached at ${url} (DEPTH_ZERO_SELF_SIGNED_CERT)`);
}, 60_000);

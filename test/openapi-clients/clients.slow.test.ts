/**
 * Clients that other people's generators make from the API description, with the commands of docs/http.md: each compiles
 * strictly and runs a delegation to its end, by the names of the operations.
 */
import { execFile } from "node:child_process";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { freshDir } from "../support/program.ts";
import { installGenerators } from "./install.ts";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL("./", import.meta.url));
const page = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");
const [, section = ""] = page.split("\n## Generate a client\n");

/** The command of the page that calls this generator. */
function commandOf(generator: string): string[] {
  const lines = [...section.matchAll(/^npx (\S+) .*$/gm)];
  const line = lines.find(([, name]) => name === generator)?.[0] ?? expect.unreachable(generator);
  return line.split(" ");
}

/** With the options that the generated code needs. */
const COMPILE = [
  ...["--strict", "--noEmit", "--target", "es2022", "--lib", "es2023,dom,dom.iterable,dom.asynciterable"],
  ...[
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--allowImportingTsExtensions",
    "--skipLibCheck",
  ],
];

test.each([
  ["openapi-typescript", "openapi-fetch.ts"],
  ["@hey-api/openapi-ts", "hey-api.ts"],
  ["orval", "orval.ts"],
])(
  "the client of %s compiles and delegates",
  async (generator, story) => {
    const installed = await installGenerators();
    const { url } = await startBroker();
    await client(url).agent("scout");
    const cwd = freshDir();
    symlinkSync(join(installed, "node_modules"), join(cwd, "node_modules"));
    cpSync(join(HERE, "stories"), cwd, { recursive: true });
    const [npx = "", ...args] = commandOf(generator).map((word) =>
      word.replace("http://127.0.0.1:4180", url),
    );
    await run(npx, ["--no-install", ...args], { cwd });
    await run(process.execPath, ["node_modules/typescript/bin/tsc", ...COMPILE, story], { cwd }).catch(
      ({ stdout }) => expect.unreachable(stdout),
    );
    const outfile = join(cwd, "story.mjs");
    const options = { bundle: true, platform: "node", format: "esm", packages: "external" } as const;
    await build({ ...options, absWorkingDir: cwd, entryPoints: [story], outfile });
    const env = { PATH: process.env.PATH, ERRAND_URL: url, ERRAND_TOKEN: OPERATOR };
    const { stdout } = await run(process.execPath, [outfile], { cwd, env });
    expect(stdout.trim().split("\n")).toEqual([
      "state: working",
      "outcome: matched",
      "reply: 3",
      "event: DELEGATION_SENT",
      "event: DELEGATION_STATUS",
      "progress: half",
      "took: true",
    ]);
  },
  600_000,
);

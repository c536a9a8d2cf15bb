/** Every program of a developer explains itself, and refuses a wrong argument before it does anything. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

const run = (args: readonly string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(process.execPath, [...args], { cwd: ROOT }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });

const tsx = (file: string): string[] => ["--import", "tsx", file];
const PROGRAMS: [program: string[], known: string][] = [
  [["scripts/run.mjs", "prove", "model"], "--replay"],
  [["scripts/run.mjs", "prove", "fuzz"], "--seed"],
  [["scripts/run.mjs", "check"], "--help"],
  [["scripts/run.mjs", "fix"], "--help"],
  [["scripts/run.mjs", "build"], "--help"],
  [["scripts/generate.mjs"], "--check"],
  [["scripts/mutants.mjs"], "--no-baseline"],
  [["scripts/python-sdks.mjs"], "--python"],
  [["scripts/proxies.mjs"], "--only"],
  [["scripts/rolling-upgrade.mjs"], "--from"],
  [["scripts/first-start.mjs"], "--empty-cache"],
  [["scripts/sample-texts.mjs"], "--comments"],
  [tsx("test/limits/measure.ts"), "--write"],
  [tsx("test/limits/attacks.ts"), "--rounds"],
  [tsx("test/limits/body-cost.ts"), "--write"],
  [tsx("test/cluster/start.ts"), "--shards"],
  [tsx("test/cluster/kill-masters.ts"), "--kills"],
  [tsx("test/chaos/main.ts"), "--minutes"],
  [tsx("test/chaos/soak.ts"), "--rate"],
  [tsx("bench/main.ts"), "--only"],
];

test.each(PROGRAMS)(
  "%j: --help and an unknown option",
  async (program, known) => {
    const [help, refused] = await Promise.all([run([...program, "--help"]), run([...program, "--speed"])]);
    expect([help.code, help.stderr, help.stdout]).toEqual([0, "", expect.stringMatching(/\S/)]);
    if (known !== "--help") expect(help.stdout).toContain(known);
    const { code, stdout, stderr } = refused;
    expect([code, stdout]).toEqual([64, ""]);
    expect(stderr).toMatch(/^There is no option '--speed'; known: [^\n]+\.\n$/);
    expect(stderr).toContain(known);
  },
  60_000,
);

test.each([
  [["scripts/nodes.mjs", "--node", "latest"], "--node needs versions, such as 20,22, not 'latest'.\n"],
  [
    ["scripts/mutants.mjs", "nothing like it"],
    "No mutant's name contains 'nothing like it'; --list prints the names.\n",
  ],
  [["scripts/proxies.mjs", "--only", "squid"], "There is no proxy 'squid'; known: nginx, haproxy, caddy.\n"],
  [["scripts/rolling-upgrade.mjs"], "Name the build that is replaced: --from BUILD.\n"],
  [["scripts/python-sdks.mjs", "--sdk", "newest"], "--sdk newest: write VERSION or VERSION=FOLDER.\n"],
  [tsx("test/limits/measure.ts").concat("speed"), /^There is no limit 'speed'; known: [a-z_]+, [^\n]+\.\n$/],
  [
    tsx("test/limits/attacks.ts").concat("speed"),
    /^There is no attack 'speed'; known: pipelined headers, [^\n]+\.\n$/,
  ],
  [tsx("test/limits/attacks.ts").concat("--rounds", "x"), "--rounds needs a number above 0, not 'x'.\n"],
  [tsx("test/limits/body-cost.ts").concat("x"), "VALUES is a whole number from 1 on, not 'x'.\n"],
  [tsx("test/limits/body-cost.ts").concat("9", "speed"), /^There is no shape 'speed'; known: [^\n]+\.\n$/],
  [tsx("bench/main.ts").concat("--clients", "speed"), /^There is no client 'speed'; known: [^\n]+\.\n$/],
])(
  "%j is refused in one line",
  async (program, said) => {
    const { code, stdout, stderr } = await run(program);
    expect([code, stdout, stderr]).toEqual([
      64,
      "",
      typeof said === "string" ? said : expect.stringMatching(said),
    ]);
  },
  60_000,
);

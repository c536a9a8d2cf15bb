/** `npm run demo` as a user sees it: its output, its exit code, and that it leaves nothing behind. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../support/until.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

beforeAll(() => {
  if (!existsSync(join(ROOT, "dist", "errand.js"))) {
    throw new Error(
      "dist is missing: the demo runs the built broker; 'npm test' builds it, or 'npm run build'",
    );
  }
});

async function startDemo(env: NodeJS.ProcessEnv = {}) {
  const temporary = await mkdtemp(join(tmpdir(), "errand-test-"));
  const child = spawn(process.execPath, ["--import", "tsx", "examples/demo.ts"], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: temporary, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await closed;
    await rm(temporary, { recursive: true, force: true });
  });
  const left = async () => (await readdir(temporary)).filter((name) => name.startsWith("errand-demo-"));
  return { child, closed, left, output: () => output };
}

/** The broker's URL, as the demo passes it on. */
function brokerIn(output: string): string {
  return /\[broker\] errand is ready at (\S+)/.exec(output)?.[1] ?? "";
}

test("shows delegations from sent to their end, and exits 0 when each ended as expected", async () => {
  // The user's own ERRAND_* settings must not reach the demo's broker.
  const demo = await startDemo({ ERRAND_REDIS_URL: "redis://127.0.0.1:1", ERRAND_PORT: "1" });
  const code = await demo.closed;
  const output = demo.output();
  expect(code, output).toBe(0);

  for (const line of [
    /DELEGATION_SENT +queued +src\/engine, priority 7/,
    /DELEGATION_STATUS +leased +attempt 1/,
    /DELEGATION_STATUS +progress +\d+\/\d+ src\/engine\/\S+\.ts/,
    /DELEGATION_COMPLETE +completed +in \d+ ms/,
    /DELEGATION_FAILED +failed +no_such_folder: there is no folder src\/no-such-folder/,
    /DELEGATION_FAILED +canceled +.*changed my mind/,
    /src\/lifecycle: \d+ source files, \d+ lines/,
    /demo: ok, 6 delegations ended as expected/,
  ]) {
    expect(output).toMatch(line);
  }
  expect(output.match(/DELEGATION_(?:COMPLETE|FAILED) /g)).toHaveLength(6);
  expect(await demo.left()).toEqual([]);
  await expect(fetch(`${brokerIn(output)}/healthz`)).rejects.toThrow("fetch failed");
}, 120_000);

test("an interrupt in the middle of the work ends everything that was started", async () => {
  const demo = await startDemo();
  await until(() => demo.output().includes("progress"), {
    timeoutMs: 40_000,
    what: "the demo's first progress",
  });
  demo.child.kill("SIGINT");
  expect(await demo.closed, demo.output()).toBe(130);
  expect(demo.output()).toContain("demo: FAILED: interrupted by SIGINT");
  expect(demo.output()).not.toContain("did not end cleanly");
  expect(await demo.left()).toEqual([]);
  await expect(fetch(`${brokerIn(demo.output())}/healthz`)).rejects.toThrow("fetch failed");
}, 120_000);

/**
 * The small examples against a real broker: what they print and how they end. Limit: a reader runs them with tsx, as
 * the first test does; the others run a bundle, which starts in a third of the CPU time.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { Delegator, textOf } from "../../src/index.ts";
import { as, startBroker } from "../support/broker.ts";
import { bundled } from "../support/bundled.ts";
import { errand, freshDir } from "../support/program.ts";
import { until } from "../support/until.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PATIENT = { timeoutMs: 50_000 };

interface Example {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly ended: Promise<number | null>;
}

/** The arguments of node for an example. */
const asReader = (file: string) => ["--import", "tsx", `examples/${file}`];
const asBundle = async (file: string) => [await bundled(new URL(`../../examples/${file}`, import.meta.url))];

async function example(
  file: string,
  args: readonly string[],
  url: string,
  token: string,
  env: NodeJS.ProcessEnv = {},
): Promise<Example> {
  return start([...(await asBundle(file)), ...args], url, token, env);
}

function start(args: readonly string[], url: string, token: string, env: NodeJS.ProcessEnv = {}): Example {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ERRAND_URL: url, ERRAND_TOKEN: token, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (said: string) => {
      text += said;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, out: () => text, ended };
}

/** A broker with this agent, and a caller. */
async function setup(name: string) {
  const { url } = await startBroker();
  const agent = await as(url, `agent:${name}`);
  await agent.agent(name);
  const caller = await as(url, "caller:alice");
  return { url, agent, caller, delegator: new Delegator({ url, token: caller.token }) };
}

test("each prints its usage with --help, before it does anything", async () => {
  const parts = ["child.ts", "expected.ts", "survey.ts"];
  const files = (await readdir(join(ROOT, "examples"))).filter(
    (file) => /\.ts$/.test(file) && !parts.includes(file),
  );
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) {
    const text = await readFile(join(ROOT, "examples", file), "utf8");
    const [before = "", after] = text.split('if (process.argv.includes("--help"))');
    expect([file, after !== undefined, text.includes(`usage: ${file}`)]).toEqual([file, true, true]);
    expect(before).not.toMatch(/^(?:await|for|process)|new [A-Z]|connect\(/m);
  }
  const { ended, out } = start([...asReader("approver.ts"), "--help"], "http://127.0.0.1:9", "t");
  expect([await ended, out()]).toEqual([0, expect.stringMatching(/^usage: approver\.ts WORD/)]);
});

test("echo repeats the task, and exits when asked to", async () => {
  const { url, agent, delegator } = await setup("echo");
  const echo = await example("echo.ts", [], url, agent.token);
  const { id } = await delegator.delegate({ target: "echo", task: "is anybody there?" });
  const { state, reply } = await delegator.wait(id, { timeoutSeconds: 50 });
  expect([state, reply && textOf(reply)]).toEqual(["completed", "is anybody there?"]);
  echo.child.kill("SIGTERM");
  expect(await echo.ended).toBe(0);
  expect(echo.out()).toBe("echo is looking for work\n");
}, 120_000);

describe("shell", () => {
  test("streams the output of a command, and fails with the text of its stderr", async () => {
    const { url, agent, delegator } = await setup("shell");
    const shell = await example("shell.ts", [], url, agent.token);
    const [good, bad] = await Promise.all(
      ["printf 'one\\ntwo\\n'", "echo no such thing >&2; exit 3"].map((task) =>
        delegator.delegate({ target: "shell", task }),
      ),
    );
    expect(await delegator.wait(good?.id ?? "", { timeoutSeconds: 50 })).toMatchObject({
      state: "completed",
      artifacts: [{ artifactId: "stdout", parts: [{ text: "one\n" }, { text: "two\n" }] }],
      reply: { parts: [{ text: "2 lines" }] },
    });
    expect(await delegator.wait(bad?.id ?? "", { timeoutSeconds: 50 })).toMatchObject({
      state: "failed",
      error: { code: "command_failed", message: "no such thing" },
    });
    for (const line of [
      "shell is looking for work",
      "runs: printf",
      "completed: printf",
      "failed: echo no",
    ]) {
      await until(() => shell.out().includes(line), { ...PATIENT, what: line });
    }
  }, 120_000);

  test("kills the command when the delegation is canceled", async () => {
    const { url, agent, delegator } = await setup("shell");
    const shell = await example("shell.ts", [], url, agent.token);
    const { id } = await delegator.delegate({ target: "shell", task: "echo $$; sleep 600" });
    const pid = await until(async () => {
      const text = (await delegator.get(id)).artifacts[0]?.parts[0]?.text;
      return text === undefined ? undefined : Number(text);
    }, PATIENT);
    await delegator.cancel(id);
    await until(() => shell.out().includes("stopped: canceled"), PATIENT);
    await until(() => !isAlive(pid), { ...PATIENT, what: "the command's end" });
  }, 120_000);
});

test("an A2A server that knows nothing of the broker asks and deploys, through the relay", async () => {
  const { url, agent, caller, delegator } = await setup("deployer");
  const server = await example("a2a-server.ts", ["0"], url, "none");
  const to = await until(() => /an A2A server at (\S+)/.exec(server.out())?.[1], PATIENT);
  const env = { ERRAND_URL: url, ERRAND_TOKEN: agent.token };
  errand(freshDir(), ["relay", "--agent", "deployer", "--to", to], env);
  for (const [decision, state, said] of [
    ["approve", "completed", "deployed"],
    ["deny", "rejected", "not deployed"],
  ] as const) {
    const { id } = await delegator.delegate({ target: "deployer", task: "v1.4.0" });
    const asks = await delegator.wait(id, { timeoutSeconds: 50 });
    expect(asks.interrupt?.requests[0]?.message.parts).toEqual([{ text: "Deploy v1.4.0?" }]);
    await caller.answer(id, asks.interrupt?.id ?? "", { decision });
    const done = await until(async () => {
      const now = await delegator.get(id);
      return now.finished_at === null ? undefined : now;
    }, PATIENT);
    expect([done.state, done.reply && textOf(done.reply)]).toEqual([state, said]);
  }
}, 120_000);

test("release asks, an approver answers, and another process continues with the answer", async () => {
  const { url, agent, delegator } = await setup("release");
  const approver = await as(url, "approver:ann");
  const before = await example("release.ts", [], url, agent.token);
  const [good, bad] = await Promise.all(
    ["v1.4.0", "v2.0.0"].map((task) => delegator.delegate({ target: "release", task })),
  );
  const ids = [good?.id ?? "", bad?.id ?? ""];
  for (const id of ids) {
    expect((await delegator.wait(id, { timeoutSeconds: 50 })).state).toBe("input_required");
  }
  before.child.kill("SIGTERM");
  expect(await before.ended).toBe(0);
  expect(before.out().split("\n").sort()).toEqual(
    ["", "asked about v1.4.0", "asked about v2.0.0", "release is looking for work"].sort(),
  );

  const answering = await example("approver.ts", ["v1."], url, approver.token);
  const after = await example("release.ts", [], url, agent.token);
  const [released, denied] = await Promise.all(
    ids.map(async (id) => {
      await until(async () => (await delegator.get(id)).interrupt === null, PATIENT);
      return delegator.wait(id, { timeoutSeconds: 50 });
    }),
  );
  expect([released?.state, released?.reply && textOf(released.reply)]).toEqual([
    "completed",
    "released v1.4.0",
  ]);
  expect([denied?.state, denied?.error?.message]).toEqual(["rejected", "not released: not this one"]);
  // It prints a line after its answer is sent; by then the work may have ended.
  await until(() => answering.out().includes("denied"), PATIENT);
  expect(answering.out().trimEnd().split("\n").sort()).toEqual([
    "approved: Release v1.4.0?",
    "denied: Release v2.0.0?",
  ]);
  for (const line of ["completed: v1.4.0", "rejected: v2.0.0"]) {
    await until(() => after.out().includes(line), { ...PATIENT, what: line });
  }
  answering.child.kill("SIGTERM");
  expect(await answering.ended, answering.out()).toBe(0);
}, 120_000);

test("mcp-pair: one agent delegates and answers, the other polls, asks and completes, with tools only", async () => {
  const { url, agent, caller } = await setup("greeter");
  const pair = await example("mcp-pair.ts", ["greeter"], url, caller.token, { AGENT_TOKEN: agent.token });
  expect(await pair.ended, pair.out()).toBe(0);
  expect(pair.out().trimEnd().split("\n").slice(-1)).toEqual(["completed: Bonjour"]);
  expect(pair.out()).toContain("it asks: In which language?");
  const said = pair
    .out()
    .split("\n")
    .filter((line) => line.startsWith("worker: "));
  expect(said).toEqual(
    ["poll_inbox", "request_input", "poll_inbox", "request_input", "report_progress", "complete_task"].map(
      (tool) => `worker: ${tool}`,
    ),
  );
  const { body } = await caller.call("GET", "/v1/delegations");
  expect(body.delegations).toMatchObject([{ state: "completed", attempt: 1, delegator: "caller:alice" }]);
}, 120_000);

test("fan-out collects the results of all its delegations, failures included, and no others", async () => {
  const { url, agent, caller, delegator } = await setup("shell");
  await delegator.delegate({ target: "shell", task: "echo an earlier errand" });
  await example("shell.ts", [], url, agent.token);
  const tasks = ["echo 1", "seq 3", "exit 1"];
  const fanOut = await example("fan-out.ts", ["shell", ...tasks], url, caller.token);
  expect(await fanOut.ended, fanOut.out()).toBe(1);
  const lines = fanOut.out().trimEnd().split("\n");
  expect(lines[0]).toBe("3 sent to shell");
  expect(lines.slice(1, -1).sort()).toEqual([
    "echo 1: 1 lines",
    "exit 1: the command ended with 1",
    "seq 3: 3 lines",
  ]);
  expect(lines.at(-1)).toBe("2 done, 1 failed");
}, 120_000);

test("an A2A client uses an agent that polls release, after its approval", async () => {
  const { url, agent, caller } = await setup("release");
  await example("release.ts", [], url, agent.token);
  const approving = await example("a2a-client.ts", ["release", "v1.4.0"], url, caller.token);
  expect(await approving.ended, approving.out()).toBe(0);
  // Progress just before the reply may be dropped, and the agent may lease the work before the stream opens.
  const lines = approving.out().trimEnd().split("\n");
  expect(lines.filter((line) => line !== "WORKING: releasing" && line !== "SUBMITTED")).toEqual([
    "WORKING",
    "INPUT_REQUIRED: Release v1.4.0?",
    "answering approve",
    "WORKING",
    "artifact reply: released v1.4.0",
    "COMPLETED: released v1.4.0",
  ]);
  const denying = await example("a2a-client.ts", ["release", "v2.0.0", "deny"], url, caller.token);
  expect(await denying.ended, denying.out()).toBe(1);
  expect(denying.out().trimEnd().split("\n").at(-1)).toBe("REJECTED: not released: deny");
}, 120_000);

test("an AG-UI client runs an agent that polls, and approves or denies in a later run", async () => {
  const { url, agent, caller } = await setup("release");
  await example("release.ts", [], url, agent.token);
  const approving = await example("ag-ui-client.ts", ["release", "v1.4.0"], url, caller.token);
  expect(await approving.ended, approving.out()).toBe(0);
  const lines = approving.out().trimEnd().split("\n");
  expect(lines).toContain("asks: Release v1.4.0?; answering approve");
  expect(lines).toContain("says: released v1.4.0");
  expect(lines.at(-1)).toBe("state: completed");
  const denying = await example("ag-ui-client.ts", ["release", "v2.0.0", "deny"], url, caller.token);
  expect(await denying.ended, denying.out()).toBe(1);
  expect(denying.out().trimEnd().split("\n").at(-1)).toBe("rejected: not released: no reason given");
}, 120_000);

test("watcher prints every event once, and continues where it stopped", async () => {
  const { url, agent, delegator } = await setup("scout");
  const viewer = await as(url, "viewer:wall");
  const file = join(freshDir(), "cursor");
  const send = async () => (await delegator.delegate({ target: "scout", task: "x" })).id;
  const work = async () => {
    const { lease_id } = (await agent.lease("scout")).body.leases[0];
    await agent.reply(lease_id);
  };
  const seen = (watcher: Example, id: string) =>
    watcher
      .out()
      .split("\n")
      .filter((line) => line.includes(id))
      .map((line) => line.split(" ").slice(2).join(" "));

  const first = await send();
  const before = await example("watcher.ts", [file], url, viewer.token);
  await until(() => seen(before, first).length === 1, PATIENT);
  expect(seen(before, first)).toEqual(["1 scout DELEGATION_SENT queued"]);
  // The cursor is stored a moment after the print; a stop in between would repeat the event.
  await until(async () => (await readFile(file, "utf8")).length > 0, PATIENT);
  before.child.kill("SIGTERM");
  expect(await before.ended, before.out()).toBe(0);

  await work();
  const second = await send();
  const after = await example("watcher.ts", [file], url, viewer.token);
  await until(() => seen(after, second).length === 1, PATIENT);
  expect(seen(after, first)).toEqual([
    "2 scout DELEGATION_STATUS leased",
    "3 scout DELEGATION_COMPLETE completed",
  ]);
}, 120_000);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

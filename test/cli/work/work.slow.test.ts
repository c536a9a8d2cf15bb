/** `errand work`: the command's input, output and exit status, and signals. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { platform } from "node:process";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  AGENT,
  type Answer,
  completedWith,
  ID,
  LEASE_ID,
  leaseLike,
  stubBroker,
} from "../../client/stub-broker.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";

const HEARTBEAT = { expires_at: "2026-01-01T00:02:00.000Z", messages: [], state: "working" };

/** Grants one lease. `held` are the parked heartbeats. */
async function brokerWith(text: string, agentExists = true, isFull = false, change = {}) {
  const held: Answer[] = [];
  let given = false;
  const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text }] };
  const stub = await stubBroker((request, answer) => {
    const verb = request.path.split("/").at(-1);
    if (request.path === "/v1/agents/scout") {
      if (request.method === "GET" && !agentExists) answer.problem(404, "agent_unknown", "CONFIG");
      else answer.json(AGENT);
    } else if (verb === "leases") {
      if (!given) answer.json({ leases: [leaseLike(60, { message, ...change })] });
      given = true;
    } else if (verb === "heartbeat") {
      if (request.body.wait_seconds === undefined) answer.json(HEARTBEAT);
      else held.push(answer);
    } else if (verb === "release" && request.body.worker) answer.problem(401, "unauthenticated", "AUTH");
    else if (verb === "artifacts" && isFull) answer.problem(413, "payload_too_large", "PROTOCOL");
    else if (verb === "reply") answer.json({ outcome: "matched", delegation: completedWith("") });
    else answer.json({});
  });
  return { stub, held, env: { url: stub.url, token: "errand_secret" } };
}

const SH = ["--", "sh", "-c"];

async function workOn(
  script: string,
  task = "the task",
  options: string[] = [],
  isFull = false,
  childEnv = {},
  change = {},
) {
  const { stub, env } = await brokerWith(task, true, isFull, change);
  const done = await run(["work", "--agent", "scout", "--once", ...options, ...SH, script], {
    env,
    childEnv: {
      PATH: process.env.PATH,
      ERRAND_TOKEN: "errand_secret",
      ERRAND_OPERATOR_TOKEN: "o",
      ERRAND_ANSWER: "to an outer command",
      ERRAND_DECISION: "approve",
      ERRAND_REDIS_URL: "redis://:secret@example",
      ERRAND_CARD_SIGNING_KEY: "{}",
      KEPT: "yes",
      ...childEnv,
    },
  });
  const [reply, released] = [stub.to("/reply")[0]?.body, stub.to("/release")[0]?.body];
  return { ...done, stub, reply, released };
}

async function isAlive(pid: number): Promise<boolean> {
  // A zombie has ended, too, even if nobody reaps it.
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && stat.split(") ")[1]?.[0] !== "Z";
}
const areGone = async (pids: readonly number[]) => !(await Promise.all(pids.map(isAlive))).includes(true);

describe("the command", () => {
  test("gets the task on stdin; its output without the last newline becomes the reply", async () => {
    const { code, stdout, stderr, reply } = await workOn("cat; echo; echo end; echo", "läne 1\nline 2");
    expect(code).toBe(0);
    expect(stdout).toBe("");
    expect(reply).toEqual({ state: "completed", text: "läne 1\nline 2\nend\n" });
    const time = "errand: \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d (UTC|[+-]\\d\\d:\\d\\d)";
    expect(stderr).toMatch(new RegExp(`^${time} leased ${ID} from caller:alice, attempt 1\n`));
    expect(stderr).toMatch(new RegExp(`\n${time} ${ID} from caller:alice completed in [\\d.]+ m?s\n$`));
  });

  test("learns what was approved in advance", async () => {
    const auto_approve = { actions: ["deploy", "fs.*"] };
    const { reply } = await workOn('printf %s "$ERRAND_AUTO_APPROVE"', "go", [], false, {}, { auto_approve });
    expect(JSON.parse(String(reply?.text))).toEqual(auto_approve);
  });

  test("gets the schema of its result, and its output becomes the data of the reply", async () => {
    const result_schema = { type: "object", required: ["words"] };
    const workFor = (script: string) => workOn(script, "go", [], false, {}, { result_schema });
    const { reply } = await workFor('printf \'{"words": %s}\' "$(cat "$ERRAND_RESULT_SCHEMA_FILE")"');
    const data = { words: result_schema };
    expect(reply).toEqual({ state: "completed", message: { parts: [{ data }] } });
    const invalid = (message: string, text?: string) => ({
      state: "failed",
      error: { code: "result_invalid", message: expect.stringContaining(message) },
      ...(text !== undefined && { text }),
    });
    expect((await workFor("echo five")).reply).toMatchObject(invalid("it is not JSON", "five\n"));
    expect((await workFor("echo {}")).reply).toMatchObject(invalid("words: missing", "{}\n"));
    expect((await workFor("printf '\\377'")).reply).toMatchObject(invalid("it is not text"));
    expect((await workFor("echo no >&2; exit 3")).reply).toMatchObject({ error: { code: "command_failed" } });
    expect((await workOn("env")).reply?.text).not.toContain("ERRAND_RESULT_SCHEMA_FILE");
  });

  test("gets the delegation's ids in its environment, and no token", async () => {
    const { reply } = await workOn("env");
    const env = new Map(
      String(reply?.text)
        .split("\n")
        .map((line) => [line.split("=")[0], line]),
    );
    expect(env.get("ERRAND_TASK")).toBe("ERRAND_TASK=the task");
    expect(env.get("ERRAND_DELEGATION_ID")).toBe(`ERRAND_DELEGATION_ID=${ID}`);
    expect(env.get("ERRAND_LEASE_ID")).toBe(`ERRAND_LEASE_ID=${LEASE_ID}`);
    expect(env.get("ERRAND_ATTEMPT")).toBe("ERRAND_ATTEMPT=1");
    expect(env.get("ERRAND_CONTEXT_ID")).toBe("ERRAND_CONTEXT_ID=ctx-1");
    expect([env.has("ERRAND_ANSWER"), env.has("ERRAND_DECISION")]).toEqual([false, false]);
    expect(env.get("KEPT")).toBe("KEPT=yes");
    expect(String(reply?.text)).not.toContain("errand_secret");
    const given = [
      "ANSWERS_FILE",
      "ARTIFACTS_DIR",
      "ATTEMPT",
      "CONTEXT_ID",
      "DELEGATION_ID",
      "LEASE_ID",
      "MESSAGES_FILE",
      "TASK",
      "USAGE_FILE",
    ];
    expect([...env.keys()].filter((name) => name?.startsWith("ERRAND_")).sort()).toEqual(
      given.map((name) => `ERRAND_${name}`),
    );
  });

  test("gets a token of its own, to delegate, if the worker has one for it", async () => {
    const own = { ERRAND_COMMAND_TOKEN: "errand_own" };
    const { reply, stub } = await workOn("env | grep -E '_(URL|TOKEN)='|sort", "x", [], false, own);
    expect(reply?.text).toBe(`ERRAND_TOKEN=errand_own\nERRAND_URL=${stub.url}`);
  });

  test("gets a large task only on stdin", async () => {
    const { reply } = await workOn("wc -c; env | grep -c ERRAND_TASK || true", "x".repeat(100_000));
    expect(reply?.text).toMatch(/^\s*100000\n0$/);
  });

  test("need not read its task", async () => {
    const { reply } = await workOn("exec echo ignored", "x".repeat(1_000_000));
    expect(reply).toEqual({ state: "completed", text: "ignored" });
  });
});

describe("its exit status", () => {
  test("other than 0 fails the delegation with the last lines of stderr", async () => {
    const script = "i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 3";
    const { code, reply, stderr } = await workOn(script);
    expect(code).toBe(0);
    expect(reply).toMatchObject({ state: "failed", error: { code: "command_failed", retryable: false } });
    const message = String(Object(reply?.error).message);
    expect(message.length).toBeLessThanOrEqual(4096);
    expect(message).toMatch(/^line \d+\n/);
    expect(message.endsWith("line 1999")).toBe(true);
    expect(stderr).toContain("failed in");
  });

  test.each([
    ["exit 3", "exit status 3", false],
    ["exit 75", "exit status 75", true],
    ["kill -9 $$", "killed by SIGKILL", false],
  ])("%s without output reports %s", async (script, message, retryable) => {
    const { reply } = await workOn(script);
    expect(reply).toEqual({ state: "failed", error: { code: "command_failed", message, retryable } });
  });

  test.each([
    ["exit 69", "its command cannot work now (exit status 69)"],
    ["exit 127", "a program of its command is missing (exit status 127)"],
    ["/no/such/program", "a program of its command is missing (exit status 127)"],
    ["touch p; ./p", "a program of its command is missing (exit status 126)"],
  ])("%s returns the work without an attempt, and the worker pauses", async (script, reason) => {
    const { reply, released, stderr } = await workOn(`cd "$ERRAND_ARTIFACTS_DIR"; ${script}`, "x", [
      "--quiet",
    ]);
    expect(reply).toBeUndefined();
    expect(released).toMatchObject({ reason, worker: { reason, paused_seconds: expect.any(Number) } });
    expect(stderr).toContain(`paused: ${reason}; next try in`);
  });

  test.each(["exit 127", "exit 69", "no-such-command"])(
    "of a delegator's script, %s, is no fault of the worker",
    async (script) => {
      const { stub, env } = await brokerWith(script);
      await run(["work", "--agent", "scout", "--once", "--preset", "shell"], { env });
      expect(stub.to("/reply")[0]?.body).toMatchObject({
        state: "failed",
        error: { code: "command_failed" },
      });
    },
  );

  test("reports what it printed to stdout if stderr is empty, without control characters", async () => {
    const { reply } = await workOn("printf 'first\\n\\033[31mno credit\\033[0m\\a\\n'; exit 1");
    expect(reply).toMatchObject({ error: { message: "first\nno credit" } });
    const binary = await workOn("printf '\\000\\001'; exit 1");
    expect(binary.reply).toMatchObject({ error: { message: "exit status 1" } });
  });

  test("ends the processes that it left behind, also those that ignore SIGTERM", async () => {
    const { reply } = await workOn(
      "(trap '' TERM; exec sleep 600) & echo $!; sleep 600 >/dev/null & echo $!",
    );
    const pids = String(reply?.text).split("\n").map(Number);
    expect(pids).toHaveLength(2);
    await until(() => areGone(pids), { what: "the end of the background processes" });
  });

  test.runIf(platform === "linux")(
    "ends on Linux what it started in sessions of their own, however deep, unless that dropped the variable",
    async () => {
      const script = `cd "$(mktemp -d)"
        wait_for() { until [ -s "$1" ]; do sleep 0.02; done; cat "$1"; }
        setsid sh -c 'echo $$; exec sleep 600' >one 2>&1 </dev/null &
        setsid setsid --fork sh -c 'echo $$; exec sleep 600' >two 2>&1 </dev/null &
        env -u ERRAND_MESSAGES_FILE setsid sh -c 'echo $$; exec sleep 600' >kept 2>&1 </dev/null &
        wait_for one; wait_for two; wait_for kept`;
      const { reply } = await workOn(script);
      const pids = String(reply?.text).trim().split("\n").map(Number);
      expect(pids).toHaveLength(3);
      const kept = pids.pop() ?? 0;
      expect(await isAlive(kept)).toBe(true);
      process.kill(kept, "SIGKILL");
      await until(() => areGone(pids), { what: "the end of the sessions" });
    },
  );

  test("as process 1 it says once that it needs an init", async () => {
    const pid = vi.spyOn(process, "pid", "get").mockReturnValue(1);
    const { stderr } = await workOn("echo done");
    pid.mockRestore();
    expect(stderr.match(/this is process 1 of a container .*docker run --init/g)).toHaveLength(1);
    expect((await workOn("echo done")).stderr).not.toContain("process 1");
  });
});

describe("its limits", () => {
  test("--timeout stops the command and its children", async () => {
    const { reply } = await workOn("sleep 600 & echo pids $! >&2; wait", "x", ["--timeout", "0.5s"]);
    expect(reply).toMatchObject({ state: "failed", error: { code: "command_timeout", retryable: false } });
    const message = String(Object(reply?.error).message);
    expect(message).toMatch(/^The command ran longer than 500 ms \(--timeout\)\.\npids \d+$/);
    await until(() => areGone([Number(message.split(" ").at(-1))]), { what: "the child's end" });
  });

  test("--idle-timeout counts from the last output", async () => {
    const script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; exec sleep 600";
    const { reply } = await workOn(script, "x", ["--idle-timeout", "3s"]);
    expect(reply).toMatchObject({
      error: {
        code: "command_timeout",
        message: "The command printed nothing for 3 s (--idle-timeout).",
      },
    });
  });
});

describe("its output", () => {
  test("is reported as progress: its latest line, without escape sequences", async () => {
    const { stub } = await workOn(
      "printf 'one\\n\\033[31mtwo\\033[0m\\n'; sleep 1; printf '10%%\\r20%%\\r' >&2; sleep 1",
    );
    const said = stub.to("/heartbeat").flatMap(({ body }) => body.progress ?? []);
    expect(said).toEqual([{ message: "two" }, { message: "20%" }]);
  });

  const progressOf = async (script: string, ...options: string[]) => {
    const { reply, stub } = await workOn(script, "x", options);
    return { reply, said: stub.to("/heartbeat").flatMap(({ body }) => body.progress ?? []) };
  };

  test("may report progress in a line protocol on stderr, and invalid lines as messages", async () => {
    const { reply, said } = await progressOf(
      `echo '{"progress":{"message":"m","done":1,"total":3,"eta_seconds":9}}' >&2; sleep 1
       echo '{"progress":{"done":-1}}' >&2; sleep 1; echo '{"progress":{"done":2}}'; echo why >&2; exit 3`,
    );
    expect(said[0]).toEqual({ message: "m", done: 1, total: 3, eta_seconds: 9 });
    expect(said[1]).toEqual({ message: '{"progress":{"done":-1}}' });
    // The protocol is no part of the error.
    expect(reply).toMatchObject({ state: "failed", error: { message: "why" } });
  });

  test("is no progress with --progress-fd, only what is printed there", async () => {
    const script = 'echo answer; echo noise >&2; echo "on $ERRAND_PROGRESS_FD" >&4; sleep 1';
    const other = await progressOf(script, "--progress-fd", "4");
    expect(other).toEqual({ reply: { state: "completed", text: "answer" }, said: [{ message: "on 4" }] });
    const stderr = await progressOf("echo answer; echo step >&2; sleep 1", "--progress-fd", "2");
    expect(stderr.said).toEqual([{ message: "step" }]);
  });

  const stdoutOf = (reply: unknown) => Object(Object(reply).artifacts?.[0]);

  test("is the reply's text up to 64 KiB, an artifact beyond", async () => {
    const fits = await workOn("head -c 65536 /dev/zero | tr '\\0' x");
    expect(fits.reply?.text).toHaveLength(65_536);
    const { reply } = await workOn("head -c 65536 /dev/zero | tr '\\0' x; echo");
    expect(reply?.message).toEqual({
      role: "ROLE_AGENT",
      parts: [{ text: "The output is the artifact 'stdout': 65537 bytes." }],
      metadata: { output_artifact: "stdout" },
    });
    expect(reply?.artifacts).toHaveLength(1);
    expect(stdoutOf(reply)).toMatchObject({ artifactId: "stdout", metadata: {} });
    expect(stdoutOf(reply).parts).toEqual([{ text: `${"x".repeat(65_536)}\n`, mediaType: "text/plain" }]);
  });

  test("that does not fit one request is sent in pieces", async () => {
    const { stub, reply } = await workOn("head -c 2000000 /dev/zero | tr '\\0' x");
    const sent = stub.to("/artifacts").map(({ body }) => body);
    expect(sent.map(({ append, last_chunk }) => [append, last_chunk])).toEqual([
      [false, false],
      [true, false],
      [true, true],
    ]);
    const text = sent.map(({ artifact }) => Object(artifact).parts[0].text).join("");
    expect(text === "x".repeat(2_000_000)).toBe(true);
    expect(Math.max(...sent.map((body) => JSON.stringify(body).length))).toBeLessThan(1_048_576);
    expect(reply).toMatchObject({ state: "completed", message: { metadata: { output_artifact: "stdout" } } });
  });

  test("that exceeds 3 MiB fails the delegation, with its beginning as the artifact", async () => {
    const { reply, stub } = await workOn("head -c 4000000 /dev/zero | tr '\\0' '\"'");
    expect(reply).toMatchObject({ state: "failed", error: { code: "output_too_large", retryable: false } });
    expect(Object(reply?.error).message).toContain(
      "The output has 4000000 bytes; at most 3145728 are stored.",
    );
    expect(stdoutOf(reply).metadata).toEqual({ truncated: true, stdout_bytes: 4_000_000 });
    expect(stdoutOf(reply).parts[0].text.length).toBeGreaterThan(400_000);
    expect(JSON.stringify(reply).length).toBeLessThan(1_048_576);
    expect(stub.to("/artifacts")).toEqual([]);
  });

  test("that the delegation has no room for fails it", async () => {
    const { reply } = await workOn("head -c 2000000 /dev/zero | tr '\\0' x", "the task", [], true);
    expect(reply).toMatchObject({ state: "failed", error: { code: "output_too_large" } });
  });

  test("that is binary is sent as bytes", async () => {
    const { reply } = await workOn("printf '\\377\\000\\001'");
    expect(stdoutOf(reply).parts).toEqual([{ raw: "/wAB", mediaType: "application/octet-stream" }]);
    const { metadata, parts } = Object(reply?.message);
    expect(metadata).toEqual({ output_artifact: "stdout" });
    expect(parts).toEqual([{ text: "The output is the artifact 'stdout': 3 bytes." }]);
  });
});

test("an agent that does not exist is created with default settings", async () => {
  const { stub, env } = await brokerWith("x", false);
  await run(["work", "--agent", "scout", "--once", "--quiet", "--", "cat"], { env });
  const made = stub.seen.find(({ path, method }) => path === "/v1/agents/scout" && method !== "GET");
  expect(made).toMatchObject({ body: {} });
});

test("--quiet prints nothing, --json prints JSON lines on stdout", async () => {
  const quiet = await brokerWith("x");
  const silent = await run(["work", "--agent", "scout", "--once", "--quiet", "--", "cat"], {
    env: quiet.env,
  });
  expect(silent).toEqual({ code: 0, stdout: "", stderr: "" });
  const loud = await brokerWith("x");
  const said = await run(["work", "--agent", "scout", "--once", "--json", "--", "cat"], { env: loud.env });
  expect(said.stderr).toBe("");
  const lines = said.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { event: "leased", delegation_id: ID, attempt: 1 },
    { event: "replied", delegation_id: ID, state: "completed" },
  ]);
});

describe("as a process", () => {
  /** A worker process whose command prints the process ids of itself and its child. */
  async function worker(script: string) {
    const broker = await brokerWith("x");
    const errand = spawn(
      process.execPath,
      [
        "--import",
        "tsx",
        fileURLToPath(new URL("../process.ts", import.meta.url)),
        "work",
        "--agent",
        "scout",
        ...SH,
        script,
      ],
      {
        env: { PATH: process.env.PATH, ERRAND_URL: broker.env.url, ERRAND_TOKEN: broker.env.token },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    onTestFinished(() => void errand.kill("SIGKILL"));
    let stderr = "";
    errand.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const said = () =>
      broker.stub.to("/heartbeat").flatMap(({ body }) => Object(body.progress).message ?? []);
    const pids = await until(
      () => {
        const words = String(said()[0] ?? "").split(" ");
        return words[0] === "pids" ? words.slice(1).map(Number) : undefined;
      },
      { what: "the process ids", timeoutMs: 45_000 },
    );
    return { ...broker, errand, pids, stderr: () => stderr };
  }

  test("Ctrl-C ends the command and its children, releases the lease, and exits 130", async () => {
    const { errand, pids, stub, stderr } = await worker("sleep 60 & echo pids $$ $!; wait");
    errand.kill("SIGINT");
    const [code] = await once(errand, "exit");
    expect(code).toBe(130);
    expect(await areGone(pids)).toBe(true);
    expect(stub.to("/release")).toHaveLength(1);
    expect(stub.to("/reply")).toEqual([]);
    expect(stderr()).toMatch(new RegExp(`released ${ID} from \\S+ after [\\d.]+ m?i?n?s?`));
  });

  test("a second Ctrl-C does not wait for a command that ignores SIGTERM", async () => {
    const { errand, pids, stub } = await worker("trap '' TERM; echo pids $$; while :; do sleep 1; done");
    errand.kill("SIGTERM");
    errand.kill("SIGINT");
    await once(errand, "exit");
    expect([130, 143]).toContain(errand.exitCode);
    // A first Ctrl-C waits for the command, then releases its lease.
    expect(stub.to("/release")).toEqual([]);
    await until(() => areGone(pids), { what: "the command's end" });
  });

  test("a cancel ends the command, with SIGKILL if it ignores SIGTERM, and sends no reply", async () => {
    const { errand, held, pids, stub, stderr } = await worker(
      "trap '' TERM; echo pids $$; while :; do sleep 1; done",
    );
    const heartbeat = await until(() => held[0], { what: "the held heartbeat" });
    heartbeat.problem(409, "lease_lost", "PROTOCOL", { details: { reason: "canceled" } });
    await until(() => areGone(pids), { what: "the command's end" });
    await until(() => /dropped after .*: the lease is lost \(canceled\)/.test(stderr()), {
      what: "the log line",
    });
    expect(stub.to("/reply")).toEqual([]);
    expect(stub.to("/release")).toEqual([]);
    await until(() => stub.to("/leases").length === 2, { what: "the next poll" });
    errand.kill("SIGINT");
    await once(errand, "exit");
  });
});

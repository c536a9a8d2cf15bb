/**
 * `errand work --preset`, with small programs that print what the vendors' documentation shows. Limit: the real programs
 * are not run.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { Sessions } from "../../../src/cli/work/presets/sessions.ts";
import { AGENT, completedWith, leaseLike, stubBroker } from "../../client/stub-broker.ts";
import { until } from "../../support/until.ts";
import { run } from "../fake-host.ts";

const CAPTURED = fileURLToPath(new URL("captured", import.meta.url));

/** Programs in a folder; `work` runs one delegation with a preset and returns its reply. */
function setup(programs: Record<string, string>) {
  const dir = mkdtempSync(join(tmpdir(), "errand-presets-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(dir, name), `#!/bin/sh\necho "$@ < $(cat)" >> ${dir}/runs\n${script}\n`);
    chmodSync(join(dir, name), 0o755);
  }
  const work = async (
    args: string[],
    delegation: object = {},
    text = "do it",
    files: object[] = [],
    agent: object = { accepts_from: ["*"] },
  ) => {
    let given = false;
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text }, ...files] };
    const stub = await stubBroker((request, answer) => {
      const verb = request.path.split("/").at(-1);
      if (request.path === "/v1/agents/scout") answer.json({ ...AGENT, ...agent });
      else if (verb === "leases") {
        const lease = leaseLike(60, { message });
        answer.json({
          leases: given ? [] : [{ ...lease, delegation: Object.assign({}, lease.delegation, delegation) }],
        });
        given = true;
      } else if (verb === "heartbeat")
        answer.json({ expires_at: "2026-01-01T00:02:00.000Z", messages: [], state: "working" });
      else if (verb === "reply") answer.json({ outcome: "matched", delegation: completedWith("") });
      // Ends the worker, which would pause.
      else if (verb === "release") answer.problem(401, "unauthenticated", "AUTH");
      else answer.json({});
    });
    const done = await run(["work", "--agent", "scout", "--once", ...args], {
      env: { url: stub.url, token: "errand_secret" },
      childEnv: { PATH: `${dir}:/usr/bin:/bin`, XDG_STATE_HOME: join(dir, "state") },
    });
    const progress = stub.to("/heartbeat").flatMap(({ body }) => Object(body.progress).message ?? []);
    const [reply, released] = [stub.to("/reply")[0]?.body, stub.to("/release")[0]?.body];
    return { ...done, reply, released, progress };
  };
  return {
    work,
    dir,
    runs: () =>
      readFileSync(join(dir, "runs"), "utf8")
        .trim()
        .replace(/\S+\/artifacts/g, "ARTIFACTS")
        .split("\n"),
  };
}

const CLAUDE = `cat <<'END'
{"type":"system","subtype":"init","session_id":"5f1c-a"}
{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{}}]},"session_id":"5f1c-a"}
END
sleep 1
cat <<'END'
{"type":"result","subtype":"success","is_error":false,"result":"Done:\\n- all","session_id":"5f1c-a"}
END`;

test("claude: the answer is the result, and the context's conversation is continued", async () => {
  const { work, runs } = setup({ claude: CLAUDE });
  const args = ["--preset", "claude", "--ask", "none", "--", "--permission-mode", "acceptEdits"];
  const first = await work(args);
  expect(first.reply).toEqual({ state: "completed", text: "Done:\n- all" });
  expect(first.progress).toEqual(["Read"]);
  await work(args);
  await work(args, { context_id: "ctx-2" });
  // The same context id, but of somebody else.
  await work(args, { delegator: "caller:eve" });
  const flags = "-p --output-format stream-json --add-dir ARTIFACTS --verbose";
  const rest = "--permission-mode acceptEdits < do it";
  expect(runs()).toEqual([
    `${flags} ${rest}`,
    `${flags} --resume 5f1c-a ${rest}`,
    `${flags} ${rest}`,
    `${flags} ${rest}`,
  ]);
});

test("claude: an error result fails the delegation, even with status 0", async () => {
  const { work } = setup({
    claude: `echo '{"type":"result","subtype":"error_max_turns","is_error":true,"session_id":"s"}'`,
  });
  expect((await work(["--preset", "claude", "--ask", "none"])).reply).toMatchObject({
    state: "failed",
    error: { code: "turn_limit" },
  });
});

test("claude: a conversation that does not exist any more is begun again", async () => {
  const { work, runs } = setup({
    claude: `case "$*" in *--resume*) echo 'No conversation found' >&2; exit 1 ;; esac\n${CLAUDE}`,
  });
  await work(["--preset", "claude", "--ask", "none"]);
  const second = await work(["--preset", "claude", "--ask", "none"]);
  expect(second.reply).toMatchObject({ state: "completed" });
  expect(second.progress.join()).toContain("Claude Code could not continue the conversation of this context");
  expect(runs().map((line) => line.includes("--resume"))).toEqual([false, true, false]);
});

test("claude: a conversation is kept while the program cannot begin at all", async () => {
  const { work, runs, dir } = setup({ claude: CLAUDE });
  await work(["--preset", "claude", "--ask", "none"]);
  writeFileSync(join(dir, "claude"), `#!/bin/sh\necho "$@ < $(cat)" >> ${dir}/runs\nexit 1\n`);
  expect((await work(["--preset", "claude", "--ask", "none"])).reply).toMatchObject({ state: "failed" });
  await work(["--preset", "claude", "--ask", "none"]);
  expect(runs().map((line) => line.includes("--resume"))).toEqual([false, true, false, true, false]);
});

test("claude: a refused tool fails the delegation, and its reply is kept", async () => {
  const { work } = setup({ claude: `cat ${CAPTURED}/claude-denied.jsonl` });
  const { reply } = await work(["--preset", "claude", "--ask", "none"]);
  expect(reply).toMatchObject({
    state: "failed",
    text: "Done with the tool.",
    error: { code: "permission_denied", retryable: false },
  });
});

const ASKS_NOBODY = ["--ask", "none"];
const SCHEMA = { type: "object", properties: { words: { type: "integer" } }, required: ["words"] };
const STRICT = { ...SCHEMA, additionalProperties: false };
const RESULT = { state: "completed", message: { parts: [{ data: { words: 5 } }] } };

test("claude: the result is what it hands over for the schema", async () => {
  const { work, runs } = setup({ claude: `cat ${CAPTURED}/claude-structured.jsonl` });
  const args = ["--preset", "claude", ...ASKS_NOBODY];
  expect((await work(args, { result_schema: SCHEMA })).reply).toMatchObject(RESULT);
  expect(runs()[0]).toContain(`--verbose --json-schema ${JSON.stringify(SCHEMA)} < do it`);
  // Without a schema, the reply is the text.
  expect((await work(args)).reply).toMatchObject({ state: "completed", text: '{"words":5}' });
});

test.each([
  ["unstructured", "the program handed none over", '{"words":5}'],
  ["unfit", "Failed to provide valid structured output after 5 attempts", undefined],
])("claude: a run that hands no result over fails: %s", async (name, message, text) => {
  const { work } = setup({ claude: `cat ${CAPTURED}/claude-${name}.jsonl` });
  const { reply } = await work(["--preset", "claude", ...ASKS_NOBODY], { result_schema: SCHEMA });
  expect(reply).toMatchObject({
    state: "failed",
    error: { code: "result_invalid", message: expect.stringContaining(message), retryable: false },
  });
  expect(reply?.text).toBe(text);
});

test("codex: a strict schema is in a file, any other in the prompt", async () => {
  const said = '{"type":"item.completed","item":{"type":"agent_message","text":"{\\"words\\":5}"}}';
  const { work, runs, dir } = setup({
    codex: `[ "$5" != --output-schema ] || cat "$6" > "$(dirname "$0")/schema"\nprintf '%s\\n' '${said}'`,
  });
  const args = ["--preset", "codex", "--", "--sandbox", "read-only"];
  expect((await work(args, { result_schema: STRICT })).reply).toEqual(RESULT);
  expect(runs()[0]).toMatch(
    /^exec --json --add-dir ARTIFACTS --output-schema \S+\/result-schema.json --sandbox read-only - < do it$/,
  );
  expect(JSON.parse(readFileSync(join(dir, "schema"), "utf8"))).toEqual(STRICT);
  expect((await work(args, { result_schema: SCHEMA })).reply).toEqual(RESULT);
  expect(runs().slice(1)).toEqual([
    "exec --json --add-dir ARTIFACTS --sandbox read-only - < do it",
    "",
    "Your final message must be JSON only, without any other text. It must fit this JSON Schema:",
    JSON.stringify(SCHEMA),
  ]);
});

test.each([
  ["claude", `echo '{"type":"result","is_error":true,"api_error_status":429,"result":"limit"}'`],
  ["codex", `echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}'; exit 1`],
])("%s: work that it cannot do now returns without an attempt", async (preset, script) => {
  const { work } = setup({ [preset]: script });
  const { reply, released, stderr } = await work(["--preset", preset, ...ASKS_NOBODY]);
  expect(reply).toBeUndefined();
  expect(released).toMatchObject({
    reason: expect.stringMatching(/limit \(429\)|signed in, .* \(401\)/),
    worker: { paused_seconds: expect.any(Number) },
  });
  expect(stderr).toMatch(/paused: .*; next try in \d/);
});

test.each([
  ["claude", `cat ${CAPTURED}/claude-denied.jsonl`],
  ["codex", `cat ${CAPTURED}/codex-first.jsonl`],
])(
  "%s: files that came with the task are named in the prompt, and their folders are open to it",
  async (preset, script) => {
    const { work, runs } = setup({ [preset]: script });
    const file = { raw: Buffer.from("hi").toString("base64"), filename: "a b.md" };
    await work(["--preset", preset, ...ASKS_NOBODY], {}, "read it", [file]);
    const [first = "", ...rest] = runs();
    expect(first).toMatch(/ --add-dir (\S+)\/files --add-dir ARTIFACTS .*< read it$/);
    expect(rest.join("\n")).toMatch(
      /Files that came with this task:\n- \S+\/files\/a b.md\n\nPut files .*: ARTIFACTS$/,
    );
  },
);

const CODEX = `cat <<'END'
{"type":"thread.started","thread_id":"0199a213-81c0"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"bash -lc ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Looking."}}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"Yes."}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
END`;

test("codex: the answer is the last message of the agent, and the thread is resumed", async () => {
  const { work, runs } = setup({ codex: CODEX });
  const args = ["--preset", "codex", "--", "--sandbox", "workspace-write"];
  const usage = { input_tokens: 1, output_tokens: 1 };
  expect((await work(args)).reply).toEqual({ state: "completed", text: "Yes.", usage });
  await work(args);
  expect(runs()).toEqual([
    "exec --json --add-dir ARTIFACTS --sandbox workspace-write - < do it",
    "exec --json --add-dir ARTIFACTS --sandbox workspace-write resume 0199a213-81c0 - < do it",
  ]);
});

test("codex: a failed turn, or no message, fails the delegation", async () => {
  const failed = setup({ codex: `echo '{"type":"turn.failed","error":{"message":"no credit"}}'; exit 1` });
  expect((await failed.work(["--preset", "codex"])).reply).toMatchObject({
    state: "failed",
    error: { code: "command_failed", message: "no credit" },
  });
  const silent = setup({ codex: "true" });
  expect((await silent.work(["--preset", "codex"])).reply).toMatchObject({
    error: { message: "Codex printed no answer" },
  });
});

test("shell: runs the task as a script, with the arguments", async () => {
  const { work } = setup({});
  const { reply } = await work(["--preset", "shell", "--", "7"], {}, 'echo "$(($1 * 6))"; exit 0');
  expect(reply).toEqual({ state: "completed", text: "42" });
});

test("shell: says at the start that every caller may run commands here, unless the agent is limited", async () => {
  const { work } = setup({});
  const warning = "everyone who may delegate at this broker can now run commands as this user";
  expect((await work(["--preset", "shell"], {}, "true")).stderr).toContain(warning);
  const limited = await work(["--preset", "shell"], {}, "true", [], { accepts_from: ["caller:alice"] });
  expect(limited.stderr).not.toContain(warning);
  const command = await work(["--", "true"]);
  expect(command.stderr).not.toContain(warning);
});

test("shell: the script may begin with a dash and be long, and is in no list of processes", async () => {
  const { work } = setup({});
  const { reply } = await work(["--preset", "shell"], {}, "-n 2>/dev/null; echo after");
  expect(reply).toEqual({ state: "completed", text: "after" });
  const script = `# ${"a secret ".repeat(20_000)}\ntr '\\0' ' ' < /proc/$$/cmdline; cat; echo "$1"`;
  const long = await work(["--preset", "shell", "--", "7"], {}, script);
  expect(long.reply).toMatchObject({
    state: "completed",
    text: expect.stringMatching(/^sh -c \S+ .*" \$_errand_task" sh \S+\/task\.sh 7 7$/),
  });
});

test("shell: its messages do not name the file with the script", async () => {
  const { work } = setup({});
  const { reply } = await work(
    ["--preset", "shell"],
    {},
    'echo "$0" >&2\nset -e\nno-such-command\necho after',
  );
  expect(reply).toMatchObject({ state: "failed", error: { code: "command_failed" } });
  expect(Object(reply?.error).message).toMatch(/^sh\nsh: .*no-such-command: .*not found$/);
});

test("an answer is not lost when its conversation cannot be stored", async () => {
  const { work, dir } = setup({ codex: CODEX });
  writeFileSync(join(dir, "state"), "not a folder");
  const { reply, stderr } = await work(["--preset", "codex"]);
  expect(reply).toMatchObject({ state: "completed", text: "Yes." });
  expect(stderr).toContain("cannot store the conversation");
});

test("tasks of one conversation run one after another, and a canceled one does not wait", async () => {
  const sessions = new Sessions(setup({}).dir);
  const turn = (context_id: string, signal = new AbortController().signal) => ({
    signal,
    delegation: { target: "scout", delegator: "caller:alice", context_id },
  });
  const running: string[] = [];
  let finish = () => {};
  const first = sessions.use("codex", "/here", turn("c"), async ({ keep }) => {
    running.push("first");
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    await keep("thread-1");
  });
  const canceled = new AbortController();
  const second = sessions.use("codex", "/here", turn("c", canceled.signal), async () =>
    running.push("second"),
  );
  const third = sessions.use("codex", "/here", turn("c"), async ({ id }) => running.push(`third of ${id}`));
  await sessions.use("codex", "/here", turn("other"), async ({ id }) => running.push(`other of ${id}`));
  await until(() => running.length === 2);
  canceled.abort(new Error("canceled"));
  await expect(second).rejects.toThrow("canceled");
  // Neither waits for the other, so either may be first.
  expect(running.toSorted()).toEqual(["first", "other of undefined"]);
  finish();
  await Promise.all([first, third]);
  expect(running.at(-1)).toBe("third of thread-1");
});

test("a program that is missing, and no command at all, are refused", async () => {
  const { work } = setup({});
  const missing = await work(["--preset", "codex"]);
  expect(missing.code).toBe(78);
  expect(missing.stderr).toContain("the command 'codex' was not found or is not executable");
  expect(missing.stderr).toContain("npm install -g @openai/codex");
  const none = await work([]);
  expect([none.code, none.stderr]).toEqual([64, expect.stringContaining("Pass a command after '--'")]);
});

test("what the program used is in the reply; it counts over the conversation, so earlier runs are subtracted", async () => {
  const { work } = setup({
    claude: `cat ${CAPTURED}/claude-denied.jsonl`,
    codex: `case "$*" in *resume*) cat ${CAPTURED}/codex-resumed.jsonl ;; *) cat ${CAPTURED}/codex-first.jsonl ;; esac`,
  });
  const usage = async (preset: string) =>
    Object(await work(["--preset", preset, ...ASKS_NOBODY])).reply.usage;
  const cost = (cost: number) => ({ cost, currency: "USD" });
  expect([await usage("claude"), await usage("claude")]).toEqual([cost(0.000368), cost(0)]);
  const turn = { input_tokens: 11, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 };
  expect([await usage("codex"), await usage("codex")]).toEqual([turn, turn]);
});

test("a command reports what it used in a file", async () => {
  const { work } = setup({});
  const report = (text: string) => `printf '%s\\n' '${text}' >> "$ERRAND_USAGE_FILE"`;
  const script = [report('{"cost":1,"currency":"USD"}'), report('{"input_tokens":5}'), report('{"in')].join(
    ";",
  );
  const { reply } = await work(["--", "sh", "-c", script]);
  expect(reply).toMatchObject({ state: "completed", usage: { input_tokens: 5 } });
});

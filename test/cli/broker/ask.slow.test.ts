/** Commands that ask questions, and `errand answer`, `approve` and `deny`, against a real gateway. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { localTime } from "../../../src/cli/show/time.ts";
import { delegationSchema } from "../../../src/schema/delegation.ts";
import { as, OPERATOR } from "../../support/broker.ts";
import { checkHistory, eventsOf } from "../../support/history.ts";
import { atTerminal } from "../../support/terminal.ts";
import { until } from "../../support/until.ts";
import { run as runHere } from "../fake-host.ts";
import { lines, problemIn, setup } from "./cli.ts";

const sh = (script: string) => ["sh", "-c", script];

type Setting = Awaited<ReturnType<typeof setup>>;

/** A delegation of its own agent that asks this question. */
async function asking({ api }: Setting, question: Record<string, unknown>): Promise<string> {
  const agent = `asker-${crypto.randomUUID()}`;
  await api.agent(agent);
  const { id } = (await api.delegate(agent, { task: "go" })).body;
  const [lease] = (await api.lease(agent)).body.leases;
  expect((await api.interrupt(lease.lease_id, question)).status).toBe(200);
  return id;
}

const answered = async ({ api }: Setting, id: string) =>
  (await api.get(id)).body.history.filter(({ role }: { role: string }) => role === "ROLE_USER");

test("the example of 'errand help work' ends with every answer", async () => {
  const { api, run, dir, worker } = await setup();
  const help = (await run(["help", "work"])).stdout;
  const [, script = ""] = /--agent deployer -- sh -c \\\s+'([^']+)'/.exec(help) ?? [];
  expect(script).not.toBe("");
  writeFileSync(join(dir, "deploy.sh"), "#!/bin/sh\necho deployed\n", { mode: 0o755 });
  await worker("deployer", ...sh(script.replaceAll(/\s*\\\n\s+/g, " ")));
  for (const [answer, reply] of [
    [["approve"], "deployed"],
    [["approve", "--text", "gently"], "deployed"],
    [["deny"], "not deployed"],
    [["answer", "yes, please"], "not deployed"],
  ] as const) {
    const id = (await run(["delegate", "deployer", "release 7"])).stdout.trim();
    await until(async () => (await api.get(id)).body.state === "input_required");
    const [verb, ...more] = answer;
    expect((await run([verb, id, ...more])).code).toBe(0);
    const ended = await until(async () => {
      const { body } = await api.get(id);
      return body.state === "working" || body.state === "submitted" ? undefined : body;
    });
    expect(ended, answer.join(" ")).toMatchObject({
      state: "completed",
      reply: { parts: [{ text: reply }] },
    });
  }
});

test("approval in the shell: the agent asks, a list shows it, an approver approves, the work completes", async () => {
  const setting = await setup();
  const { api, run, start, worker, url } = setting;
  const script =
    'read -r task; case "$ERRAND_DECISION" in approve) echo "$task: done, $ERRAND_ANSWER";; *) echo "Deploy?"; exit 79;; esac';
  const work = await worker("deployer", ...sh(script));
  const delegated = start(["delegate", "deployer", "release 7", "--wait"]);
  expect(await delegated.ended()).toBe(79);
  const id = /dlg_\w+/.exec(delegated.stderr())?.[0] ?? "";
  expect(delegated.stdout()).toBe("");
  const { expires_at } = (await api.get(id)).body.interrupt;
  expect(delegated.stderr()).toBe(
    `errand: ${id} asks: Deploy? The question is open until ${localTime(expires_at)}. Answer with 'errand answer ${id} "…"', 'errand approve ${id}' or 'errand deny ${id}'; ` +
      `then 'errand get ${id} --wait' waits again.\n`,
  );
  expect(work.stderr()).toMatch(new RegExp(`${id}.* asks a question`));

  const { token } = await as(url, "approver:ann");
  const listed = await run(["list", "--state", "input_required"], { token });
  expect(listed.stdout).toMatch(new RegExp(`^${id.slice(6, 14)} +asks +deployer .* release 7$`, "m"));
  expect((await run(["get", id], { token })).stdout).toMatch(/^asks +Deploy\?$/m);
  const waiting = await run(["results"]);
  // The question once, and how to answer it once.
  expect(waiting.stdout.match(/Deploy\?/g)).toHaveLength(1);
  expect(waiting.stderr).toContain(`to answer, run 'errand answer ${id} "…"', 'errand approve ${id}'`);
  expect(waiting.stderr).not.toContain("Deploy?");
  expect(await run(["approve", id, "--text", "but gently"], { token })).toEqual({
    code: 0,
    stdout: `approved ${id}\n`,
    stderr: "",
  });
  expect(await run(["get", id, "--wait", "--reply"])).toEqual({
    code: 0,
    stdout: "release 7: done, but gently\n",
    stderr: "",
  });
  const [answer] = await answered(setting, id);
  expect(answer.metadata).toMatchObject({ decision: "approve" });
  checkHistory(await eventsOf(api, id), "finished");
  expect((await run(["message", id, "thanks"])).code).toBe(64);
  const history = await run(["get", id, "--history"]);
  const at = "at 20\\S+ \\S+ \\S+: ";
  expect(history.stdout).toMatch(new RegExp(`^question +by deployer ${at}"Deploy\\?"$`, "m"));
  expect(history.stdout).toMatch(new RegExp(`^answer +by approver:ann ${at}approve, "but gently"$`, "m"));
  const watched = await run(["watch", id, "--after", "0"]);
  expect(watched.stdout).toContain('asks "Deploy?"');
  expect(watched.stdout).toContain("answered by approver:ann");
});

describe("a command that asks", () => {
  test.each([
    [["deny"], "deny none"],
    [["deny", "--text", "not on a Friday"], "deny not on a Friday"],
    [["answer", "--text", "main"], "none main"],
    [["answer", "--data", "7"], "none none"],
  ])(
    "gets by environment what the answer has, and no more: %o",
    async ([command = "", ...more], expected) => {
      const { api, run, worker, dir } = await setup();
      const script = `grep -q request_id "$ERRAND_ANSWERS_FILE" || { echo 'Which branch?'; exit 79; }
      cp "$ERRAND_ANSWERS_FILE" answers; echo "\${ERRAND_DECISION-none} \${ERRAND_ANSWER-none}"`;
      await worker("pusher", ...sh(script));
      const { id } = (await api.delegate("pusher")).body;
      await api.get(id, "?wait_seconds=30");
      expect((await run([command, id, ...more])).code).toBe(0);
      const { reply } = (await api.get(id, "?wait_seconds=30")).body;
      expect(reply.parts).toEqual([{ text: expected }]);
      const [said] = Object.values<Record<string, unknown>>(
        JSON.parse(readFileSync(join(dir, "answers"), "utf8")),
      );
      expect(said).toMatchObject({ by: "operator", at: expect.stringMatching(/Z$/) });
      expect(said?.text).toBe(more[0] === "--text" ? more[1] : undefined);
    },
  );

  test("with a JSON line gets all answers so far in a file, the newest in its environment, and its task again", async () => {
    const { api, run, worker, dir } = await setup();
    const script = `
      cat >> tasks; cp "$ERRAND_ANSWERS_FILE" answers; echo "$ERRAND_ATTEMPT" >> attempts
      if ! grep -q '"branch"' answers; then
        echo '{"interrupt": {"request_id": "branch", "text": "Which?", "options": ["main", {"tag": 7}]}}'; exit 79
      elif ! grep -q '"key"' answers; then
        echo '{"interrupt": {"kind": "auth", "expires_in_seconds": 600, "requests": [{"request_id": "key", "text": "The key?"},
          {"request_id": "sure", "schema": {"type": "boolean"}}]}}' | tr -d '\\n'; exit 79
      fi
      echo "last: $ERRAND_ANSWER"`;
    await worker("smith", ...sh(script));
    const { id } = (await api.delegate("smith", { task: "forge\n" })).body;
    const asks = (state: string) =>
      until(async () => (await api.get(id)).body.state === state, { what: state });
    await asks("input_required");
    const shown = await run(["get", id]);
    expect(shown.stdout).toMatch(/^asks +Which\? \(main \| \{"tag":7\}\)$/m);
    expect((await run(["answer", id, "--data", '{"tag": 7}'])).code).toBe(0);
    await asks("auth_required");
    const two = await run(["get", id]);
    expect(two.stdout).toMatch(/^asks +key: The key\?$/m);
    expect(two.stdout).toContain(`errand answer ${id} --answers <path>`);
    const input = JSON.stringify({ key: "k-1", sure: { data: true } });
    const done = await run(["answer", id, "--answers", "-", "--json"], { input });
    expect(lines(delegationSchema, done.stdout)).toMatchObject([{ id, state: "submitted" }]);
    const { body } = await api.get(id, "?wait_seconds=30");
    expect(body).toMatchObject({ state: "completed", attempt: 1 });
    const file = JSON.parse(readFileSync(join(dir, "answers"), "utf8"));
    expect(Object.keys(file)).toEqual(["branch", "key", "sure"]);
    expect(file).toMatchObject({ branch: { data: { tag: 7 } }, key: { text: "k-1" }, sure: { data: true } });
    expect(file.branch.message.role).toBe("ROLE_USER");
    expect(readFileSync(join(dir, "tasks"), "utf8")).toBe("forge\n".repeat(3));
    expect(readFileSync(join(dir, "attempts"), "utf8")).toBe("1\n1\n1\n");
  });

  test("without output still asks; with an invalid question it fails and says why", async () => {
    const { api, worker } = await setup();
    await worker("mute", ...sh("exit 79"));
    const mute = (await api.delegate("mute")).body.id;
    const { state, interrupt } = (await api.get(mute, "?wait_seconds=30")).body;
    expect(state).toBe("input_required");
    expect(interrupt.requests[0].message.parts[0].text).not.toBe("");
    await worker("odd", ...sh(`echo '{"interrupt": {"kind": "input", "txt": "?"}}'; exit 79`));
    const odd = (await api.delegate("odd")).body.id;
    const { error } = (await api.get(odd, "?wait_seconds=30")).body;
    expect(error).toMatchObject({ code: "command_failed", message: expect.stringContaining("txt") });
  });

  test("reads follow-up messages from a file while it runs, earlier ones included", async () => {
    const { api, run, worker } = await setup();
    await api.agent("scribe");
    const { id } = (await api.delegate("scribe", { task: "write" })).body;
    expect((await run(["message", id, "in", "French"])).stdout).toBe(`sent to ${id} (submitted)\n`);
    const script =
      'echo up >&2; until [ "$(grep -c text "$ERRAND_MESSAGES_FILE")" = 2 ]; do sleep 0.1; done; cat "$ERRAND_MESSAGES_FILE"; echo "$ERRAND_MESSAGES_FILE"';
    await worker("scribe", ...sh(script));
    await until(async () => (await api.get(id)).body.progress?.message === "up");
    const said = await run(["message", id, "-", "--json"], { input: "and short" });
    expect(lines(delegationSchema, said.stdout)).toMatchObject([{ id, state: "working" }]);
    const [first, second, path] = (await api.get(id, "?wait_seconds=30")).body.reply.parts[0].text.split(
      "\n",
    );
    expect([first, second].map((line) => JSON.parse(line).parts)).toEqual([
      [{ text: "in French" }],
      [{ text: "and short" }],
    ]);
    expect(existsSync(path)).toBe(false);
    const late = await run(["message", id, "too late"]);
    expect(late.code).toBe(64);
    expect(late.stderr).toContain("See the result with 'errand get");
  });
});

describe("an answer", () => {
  test("is words, a decision with a text, or data, and is in the history", async () => {
    const setting = await setup();
    const { run } = setting;
    const give = async (...args: string[]) => {
      const id = await asking(setting, { text: "?" });
      expect(await run(["answer", id, ...args])).toEqual({
        code: 0,
        stdout: `answered ${id}\n`,
        stderr: "",
      });
      return (await answered(setting, id))[0];
    };
    expect((await give("use", "main")).parts).toEqual([{ text: "use main" }]);
    expect((await give("--text", "main")).parts).toEqual([{ text: "main" }]);
    const denied = await give("--decision", "deny", "--text", "not today");
    expect(denied).toMatchObject({ parts: [{ text: "not today" }], metadata: { decision: "deny" } });
    expect((await give("--data", "[1]")).parts).toMatchObject([{ data: [1] }]);
  });

  test("deny says no, and its reason", async () => {
    const setting = await setup();
    const id = await asking(setting, { text: "?" });
    const { code, stdout } = await setting.run(["deny", id, "--text", "no", "--data", "1", "--json"]);
    expect([code, lines(delegationSchema, stdout)]).toMatchObject([0, [{ id, state: "submitted" }]]);
    expect(await answered(setting, id)).toMatchObject([
      { parts: [{ text: "no" }, { data: 1 }], metadata: { decision: "deny" } },
    ]);
  });

  test("without a question, to another question, by another principal, or incomplete is refused with what to do", async () => {
    const setting = await setup();
    const { run, url, api } = setting;
    const id = await asking(setting, { requests: [{ request_id: "a", text: "?" }, { request_id: "b" }] });
    const half = await run(["approve", id]);
    expect(half.code).toBe(64);
    expect(half.stderr).toBe(
      `errand: ${id} asks 2 things at once: a, b. Answer with 'errand answer ${id}' on a terminal or 'errand answer ${id} --answers <path>'.\n`,
    );
    const other = await run(["answer", id, "x", "--interrupt", "int_other", "--json"]);
    expect([other.code, problemIn(other.stderr).code]).toEqual([64, "interrupt_not_open"]);
    const { token } = await as(url, "caller:eve");
    const foreign = await run(["answer", id, "--answers", "-"], { token, input: '{"a": "1", "b": "2"}' });
    expect(foreign.code).toBe(66);
    expect(foreign.stderr).toContain("Check the id with 'errand list'");
    const bad = await run(["answer", id, "--answers", "-"], { input: '{"a": {"decision": "maybe"}}' });
    expect([bad.code, bad.stderr]).toEqual([
      64,
      expect.stringContaining("stdin does not contain valid answers: a"),
    ]);
    const silent = await run(["answer", id]);
    expect([silent.code, silent.stderr]).toEqual([
      64,
      "errand: no answer given, and no terminal to prompt on. Pass the answer as an argument, or with --text, --decision, --data or " +
        "--answers. See 'errand answer --help'.\n",
    ]);
    expect((await api.get(id)).body.state).toBe("input_required");
    await api.cancel(id);
    const over = await run(["approve", id]);
    expect([over.code, over.stderr]).toEqual([
      64,
      expect.stringContaining(`${id} has no open question: it is canceled`),
    ]);
  });
});

test("an action is shown whole; an answer that does not fit says how to answer; --data edits its arguments", async () => {
  const setting = await setup();
  const { run } = setting;
  const host = "h".repeat(300);
  const id = await asking(setting, {
    text: "Deploy?",
    action: { name: "deploy", arguments: { host } },
    edit: true,
  });
  const shown = (await run(["get", id])).stdout;
  expect(shown).toContain(`Deploy? [deploy {"host":"${host}"}, editable]`);
  const ways = `Answer with 'errand approve ${id}', 'errand deny ${id}' or 'errand approve ${id} --data <arguments>'.`;
  const refused = await run(["answer", id, "yes"]);
  expect([refused.code, refused.stderr]).toEqual([
    64,
    expect.stringContaining(`decision: missing: must be approve or deny. ${ways}`),
  ]);
  const denied = await run(["deny", id, "--data", "{}"]);
  expect([denied.code, denied.stderr]).toEqual([64, expect.stringContaining("so it requires approve")]);
  expect((await run(["approve", id, "--data", '{"host": "db2"}'])).code).toBe(0);
  expect(await answered(setting, id)).toMatchObject([
    { parts: [{ data: { host: "db2" } }], metadata: { decision: "approve" } },
  ]);
});

test("a command asks for approval by its last line, and gets the edited arguments", async () => {
  const setting = await setup();
  const { api, run, worker } = setting;
  const ask = JSON.stringify({
    interrupt: {
      request_id: "go",
      text: "Deploy?",
      action: { name: "deploy", arguments: { host: "db1" } },
      edit: true,
    },
  });
  const script = `if [ -z "$ERRAND_DECISION" ]; then echo '${ask}'; exit 79; fi; echo "$ERRAND_DECISION"; cat "$ERRAND_ANSWERS_FILE"`;
  await worker("deployer", ...sh(script));
  const { id } = (await api.delegate("deployer", { task: "go" })).body;
  await until(async () => (await api.get(id)).body.state === "input_required", { what: "the question" });
  expect((await run(["approve", id, "--data", '{"host": "db2"}'])).code).toBe(0);
  const { body } = await api.get(`${id}?wait_seconds=30`);
  expect(body.state).toBe("completed");
  expect(JSON.stringify(body.reply.parts)).toMatch(/^\[\{"text":"approve\\n.*host.*db2/);
});

describe("at a terminal", () => {
  test("the question is shown, and each line is an answer", async () => {
    const setting = await setup();
    const id = await asking(setting, {
      requests: [
        { request_id: "branch", text: "Which branch?\n\u001b[31mchoose", options: ["main", { tag: 7 }] },
        { request_id: "ok", text: "Sure?" },
        { request_id: "size", text: "How large?", schema: { type: "number" } },
        { request_id: "why", text: "Why?" },
      ],
    });
    const env = { url: setting.url, token: "operator-token-for-tests" };
    const tty = { stdin: true, stderr: true };
    const ended = await runHere(["answer", id], {
      env,
      tty,
      childEnv: { NO_COLOR: "1" },
      stdin: "2\n approve \n\n17\nbecause\n",
    });
    expect(ended).toMatchObject({ code: 0, stdout: `answered ${id}\n` });
    expect(ended.stderr).toMatch(/^asker-\S+ asks \(open until 20/);
    expect(ended.stderr).toContain(
      '\n1/4 branch\nWhich branch?\nchoose\n  1) main\n  2) {"tag":7}\nanswer (1 to 2): ',
    );
    expect(ended.stderr).toContain('JSON schema: {"type":"number"}');
    expect(ended.stderr).toContain("answer (JSON): ");
    const said = await answered(setting, id);
    const byRequest = Object.fromEntries(
      said.map((one: { metadata: { request_id: string } }) => [one.metadata.request_id, one]),
    );
    expect(byRequest.branch.parts).toMatchObject([{ data: { tag: 7 } }]);
    expect(byRequest.ok.metadata.decision).toBe("approve");
    expect(byRequest.size.parts).toMatchObject([{ data: 17 }]);
    expect(byRequest.why.parts).toEqual([{ text: "because" }]);
  });

  test("a refused answer is asked for again, with the reason; the others stay", async () => {
    const setting = await setup();
    const id = await asking(setting, {
      requests: [
        { request_id: "branch", text: "Which branch?", options: ["main", "next"] },
        {
          request_id: "go",
          text: "Deploy?",
          action: { name: "deploy", arguments: { host: "db1", dry: false } },
          edit: true,
          schema: { properties: { host: { type: "string" } } },
        },
        { request_id: "size", text: "How large?", schema: { type: "number" } },
      ],
    });
    const ended = await runHere(["answer", id], {
      env: { url: setting.url, token: OPERATOR },
      tty: { stdin: true, stderr: true },
      childEnv: { NO_COLOR: "1" },
      // A wrong one for each, then the right ones.
      stdin: 'Main\n1\n{"host": 7}\nlarge\naprove\n{"host": "db2"}\n3\n',
    });
    expect(ended).toMatchObject({ code: 0, stdout: `answered ${id}\n` });
    expect(ended.stderr).toContain('Deploy?\n  action: deploy\n    host: "db1"\n    dry: false\n');
    expect(ended.stderr).toContain(
      "answer ('approve', 'deny', or other arguments, as JSON, to approve those): ",
    );
    expect(ended.stderr.match(/^not accepted: .*$/gm)).toEqual([
      "not accepted: answers.go.data.host: must be a string",
      "not accepted: answers.size.data: must be a number",
    ]);
    // A text that no question accepts is not sent.
    expect(ended.stderr).toContain("'Main' is not one of the options. Type 1 to 2.\n");
    expect(ended.stderr).toContain(
      "'aprove' is not a decision. Type 'approve', 'deny', or other arguments, as JSON, to approve those.\n",
    );
    expect(await answered(setting, id)).toMatchObject([
      { parts: [{ text: "main" }] },
      { parts: [{ data: { host: "db2" } }], metadata: { decision: "approve" } },
      { parts: [{ data: 3 }] },
    ]);
  });

  test("the end of the input after a refused answer reports the refusal", async () => {
    const setting = await setup();
    const id = await asking(setting, { text: "How large?", schema: { type: "number" } });
    const ended = await runHere(["answer", id], {
      env: { url: setting.url, token: OPERATOR },
      tty: { stdin: true, stderr: true },
      childEnv: { NO_COLOR: "1" },
      stdin: "large\n",
    });
    expect(ended.code).toBe(64);
    expect(ended.stderr.replaceAll(/\s+/g, " ")).toContain(
      `The answer does not fit the question: data: must be a number. Answer with 'errand answer ${id} --data <json>'.`,
    );
    expect((await setting.api.get(id)).body.state).toBe("input_required");
  });

  test("yes or no is not a decision, and is sent as text only when it is repeated", async () => {
    const setting = await setup();
    const env = { url: setting.url, token: "operator-token-for-tests" };
    const type = async (stdin: string) => {
      const id = await asking(setting, { text: "Deploy?" });
      const tty = { stdin: true, stderr: true };
      const ended = await runHere(["answer", id], { env, tty, childEnv: { NO_COLOR: "1" }, stdin });
      expect(ended.code).toBe(0);
      expect(ended.stderr).toContain(
        "is not a decision. Type approve or deny; or 'yes' again, to send it as text.\n",
      );
      const [answer] = await answered(setting, id);
      return [answer.metadata.decision, answer.parts];
    };
    expect(await type("yes\napprove\n")).toEqual(["approve", []]);
    expect(await type("yes\ndeny\n")).toEqual(["deny", []]);
    expect(await type("yes\nyes\n")).toEqual([undefined, [{ text: "yes" }]]);
  });

  test("yes or no decides where nothing else can be meant, and other words are refused", async () => {
    const setting = await setup();
    const env = { url: setting.url, token: "operator-token-for-tests" };
    const type = async (question: Record<string, unknown>, stdin: string) => {
      const id = await asking(setting, question);
      const tty = { stdin: true, stderr: true };
      const ended = await runHere(["answer", id], { env, tty, childEnv: { NO_COLOR: "1" }, stdin });
      expect(ended.code).toBe(0);
      const [answer] = await answered(setting, id);
      return [answer.metadata.decision ?? answer.parts[0].text, ended.stderr];
    };
    const action = { text: "Deploy?", action: { name: "deploy", arguments: {} } };
    const plain = expect.not.stringContaining("is not a decision");
    expect(await type(action, "y\n")).toEqual(["approve", plain]);
    expect(await type({ text: "Deploy?", options: ["approve", "deny"] }, "No\n")).toEqual(["deny", plain]);
    expect(await type({ text: "Deploy?", options: ["n", "approve"] }, "n\n")).toEqual(["n", plain]);
    expect(await type(action, "ok\nyes\n")).toEqual([
      "approve",
      expect.stringContaining("'ok' is not a decision. Type approve or deny.\n"),
    ]);
  });

  test("a misspelled decision is asked for again; a plain question takes it as text when it is repeated", async () => {
    const setting = await setup();
    const type = async (question: Record<string, unknown>, stdin: string) => {
      const id = await asking(setting, question);
      const ended = await runHere(["answer", id], {
        env: { url: setting.url, token: OPERATOR },
        tty: { stdin: true, stderr: true },
        childEnv: { NO_COLOR: "1" },
        stdin,
      });
      expect(ended).toMatchObject({ code: 0, stdout: `answered ${id}\n` });
      const [answer] = await answered(setting, id);
      return [answer.metadata.decision ?? answer.parts[0].text, ended.stderr];
    };
    const options = ["approve", "deny"];
    const hint = "'aprove' is not a decision. Type approve or deny";
    expect(await type({ text: "Go?", options }, "aprove\naprove\napprove\n")).toEqual([
      "approve",
      expect.stringMatching(new RegExp(`(${hint}\\.[^]*){2}`)),
    ]);
    const asText = expect.stringContaining(`${hint}; or 'aprove' again, to send it as text.`);
    expect(await type({ text: "Go?" }, "aprove\ndney\ndeny\n")).toEqual(["deny", asText]);
    expect(await type({ text: "Go?" }, "aprove\naprove\n")).toEqual(["aprove", asText]);
    const consent = await type({ kind: "auth", text: "Use yours?", options }, "s3cret\napprove\n");
    expect(consent).toEqual([
      "approve",
      expect.stringContaining("That is not a decision. Type approve or deny."),
    ]);
    expect(consent[1]).not.toContain("s3cret");
  });

  test("the end of the input sends nothing", async () => {
    const setting = await setup();
    const id = await asking(setting, { text: "?" });
    const env = { url: setting.url, token: "operator-token-for-tests" };
    const ended = await runHere(["answer", id], {
      env,
      tty: { stdin: true, stderr: true },
      childEnv: { NO_COLOR: "1" },
      stdin: "",
    });
    expect(ended.code).toBe(64);
    expect(ended.stderr).toContain("errand: no answer was given. Nothing was sent.");
    expect((await setting.api.get(id)).body.state).toBe("input_required");
  });

  test("works on a real terminal, too", async () => {
    const setting = await setup();
    const id = await asking(setting, { text: "Which branch?" });
    const { child, closed, screen } = answering(setting, id);
    await until(() => screen().includes("or text): "), { what: "the prompt" });
    child.stdin.write("main\n");
    await closed;
    expect(child.exitCode).toBe(0);
    expect(screen()).toContain("Which branch?");
    expect(screen()).toContain(`answered ${id}`);
    expect(await answered(setting, id)).toMatchObject([{ parts: [{ text: "main" }] }]);
  });

  test("a credential is not echoed, and Ctrl-C sends nothing", async () => {
    const setting = await setup();
    const id = await asking(setting, { kind: "auth", text: "Your token?" });
    const stopped = answering(setting, id);
    await until(() => stopped.screen().includes("(hidden text): "), {
      what: "the prompt",
    });
    stopped.child.stdin.write("half\u0003");
    await stopped.closed;
    expect(stopped.child.exitCode).toBe(130);
    expect((await setting.api.get(id)).body.state).toBe("auth_required");

    const { child, closed, screen } = answering(setting, id);
    await until(() => screen().includes("(hidden text): "), { what: "the prompt" });
    child.stdin.write("s3cret-typo\u007f\u007f\u007f\u007f\u007f\r");
    await closed;
    expect([child.exitCode, screen()]).toEqual([0, expect.stringContaining(`answered ${id}`)]);
    for (const shown of [screen(), stopped.screen()]) expect(shown).not.toMatch(/s3cret|half/);
    const [lease] = (await setting.api.lease((await setting.api.get(id)).body.target)).body.leases;
    expect(lease.delegation.history.at(-1).parts).toEqual([{ text: "s3cret" }]);
  });

  test("of several pasted lines of a credential none is sent", async () => {
    const setting = await setup();
    const id = await asking(setting, { kind: "auth", text: "Your key?" });
    const { child, closed, screen } = answering(setting, id);
    await until(() => screen().includes("(hidden text): "), { what: "the prompt" });
    // In two parts, as a slow link brings a paste: the first ends with a whole line.
    child.stdin.write("\u001b[200~first\r");
    await until(() => screen().endsWith("(hidden text): \r\n"), { what: "the end of the line" });
    child.stdin.write("second\u001b[201~");
    await closed;
    expect(child.exitCode).toBe(64);
    expect(screen().replaceAll(/\s+/g, " ")).toContain(
      "Nothing was sent. Pass a secret of several lines on stdin",
    );
    expect(screen()).not.toMatch(/first|second/);
    expect((await setting.api.get(id)).body.state).toBe("auth_required");
  });

  test("a credential is read from stdin, too", async () => {
    const setting = await setup();
    const id = await asking(setting, { kind: "auth", text: "Your token?" });
    const done = await setting.run(["answer", id, "-"], { input: "s3cret\n" });
    expect([done.code, done.stdout, done.stderr]).toEqual([0, `answered ${id}\n`, ""]);
  });
});

/** `errand answer ID` on a terminal. */
const answering = ({ url }: Setting, id: string) =>
  atTerminal(["answer", id], { ERRAND_URL: url, ERRAND_TOKEN: OPERATOR });

test("usage errors are reported before anything is sent", async () => {
  for (const [argv, said] of [
    [["answer", "dlg_1", "x", "--text", "y"], "given twice"],
    [["answer", "dlg_1", "--data", "{"], "It must be JSON"],
    [["answer", "dlg_1", "x", "--answers", "f"], "cannot be combined with another answer"],
    [["answer", "dlg_1", "--decision", "maybe"], "approve, deny"],
    [["answer", "dlg_1", "--answers", "/nonexistent"], "cannot be read"],
    [["approve", "dlg_1", "--text", " "], "the text is empty"],
    [["message", "dlg_1", " "], "the message is empty"],
    [["message", "dlg_1"], "no message given"],
  ] as const) {
    const { code, stderr } = await runHere([...argv]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(said)]);
  }
});

/** `errand delegate`, `get`, `cancel`, `watch` and `token` against a stub broker: output and exit codes. */
import { describe, expect, test } from "vitest";
import { localTime } from "../../../src/cli/show/time.ts";
import { CATEGORIES, categorySchema } from "../../../src/schema/errors.ts";
import {
  AGENT,
  type Answer,
  completedWith,
  delegationLike,
  eventLike,
  failedWith,
  frame,
  ID,
  type Seen,
  stubBroker,
} from "../../client/stub-broker.ts";
import { until } from "../../support/until.ts";
import { run, start } from "../fake-host.ts";

const OFFLINE = { state: "offline", last_seen_at: null, pollers: 0 };
const ONLINE = { state: "online", last_seen_at: "2026-01-01T00:00:00.000Z", pollers: 1 };

const snapshot = {
  id: "1-0",
  type: "DELEGATION_SNAPSHOT",
  delegation_id: ID,
  delegation: delegationLike(),
};

/** Accepts delegations; the test decides how they end. */
async function brokerEnding(ended: (answer: Answer, request: Seen) => void, presence: object = ONLINE) {
  const stub = await stubBroker((request, answer) => {
    if (request.method === "POST") answer.json(delegationLike({ presence }), 202);
    else if (request.path.endsWith("/scout")) answer.json(AGENT);
    else if (request.path.endsWith("/events")) answer.events([frame(snapshot)]);
    else ended(answer, request);
  });
  return { stub, env: { url: stub.url, token: "t" } };
}

describe("delegate", () => {
  test("prints only the id", async () => {
    const { stub, env } = await brokerEnding(() => undefined);
    const done = await run(
      ["delegate", "scout", "how", "many", "--priority", "9", "--context", "c", "--idempotency-key", "k"],
      { env },
    );
    expect([done.code, done.stdout]).toEqual([0, `${ID}\n`]);
    expect(stub.seen[0]?.body).toEqual({ target: "scout", task: "how many", priority: 9, context_id: "c" });
    expect(stub.seen[0]?.headers["idempotency-key"]).toBe("k");
  });

  test("takes a budget in words, and says what is wrong with one", async () => {
    const { stub, env } = await brokerEnding(() => undefined);
    const given = ["delegate", "scout", "x", "--budget"];
    const all = "cost=2.50usd, tokens=200000,time=1h30m,attempts=5";
    expect((await run([...given, all, "--on-budget", "ask"], { env })).code).toBe(0);
    expect(stub.seen[0]?.body).toMatchObject({
      budget: { cost: 2.5, currency: "USD", tokens: 200_000, seconds: 5_400, attempts: 5 },
      on_budget: "ask",
    });
    for (const [text, says] of [
      ["cost=2", "A cost is a number and a currency, for example cost=2.50USD."],
      ["tokens=-1", "The budget does not fit: tokens: must be at least 1"],
      ["attempts=many", "The budget does not fit: attempts:"],
      ["time=soon", "It must be a duration"],
      ["money=2", "'money' is no amount of a budget: they are tokens, cost, time and attempts."],
    ]) {
      const { code, stderr } = await run([...given, text ?? ""], { env });
      expect([code, stderr]).toEqual([64, expect.stringContaining(says ?? "")]);
    }
    expect(stub.seen).toHaveLength(1);
  });

  test("says on stderr that no worker is polling, also when it waits, but not with --json", async () => {
    const { env } = await brokerEnding((answer) => answer.json(completedWith("done")), OFFLINE);
    const { stdout, stderr } = await run(["delegate", "scout", "x"], { env });
    expect(stdout).toBe(`${ID}\n`);
    expect(stderr).toBe("errand: no worker is polling scout; the delegation is queued.\n");
    expect((await run(["delegate", "scout", "x", "--wait"], { env })).stderr).toBe(stderr);
    for (const more of [["--json"], ["--json", "--wait"]])
      expect((await run(["delegate", "scout", "x", ...more], { env })).stderr).toBe("");
  });

  test("says that the agent is paused", async () => {
    const stub = await stubBroker((request, answer) => {
      if (request.method === "POST") answer.json(delegationLike({ presence: OFFLINE }), 202);
      else answer.json({ ...AGENT, paused: true });
    });
    const { stdout, stderr } = await run(["delegate", "scout", "x"], { env: { url: stub.url, token: "t" } });
    expect(stdout).toBe(`${ID}\n`);
    expect(stderr).toBe(
      "errand: scout is paused; the delegation is queued until 'errand agent resume scout'.\n",
    );
  });

  test("suggests the agent that a misspelled name is most similar to", async () => {
    const stub = await stubBroker((request, answer) => {
      if (request.method === "POST") answer.problem(404, "agent_unknown", "CONFIG");
      else answer.json({ agents: [{ ...AGENT, name: "scott" }, AGENT], next_cursor: null });
    });
    const env = { url: stub.url, token: "t" };
    const { code, stderr } = await run(["delegate", "scuot", "x"], { env });
    expect([code, stderr]).toEqual([66, expect.stringContaining(" Did you mean scout? ")]);
    expect((await run(["delegate", "builder", "x"], { env })).stderr).not.toContain("Did you mean");
  });

  test.each([
    [["delegate", "scout", "-"], {}],
    [["delegate", "scout"], { tty: { stdin: false } }],
  ])("%j takes the task from stdin as it is", async (argv, setting) => {
    const { stub, env } = await brokerEnding(() => undefined);
    const { code } = await run(argv, { env, stdin: "line 1\nläne 2\n", ...setting });
    expect(code).toBe(0);
    expect(stub.seen[0]?.body.task).toBe("line 1\nläne 2\n");
  });

  test("a task may look like an option after --", async () => {
    const { stub, env } = await brokerEnding(() => undefined);
    const { code } = await run(["delegate", "scout", "--", "--wait", "-x", "--json"], { env });
    expect(code).toBe(0);
    expect(stub.seen[0]?.body.task).toBe("--wait -x --json");
  });

  test("--wait prints only the reply's text", async () => {
    const { env } = await brokerEnding((answer) => answer.json(completedWith("two\nlines")));
    expect(await run(["delegate", "scout", "x", "--wait"], { env })).toEqual({
      code: 0,
      stdout: "two\nlines\n",
      stderr: "",
    });
  });

  test("of a reply with bytes, a terminal shows the text, and the command that saves it all", async () => {
    const picture = Buffer.from("\u0000\u0001PNG");
    const raw = { raw: picture.toString("base64"), mediaType: "image/png" };
    for (const [parts, shown, said, whole] of [
      [[raw], "", "the reply is not text", picture.toString()],
      [[raw, raw], "", "the reply is not text", `${picture}${picture}`],
      [[{ text: "a map" }, raw], "a map\n", "a part of the reply is bytes", `a map${picture}\n`],
    ] as const) {
      const reply = { messageId: "r1", role: "ROLE_AGENT", parts };
      const { env } = await brokerEnding((answer) => answer.json({ ...completedWith(""), reply }));
      const terminal = { env, tty: { stdout: true }, childEnv: { NO_COLOR: "1" } };
      expect(await run(["get", ID, "--reply"], terminal)).toEqual({
        code: 0,
        stdout: shown,
        stderr: `errand: ${said}; 'errand get ${ID} --reply > <file>' saves it.\n`,
      });
      expect(await run(["get", ID, "--reply"], { env })).toEqual({ code: 0, stdout: whole, stderr: "" });
    }
  });

  test("--wait on a terminal prints a reply that controls nothing; elsewhere it is as it was", async () => {
    const said = "\u001b]52;c;aGk=\u0007one\ttwo\r\n\u202ethr\u200fee\u009b31m\n\u001b[2Jfour";
    const { env } = await brokerEnding((answer) => answer.json(completedWith(said)));
    const shown = "one\ttwo\nthree31m\nfour\n";
    const terminal = { env, tty: { stdout: true }, childEnv: { NO_COLOR: "1" } };
    expect((await run(["delegate", "scout", "x", "--wait"], terminal)).stdout).toBe(shown);
    expect((await run(["get", ID, "--reply"], terminal)).stdout).toBe(shown);
    expect((await run(["get", ID, "--reply"], { env })).stdout).toBe(`${said}\n`);
    const json = await run(["get", ID, "--json"], { env });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
    expect(json.stdout).not.toMatch(/[\u0000-\u0009\u007f-\u009f\u200f\u202e]/);
    expect(JSON.parse(json.stdout).reply.parts).toEqual([{ text: said }]);
  });

  test("a task of more bytes than a delegation may have is not read to its end", async () => {
    const { stub, env } = await brokerEnding(() => undefined);
    const long = await run(["delegate", "scout"], {
      env,
      stdin: Buffer.alloc(3_145_729, "x"),
      tty: { stdin: false },
    });
    expect([long.code, stub.seen]).toEqual([64, []]);
    expect(long.stderr).toContain("stdin has more than 3 MiB.");
    const endless = await run(["delegate", "scout", "--file", "/dev/zero"], { env });
    expect([endless.code, endless.stderr]).toEqual([
      64,
      expect.stringContaining("/dev/zero has more than 3 MiB."),
    ]);
  });

  test("--wait --json prints the delegation on one line", async () => {
    const { env } = await brokerEnding((answer) => answer.json(completedWith("two\nlines")));
    const { stdout } = await run(["delegate", "scout", "x", "--wait", "--json"], { env });
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({ id: ID, state: "completed" });
  });

  test.each(categorySchema.options)("--wait exits by the category of the end: %s", async (category) => {
    const { env } = await brokerEnding((answer) => answer.json(failedWith(category, "command_failed")));
    const { code, stdout, stderr } = await run(["delegate", "scout", "x", "--wait"], { env });
    expect(code).toBe(CATEGORIES[category].exit);
    expect(stdout).toBe("");
    expect(stderr).toBe(`errand: ${ID} failed: it broke. Mend it.\n`);
  });

  test("--timeout: exits 124, and the delegation continues", async () => {
    const { env } = await brokerEnding((answer, request) => {
      const ms = Number(request.query.get("wait_seconds")) * 1000;
      setTimeout(() => answer.json(delegationLike({ state: "working" })), ms);
    });
    const { code, stdout, stderr } = await run(["delegate", "scout", "x", "--wait", "--timeout", "0.2"], {
      env,
    });
    expect(code).toBe(124);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^errand: dlg_\S+ is not finished after 200 ms \(working\)\. It continues/);
  });

  test("on a terminal the wait says what it waits for, and clears its line", async () => {
    let finish: () => void = () => undefined;
    const { env } = await brokerEnding((answer) => {
      finish = () => answer.json(completedWith("done"));
    });
    const started = start(["delegate", "scout", "x", "--wait"], { env, tty: { stderr: true } });
    await until(() => /waiting \d+ s: submitted: scout has no worker/.test(started.stderr()), {
      what: "the wait line",
    });
    finish();
    expect(await started.done).toBe(0);
    expect(started.stdout()).toBe("done\n");
    expect(started.stderr().endsWith("\r\u001b[2K")).toBe(true);
  });

  test("a question ends the wait and is shown", async () => {
    const { env } = await brokerEnding((answer) => {
      const message = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "which one?" }] };
      const interrupt = {
        id: "int_1",
        kind: "input",
        requests: [{ request_id: "r", message }],
        raised_at: "2026-01-01T00:00:00.000Z",
        expires_at: "2026-01-01T00:00:00.000Z",
      };
      answer.json(delegationLike({ state: "input_required", interrupt }));
    });
    const { code, stderr } = await run(["delegate", "scout", "x", "--wait"], { env });
    expect(code).toBe(79);
    expect(stderr).toContain("asks: which one?");
  });
});

describe("errors", () => {
  test("are one line with the recovery, and the issues below", async () => {
    const stub = await stubBroker((_request, answer) => {
      const issues = [{ path: ["target"], reason: "an agent name is \u001b[31mlower case" }];
      answer.problem(400, "invalid_request", "PROTOCOL", { details: { issues } });
    });
    const { code, stderr } = await run(["delegate", "scout", "x"], { env: { url: stub.url, token: "t" } });
    expect(code).toBe(64);
    expect(stderr).toBe("errand: about invalid_request. Do this.\n  target: an agent name is lower case\n");
  });

  test("with --json are problem JSON on stderr", async () => {
    const stub = await stubBroker((_request, answer) => answer.problem(401, "unauthenticated", "AUTH"));
    const { code, stdout, stderr } = await run(["get", ID, "--json"], { env: { url: stub.url, token: "t" } });
    expect([code, stdout]).toEqual([77, ""]);
    expect(JSON.parse(stderr)).toMatchObject({ code: "unauthenticated", status: 401, request_id: "req_1" });
  });
});

test("get exits 0 for a failed delegation, get --wait with the code of its error", async () => {
  const stub = await stubBroker((_request, answer) => answer.json(failedWith("UPSTREAM", "agent_error")));
  const env = { url: stub.url, token: "t" };
  const shown = await run(["get", ID], { env });
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/state +failed/);
  expect(shown.stdout).toMatch(/error +agent_error: it broke/);
  expect((await run(["get", ID, "--wait"], { env })).code).toBe(1);
});

test("cancel prints the new state", async () => {
  const stub = await stubBroker((_request, answer) => answer.json(delegationLike({ state: "canceled" })));
  const done = await run(["cancel", ID, "--reason", "why not"], { env: { url: stub.url, token: "t" } });
  expect(done).toMatchObject({ code: 0, stdout: `canceled ${ID}\n` });
  await run(["cancel", ID, "--cascade"], { env: { url: stub.url, token: "t" } });
  await run(["cancel", ID, "--no-cascade"], { env: { url: stub.url, token: "t" } });
  expect(stub.seen.map(({ body }) => body)).toEqual([
    { reason: "why not" },
    { cascade: true },
    { cascade: false },
  ]);
});

test("token create prints only the secret", async () => {
  const made = {
    id: "tok_1",
    principal: "agent:scout",
    created_at: "2026-01-01T00:00:00.000Z",
    expires_at: null,
  };
  const stub = await stubBroker((_request, answer) => answer.json({ ...made, token: "errand_x" }, 201));
  const env = { url: stub.url, token: "t" };
  expect(await run(["token", "create", "agent:scout", "--expires", "60"], { env })).toEqual({
    code: 0,
    stdout: "errand_x\n",
    stderr: "",
  });
  expect(stub.seen[0]?.body).toEqual({ principal: "agent:scout", expires_in_seconds: 60 });
});

test("agent put sends only the given settings", async () => {
  const changed = { ...AGENT, created: false, changed: ["description"], reset: [] };
  const stub = await stubBroker((_request, answer) => answer.json(changed, 200));
  const argv = [
    "agent",
    "put",
    "scout",
    "--description",
    "counts",
    "--lease",
    "30",
    "--accepts-from",
    "caller:*",
    "--interrupt-ttl",
    "3600",
  ];
  expect((await run(argv, { env: { url: stub.url, token: "t" } })).code).toBe(0);
  expect(stub.seen[0]).toMatchObject({
    method: "PATCH",
    body: {
      description: "counts",
      accepts_from: ["caller:*"],
      limits: { lease_seconds: 30, interrupt_ttl_seconds: 3600 },
    },
  });
});

describe("watch", () => {
  const frames = [
    frame(
      eventLike(1, "DELEGATION_SENT", { state: "submitted", status: "queued", task_preview: "a \u001b[2Jb" }),
    ),
    frame(eventLike(2, "DELEGATION_STATUS", { status: "leased", attempt: 1 })),
    frame(eventLike(3, "DELEGATION_STATUS", { status: "progress", progress: { message: "half" } })),
    frame(eventLike(4, "DELEGATION_COMPLETE", { duration_ms: 1234, response_preview: "3" })),
  ];

  test("prints one delegation's events to its end, one per line, without control characters", async () => {
    const stub = await stubBroker((_request, answer) => answer.events(frames));
    const { code, stdout, stderr } = await run(["watch", ID], { env: { url: stub.url, token: "t" } });
    expect([code, stderr]).toEqual([0, ""]);
    const at = localTime("2026-01-01T00:00:00.000Z").split(" ")[1];
    const short = ID.slice("dlg_0_".length, "dlg_0_".length + 8);
    expect(stdout.split("\n")).toEqual([
      `${at}  ${short}  scout  queued "a b"`,
      `${at}  ${short}  scout  leased`,
      `${at}  ${short}  scout  progress "half"`,
      `${at}  ${short}  scout  completed in 1.2 s "3"`,
      "",
    ]);
  });

  test("says at its start what it watches, on a terminal", async () => {
    const stub = await stubBroker((_request, answer) => answer.events(frames));
    const said = async (...more: string[]) => {
      const env = { url: stub.url, token: "t" };
      const { stderr } = await run(["watch", ID, ...more], { env, tty: { stderr: true } });
      return stderr.replaceAll(/\s+/g, " ");
    };
    expect(await said()).toMatch(
      new RegExp(`^errand: watching ${ID}, in local time \\(\\S+\\); until it ends`),
    );
    expect(await said("--after", "0")).toContain(`watching ${ID} from the beginning, in`);
    expect(await said("--json")).toBe("");
  });

  test("--json: one complete object per line", async () => {
    const stub = await stubBroker((_request, answer) => answer.events(frames));
    const { stdout } = await run(["watch", ID, "--json"], { env: { url: stub.url, token: "t" } });
    const lines = stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(["1-0", "2-0", "3-0", "4-0"]);
    expect(lines[0]).toContain("task_preview");
  });

  test("ends quietly when its reader closes the pipe, like head", async () => {
    let more: () => void = () => undefined;
    const stub = await stubBroker((_request, answer) => {
      answer.events(frames.slice(0, 1));
      more = () => answer.raw.write(frames[1]);
    });
    const started = start(["watch", ID], { env: { url: stub.url, token: "t" } });
    await until(() => started.stdout() !== "", { what: "the first line" });
    started.closeStdout();
    more();
    expect(await started.done).toBe(141);
    expect(started.stderr()).toBe("");
  });
});

describe("a broker that becomes unavailable", () => {
  test("is retried with the same key, and the user is told so", async () => {
    const stub = await stubBroker((request, answer) => {
      const before = stub.seen.filter(({ method }) => method === "POST").length;
      if (request.method === "POST" && before === 1) answer.cut();
      else if (request.method === "POST" && before === 2) answer.problem(503, "shutting_down", "TRANSPORT");
      else answer.json(delegationLike({ presence: OFFLINE }), 202);
    });
    const { code, stdout, stderr } = await run(["delegate", "scout", "x"], {
      env: { url: stub.url, token: "t" },
    });
    expect([code, stdout]).toEqual([0, `${ID}\n`]);
    expect(stderr).toMatch(/^errand: the connection to \S+ was lost \(\S+\); retrying for up to 60 s\.\n/);
    const posts = stub.seen.filter(({ method }) => method === "POST");
    const keys = posts.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[\w-]{36}$/);
  });

  test("watch says when it is gone and when it is back", async () => {
    const stub = await stubBroker((_request, answer) => {
      if (stub.seen.length === 1) answer.problem(503, "shutting_down", "TRANSPORT");
      else answer.events([frame(eventLike(2, "DELEGATION_COMPLETE"))]);
    });
    const { code, stderr } = await run(["watch", ID], { env: { url: stub.url, token: "t" } });
    expect([code, stderr]).toEqual([
      0,
      "errand: the broker is unavailable; watching resumes when it is back.\nerrand: the broker is back; watching.\n",
    ]);
  });

  test("and if the outcome is unknown, the error shows the idempotency key", async () => {
    const details = { outcome: "unknown" };
    const stub = await stubBroker((_request, answer) =>
      answer.problem(500, "internal", "INTERNAL", { details }),
    );
    const { code, stderr } = await run(["delegate", "scout", "x"], { env: { url: stub.url, token: "t" } });
    expect(code).toBe(70);
    expect(stderr).toContain(
      `Run it again with --idempotency-key ${stub.seen[0]?.headers["idempotency-key"]}`,
    );
  });
});

test("color is for terminals, and NO_COLOR disables it", async () => {
  const stub = await stubBroker((_request, answer) => answer.json({ agents: [AGENT], next_cursor: null }));
  const env = { url: stub.url, token: "t" };
  const tty = { stdout: true };
  const sgr = "\u001b[";
  const argv = ["agent", "list"];
  expect((await run(argv, { env, tty, childEnv: {} })).stdout).toContain(sgr);
  expect((await run(argv, { env, childEnv: {} })).stdout).not.toContain(sgr);
  expect((await run(argv, { env, tty, childEnv: { NO_COLOR: "1" } })).stdout).not.toContain(sgr);
  expect((await run(argv, { env, tty, childEnv: { TERM: "dumb" } })).stdout).not.toContain(sgr);
});

test("the wait line shows the progress", async () => {
  let finish: () => void = () => undefined;
  const leased = eventLike(2, "DELEGATION_STATUS", { status: "leased", attempt: 2 });
  const working = eventLike(3, "DELEGATION_STATUS", {
    status: "progress",
    progress: { current_step: "index", message: "half", done: 3, total: 6, eta_seconds: 7200 },
  });
  const stub = await stubBroker((request, answer) => {
    if (request.path.endsWith("/events")) answer.events([frame(snapshot), frame(leased), frame(working)]);
    else if (request.path.endsWith("/scout")) answer.json(AGENT);
    else finish = () => answer.json(completedWith("done"));
  });
  const env = { url: stub.url, token: "t" };
  const started = start(["get", ID, "--wait", "--reply"], { env, tty: { stderr: true } });
  const line = /waiting \d+ s: working, attempt 2 \[#####-----\] 3\/6 index: half, about 2 h left$/;
  await until(() => line.test(started.stderr()), {
    what: "the line",
  });
  finish();
  expect(await started.done).toBe(0);
  expect(started.stdout()).toBe("done\n");
});

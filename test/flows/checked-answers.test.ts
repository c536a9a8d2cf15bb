/** Which answers fit which question: refused ones change nothing, through every API. */
import { describe, expect, test } from "vitest";
import { Agent, Delegator } from "../../src/index.ts";
import { as, startBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { callModern, toolOutput } from "../support/mcp.ts";
import { until } from "../support/until.ts";

async function setup() {
  const broker = await startBroker();
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout", { limits: { max_waiting: 10_000 } });
  const alice = await as(broker.url, "caller:alice");
  /** A delegation whose worker asks this. */
  const asked = async (question: Record<string, unknown>) => {
    const { id } = (await alice.delegate("scout", { priority: 9 })).body;
    const { leases } = (await scout.lease("scout")).body;
    const raised = await scout.interrupt(leases[0].lease_id, question);
    if (raised.status !== 200) await scout.reply(leases[0].lease_id);
    const { lease_id } = leases[0];
    return { id: String(id), lease_id, raised, interrupt_id: String(raised.body.interrupt_id) };
  };
  return { ...broker, scout, alice, asked };
}
type Setting = Awaited<ReturnType<typeof setup>>;

const DEPLOY = { action: { name: "deploy", arguments: { host: "db1", dry: true } } };
const SCHEMA = {
  type: "object",
  properties: { host: { type: "string" }, size: { type: "integer" } },
  required: ["host"],
};
const BOTH = ["approve", "deny"];

/** A question, the answers that fit it, and those that do not, with the path of the issue and the reason's beginning. */
const RULES: readonly (readonly [
  name: string,
  question: Record<string, unknown>,
  fits: readonly Record<string, unknown>[],
  misfits: readonly (readonly [answer: Record<string, unknown>, path: string, reason: string])[],
])[] = [
  [
    "a plain question takes anything",
    { text: "?" },
    [
      { text: "a" },
      { decision: "deny" },
      { data: [1] },
      { message: { parts: [{ data: 1 }, { text: "a" }] } },
    ],
    [],
  ],
  [
    "options without choices allow anything",
    { options: [] },
    [{ text: "a" }, { decision: "approve", data: 1 }],
    [],
  ],
  [
    "options",
    { options: ["main", "next", 7, { tag: "v1", at: [1] }] },
    [
      { text: "main" },
      { message: { parts: [{ text: "next" }] } },
      { data: 7 },
      { data: "main" },
      { data: { at: [1], tag: "v1" }, text: "a comment" },
    ],
    [
      [{ text: "Main" }, "text", 'must be one of "main", "next", 7, {"tag":"v1","at":[1]}'],
      [{ text: "7" }, "text", "must be one of"],
      [{ message: { parts: [{ text: "main" }, { text: "too" }] } }, "message", "must be one of"],
      [{ message: { parts: [{ url: "https://example.com" }] } }, "message", "must be one of"],
      [
        { message: { parts: [{ data: 7 }] } },
        "message.parts.0.data",
        "only allowed as the data of the answer",
      ],
      [{ data: 8, text: "main" }, "data", "must be one of"],
      [{ data: { tag: "v1" } }, "data", "must be one of"],
      [{ decision: "approve" }, "decision", 'the options are "main"'],
      [{ decision: "deny", text: "main" }, "decision", "the options are"],
    ],
  ],
  [
    "the options approve and deny",
    { options: BOTH },
    [{ decision: "approve" }, { decision: "deny", text: "not on a Friday" }],
    [
      [{ text: "approve" }, "decision", "missing: must be approve or deny"],
      [{ data: "approve" }, "data", "must be one of"],
      [{ text: "yes" }, "decision", "missing"],
      [{ decision: "approve", data: { host: "db2" } }, "data", "must be one of"],
    ],
  ],
  [
    "one decision among the options",
    { options: ["approve", "later"] },
    [{ decision: "approve" }, { text: "later" }],
    [
      [{ decision: "deny" }, "decision", 'the options are "approve", "later"'],
      [{ text: "approve" }, "decision", "missing: must be approve"],
      [{ text: "never" }, "text", "must be one of"],
      [{ decision: "approve", data: "later" }, "data", "not allowed beside a decision"],
    ],
  ],
  [
    "a schema",
    { schema: SCHEMA },
    [{ data: { host: "db1" } }, { data: { host: "db1", size: 3 }, text: "the new one", decision: "approve" }],
    [
      [{ text: "db1" }, "data", "missing: the question asks for data"],
      [{ decision: "deny" }, "data", "missing"],
      [{ data: { size: 1.5 } }, "data.size", "must be a whole number"],
      [{ data: "db1" }, "data", "must be an object"],
      [{ message: { parts: [{ data: { host: "db1" } }] } }, "message.parts.0.data", "only allowed"],
      [{ data: { host: "db1" }, message: { parts: [{ data: 1 }] } }, "message.parts.0.data", "only allowed"],
    ],
  ],
  [
    "options and a schema: either, or both",
    { options: ["none", "approve", { host: 1 }], schema: SCHEMA },
    [
      { text: "none" },
      { decision: "approve" },
      { data: { host: "db1" }, text: "any" },
      { data: { host: 1 } },
      { decision: "approve", data: { host: "db1" } },
    ],
    [
      [{ text: "other" }, "text", "must be one of"],
      [{ text: "none", data: { host: 2 } }, "data.host", "must be a string"],
      [{ decision: "approve", data: 1 }, "data", "must be an object"],
      [{ decision: "deny", data: { host: "db1" } }, "decision", "the options are"],
    ],
  ],
  [
    "an action",
    DEPLOY,
    [{ decision: "approve" }, { decision: "deny", text: "use staging" }],
    [
      [{ text: "yes" }, "decision", "missing: must be approve or deny"],
      [{ text: "approve" }, "decision", "missing"],
      [
        { decision: "approve", data: { host: "db2" } },
        "data",
        "the arguments of this action cannot be edited",
      ],
      [{ decision: "approve", data: DEPLOY.action.arguments }, "data", "the arguments of this action cannot"],
      [{ data: {} }, "data", "the arguments of this action cannot be edited"],
      [
        { decision: "approve", message: { parts: [{ data: { host: "db2" } }] } },
        "message.parts.0.data",
        "only allowed as the data of the answer",
      ],
    ],
  ],
  [
    "edit: false is as no edit",
    { ...DEPLOY, edit: false, schema: SCHEMA },
    [{ decision: "approve" }],
    [
      [
        { decision: "approve", data: { host: "db2" } },
        "data",
        "the arguments of this action cannot be edited",
      ],
    ],
  ],
  [
    "an action that may be edited",
    { ...DEPLOY, edit: true },
    [{ decision: "approve" }, { decision: "approve", data: { any: 1 } }, { decision: "deny" }],
    [
      [{ decision: "approve", data: [1] }, "data", "must be an object"],
      [{ decision: "deny", data: { host: "db2" } }, "data", "replaces the arguments of the action, so"],
      [{ data: { host: "db2" } }, "data", "replaces the arguments of the action, so it requires approve"],
    ],
  ],
  [
    "a schema checks edited arguments",
    { ...DEPLOY, edit: true, schema: SCHEMA, options: ["later", ...BOTH] },
    [{ decision: "approve", data: { host: "db2" } }, { decision: "approve" }, { text: "later" }],
    [
      [{ decision: "approve", data: { host: 2 } }, "data.host", "must be a string"],
      [{ decision: "approve", data: {} }, "data.host", "missing"],
      [{ text: "later", data: { host: "db2" } }, "data", "replaces the arguments"],
      [{ text: "never" }, "text", "must be one of"],
    ],
  ],
  [
    "the secret of an auth question, or a decision about it",
    { kind: "auth", schema: { properties: { pin: { type: "string", minLength: 4 } } } },
    [{ data: { pin: "1234" } }, { decision: "approve" }, { decision: "deny", text: "no" }],
    [
      [{ text: "1234" }, "data", "missing"],
      [{ decision: "approve", data: { pin: "hunter2".slice(0, 3) } }, "data.pin", "at least 4 characters"],
    ],
  ],
  [
    "an auth question with options",
    { kind: "auth", options: ["use mine"] },
    [{ text: "use mine" }, { decision: "deny" }],
    [[{ text: "hunter2" }, "text", "must be one of"]],
  ],
];

describe("each rule", () => {
  test("holds for every answer, and a refused one changes nothing", async () => {
    const { alice, scout, redis } = await setup();
    const { id } = (await alice.delegate("scout")).body;
    let count = 0;
    const ask = async (question: Record<string, unknown>) => {
      const [lease] = (await scout.lease("scout")).body.leases;
      count += 1;
      const body = { kind: "input", request_id: `r${count}`, ...question };
      const { status, body: raised } = await scout.interrupt(lease.lease_id, body);
      expect([question, status]).toEqual([question, 200]);
      return { request_id: `r${count}`, interrupt_id: String(raised.interrupt_id) };
    };
    for (const [name, question, fits, misfits] of RULES) {
      const first = await ask(question);
      const before = await dump(redis);
      for (const [answer, path, reason] of misfits) {
        const { status, body } = await alice.answer(id, first.interrupt_id, answer);
        const issue = body.details?.issues?.[0];
        expect([name, answer, status, body.code, issue]).toEqual([
          name,
          answer,
          400,
          "invalid_request",
          { path, reason: expect.stringContaining(reason) },
        ]);
        expect(body).toMatchObject({ recovery: expect.stringMatching(/^Send /), delegation_id: id });
        expect(JSON.stringify(body)).not.toContain("hunter2");
        // What holds for one request holds for each of several.
        const answers = { [first.request_id]: answer };
        const again = (await alice.answer(id, first.interrupt_id, { answers })).body.details?.issues?.[0];
        expect([name, answer, again?.path]).toEqual([name, answer, `answers.${first.request_id}.${path}`]);
      }
      expect([name, await dump(redis)]).toEqual([name, before]);
      for (const [at, answer] of fits.entries()) {
        const { interrupt_id } = at === 0 ? first : await ask(question);
        const { status } = await alice.answer(id, interrupt_id, answer);
        expect([name, answer, status]).toEqual([name, answer, 200]);
        // The repeat of an accepted answer is accepted, but its content must not confirm a secret.
        const repeated = "kind" in question && question.kind === "auth" ? 409 : 200;
        if (at === 0) expect((await alice.answer(id, interrupt_id, answer)).status).toBe(repeated);
      }
    }
  });

  test("several requests are checked each, and together or not at all", async () => {
    const { alice, asked, redis, scout } = await setup();
    const requests = [
      { request_id: "go", text: "Deploy?", ...DEPLOY, edit: true },
      { request_id: "a.b", text: "Which?", options: ["x", "y"] },
      { request_id: "size", schema: { type: "integer" } },
    ];
    const { id, interrupt_id } = await asked({ kind: "input", requests });
    const before = await dump(redis);
    const wrong = { go: { text: "yes" }, "a.b": { text: "x" }, size: { data: "3" } };
    const { status, body } = await alice.answer(id, interrupt_id, { answers: wrong });
    expect([status, body.detail]).toEqual([
      400,
      "The answer does not fit the question: answers.go.decision: missing: must be approve or deny",
    ]);
    expect(body.details.issues).toEqual([
      { path: "answers.go.decision", reason: "missing: must be approve or deny" },
      { path: "answers.size.data", reason: "must be a whole number" },
    ]);
    expect(await dump(redis)).toEqual(before);
    const right = {
      go: { decision: "approve", data: { host: "db2" } },
      "a.b": { text: "y" },
      size: { data: 3 },
    };
    expect((await alice.answer(id, interrupt_id, { answers: right })).status).toBe(200);
    const [lease] = (await scout.lease("scout")).body.leases;
    const parts = lease.delegation.history.slice(-3).map((one: { parts: unknown }) => one.parts);
    expect(parts).toEqual([[{ data: { host: "db2" } }], [{ text: "y" }], [{ data: 3 }]]);
  });

  test("a question that no answer could fit is refused when it is asked", async () => {
    const { asked } = await setup();
    for (const [question, path, reason] of [
      [{ edit: true }, "edit", "requires an action"],
      [{ ...DEPLOY, options: ["yes", "no"] }, "options", "approve and deny among them"],
      [{ ...DEPLOY, options: [...BOTH, { id: 1 }] }, "options", "must be strings"],
      [{ action: { arguments: {} } }, "action.name", ""],
      [{ action: { name: "x", arguments: [] } }, "action.arguments", ""],
      [{ action: { name: "x", args: {} } }, "action.args", "unknown field"],
      [{ schema: { properties: { a: { pattern: "x" } } } }, "schema.properties.a.pattern", "not supported"],
      [{ requests: [{ schema: { $ref: "http://x.example" } }] }, "requests.0.schema.$ref", "must refer to"],
      [{ requests: [{ edit: true }] }, "requests.0.edit", "requires an action"],
      [{ ...DEPLOY, requests: [{}] }, "requests", "either at the top or under requests"],
    ] as const) {
      const { raised } = await asked({ kind: "input", ...question });
      expect([raised.status, raised.body.details?.issues?.[0]]).toEqual([
        400,
        { path, reason: expect.stringContaining(reason) },
      ]);
    }
  });

  test("an action is shown whole, counts for the size, and tells one question from another", async () => {
    const { alice, asked, scout } = await setup();
    const question = { kind: "input", text: "May I?", ...DEPLOY, edit: true };
    const { id, lease_id, interrupt_id } = await asked(question);
    expect((await scout.interrupt(lease_id, question)).body.interrupt_id).toBe(interrupt_id);
    // With the same words but other arguments, it is another question.
    const other = { kind: "input", text: "May I?", action: { name: "deploy", arguments: { host: "db9" } } };
    expect((await scout.interrupt(lease_id, other)).body.code).toBe("lease_lost");
    const shown = { action: DEPLOY.action, edit: true };
    expect((await alice.get(id)).body.interrupt.requests).toMatchObject([shown]);
    const { events } = (await alice.events(id)).body;
    expect(events.at(-1)).toMatchObject({ status: "interrupted", interrupt: { requests: [shown] } });
    await alice.answer(id, interrupt_id, { decision: "approve" });
    const [lease] = (await scout.lease("scout")).body.leases;
    const second = (await scout.interrupt(lease.lease_id, other)).body;
    expect([second.interrupt_id === interrupt_id, second.answers]).toEqual([false, undefined]);
    // Also under the same request_id.
    const named = { ...question, request_id: "r", edit: false };
    await alice.answer(id, second.interrupt_id, { decision: "deny" });
    const [third] = (await scout.lease("scout")).body.leases;
    const approved = (await scout.interrupt(third.lease_id, named)).body.interrupt_id;
    await alice.answer(id, approved, { decision: "approve" });
    const [fourth] = (await scout.lease("scout")).body.leases;
    const next = (await scout.interrupt(fourth.lease_id, { ...named, action: other.action })).body;
    expect([next.interrupt_id === approved, next.answers]).toEqual([false, undefined]);
    const blob = "x".repeat(900_000);
    for (let at = 0; at < 3; at += 1) {
      await alice.answer(id, (await alice.get(id)).body.interrupt.id, { decision: "deny" });
      const [held] = (await scout.lease("scout")).body.leases;
      const large = { kind: "input", request_id: `r${at}`, action: { name: "x", arguments: { blob } } };
      expect((await scout.interrupt(held.lease_id, large)).status).toBe(200);
    }
    const [request] = (await alice.get(id)).body.interrupt.requests;
    expect(request.message.parts).toEqual([{ text: "May I do this: x?" }]);
    await alice.answer(id, (await alice.get(id)).body.interrupt.id, { decision: "deny" });
    const [last] = (await scout.lease("scout")).body.leases;
    const beyond = { kind: "input", request_id: "r9", action: { name: "x", arguments: { blob } } };
    expect((await scout.interrupt(last.lease_id, beyond)).status).toBe(413);
  });
});

/** The answer's text, decision and data, as the agent's next worker gets them. */
async function received({ scout }: Setting) {
  const [lease] = (await scout.lease("scout", { wait_seconds: 5 })).body.leases;
  const { parts, metadata } = lease.delegation.history.at(-1);
  return { decision: metadata.decision, parts };
}

test("through A2A: metadata decides, a data part has the edited arguments", async () => {
  const setting = await setup();
  const { alice, asked } = setting;
  const { id } = await asked({ kind: "input", text: "May I?", ...DEPLOY, edit: true, schema: SCHEMA });
  const send = async (parts: unknown, metadata: unknown = {}) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", taskId: id, parts, metadata };
    const params = { message, configuration: { returnImmediately: true } };
    const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params };
    return (await alice.call("POST", "/a2a/scout/rpc", body, { "a2a-version": "1.0" })).body;
  };
  const text = await send([{ text: "yes" }]);
  expect(text.error).toMatchObject({ code: -32602, message: expect.stringContaining("decision: missing") });
  expect(JSON.stringify(text.error.data)).toContain("approve or deny");
  const wrong = await send([{ data: { host: 7 } }], { decision: "approve" });
  expect(JSON.stringify(wrong.error)).toContain("data.host");
  const task = (
    await send([{ data: { host: "db2" }, mediaType: "application/json" }], { decision: "approve" })
  ).result;
  expect(task.task.status.state).toBe("TASK_STATE_SUBMITTED");
  expect(await received(setting)).toEqual({ decision: "approve", parts: [{ data: { host: "db2" } }] });
});

test("through MCP: the tools ask with an action, show it, refuse what does not fit, and pass the answer", async () => {
  const { url, scout, alice } = await setup();
  const call = async (token: string, tool: string, args: Record<string, unknown>) =>
    toolOutput((await callModern(url, token, tool, args)).body.result);
  const delegated = await call(alice.token, "delegate_task_async", { agent: "scout", task: "deploy it" });
  const { delegation_id } = delegated.data;
  const [{ lease_id }] = (await call(scout.token, "poll_inbox", { wait_seconds: 5 })).data.tasks;
  await call(scout.token, "report_progress", { lease_id });
  const question = { lease_id, question: "May I?", ...DEPLOY, edit: true, schema: SCHEMA };
  const { interrupt_id } = (await call(scout.token, "request_input", question)).data;
  const shown = await call(alice.token, "check_task_status", { delegation_id });
  expect(shown.data.question.requests).toMatchObject([{ action: DEPLOY.action, edit: true, schema: SCHEMA }]);
  expect(shown.text).toContain('Action: deploy {"host":"db1","dry":true} (editable)');
  const answer = { delegation_id, interrupt_id };
  const text = await call(alice.token, "answer_task", { ...answer, text: "yes" });
  expect(text.data.error).toMatchObject({
    code: "invalid_request",
    details: { issues: [{ path: "decision", reason: "missing: must be approve or deny" }] },
    recovery: expect.stringContaining("Send the decision approve or deny"),
  });
  const wrong = await call(alice.token, "answer_task", { ...answer, decision: "approve", data: { host: 7 } });
  expect(wrong.data.error.details.issues).toEqual([{ path: "data.host", reason: "must be a string" }]);
  const right = await call(alice.token, "answer_task", {
    ...answer,
    decision: "approve",
    data: { host: "db2" },
  });
  expect(right.data.state).toBe("submitted");
  const [back] = (await call(scout.token, "poll_inbox", { wait_seconds: 5 })).data.tasks;
  expect(back.history.at(-1)).toMatchObject({ decision: "approve", data: [{ host: "db2" }] });
});

test("through the library: a handler asks for approval, and runs what was approved", async () => {
  const { url, scout, alice } = await setup();
  const delegator = new Delegator({ url, token: alice.token });
  const ran: unknown[] = [];
  const agent = new Agent({ url, token: scout.token, agent: "scout" }, async (work) => {
    for (const host of ["db1", "db2"]) {
      const proposed = { host };
      const { decision, data, text } = await work.ask({
        text: "Deploy?",
        action: { name: "deploy", arguments: proposed },
        edit: true,
      });
      ran.push(decision === "approve" ? (data ?? proposed) : text);
    }
    return "done";
  });
  const running = agent.run();
  const { id } = await delegator.delegate({ target: "scout", task: "deploy" });
  const question = async (host: string) => {
    const { interrupt } = await until(async () => {
      const one = await delegator.wait(id, { timeoutSeconds: 15 });
      return one.interrupt?.requests[0]?.action?.arguments.host === host ? one : null;
    });
    return interrupt?.id ?? null;
  };
  const first = await question("db1");
  await expect(delegator.answer(id, first, "yes")).rejects.toMatchObject({
    code: "invalid_request",
    details: { issues: [{ path: "decision", reason: "missing: must be approve or deny" }] },
  });
  await delegator.approve(id, { data: { host: "db7" }, interruptId: first ?? undefined });
  await delegator.deny(id, { text: "not that one", interruptId: (await question("db2")) ?? undefined });
  expect((await delegator.wait(id, { timeoutSeconds: 15 })).state).toBe("completed");
  expect(ran.slice(-2)).toEqual([{ host: "db7" }, "not that one"]);
  await agent.stop(0);
  await running;
});

test("through the library: the approval of one action is not the answer for another", async () => {
  const { url, scout, alice } = await setup();
  const delegator = new Delegator({ url, token: alice.token });
  let runs = 0;
  // As a model does, each run proposes something else.
  const agent = new Agent({ url, token: scout.token, agent: "scout" }, async (work) => {
    runs += 1;
    const proposed = { host: `db${Math.min(runs, 2)}` };
    const { decision } = await work.ask({ text: "May I?", action: { name: "deploy", arguments: proposed } });
    return `${decision}: ${proposed.host}`;
  });
  const running = agent.run();
  const { id } = await delegator.delegate({ target: "scout", task: "deploy" });
  const hosts: unknown[] = [];
  for (const decide of ["approve", "deny"] as const) {
    const { interrupt } = await delegator.wait(id, { timeoutSeconds: 15 });
    hosts.push(interrupt?.requests[0]?.action?.arguments.host);
    await delegator[decide](id, { interruptId: interrupt?.id });
  }
  const { reply } = await delegator.wait(id, { timeoutSeconds: 15 });
  expect([hosts, reply?.parts]).toEqual([["db1", "db2"], [{ text: "deny: db2" }]]);
  await agent.stop(0);
  await running;
});

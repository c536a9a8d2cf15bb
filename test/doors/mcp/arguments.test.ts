/** How models and their clients send arguments, and what providers take as a tool's schema. */
import { describe, expect, test } from "vitest";
import { toInputRequests } from "../../../src/doors/mcp/elicitation.ts";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { as, startBroker } from "../../support/broker.ts";
import { callModern, openSession, postMcp, requestModern } from "../../support/mcp.ts";

type Members = Record<string, unknown>;
const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null;

describe("a tool's schema", () => {
  /** What OpenAI, Anthropic and Gemini all take. */
  const TAKEN = new Set([
    ...["type", "description", "enum", "default", "anyOf", "properties", "required", "items"],
    ...["minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"],
  ]);
  const TYPES = new Set(["string", "number", "integer", "boolean", "array", "object"]);

  function problemsOf(schema: unknown, path: string): string[] {
    if (!isMembers(schema)) return [`${path} is no schema`];
    const { type, anyOf, properties = {}, items, enum: values = [], pattern } = schema;
    const problems = Object.keys(schema)
      .filter((keyword) => !TAKEN.has(keyword))
      .map((keyword) => `${path}: ${keyword}`);
    if (anyOf === undefined && !TYPES.has(String(type))) problems.push(`${path}: type ${String(type)}`);
    if (type === "array" && !isMembers(items)) problems.push(`${path}: no items`);
    if (!Array.isArray(values) || values.some((one) => typeof one !== "string"))
      problems.push(`${path}: enum`);
    // No look-ahead and no Unicode classes: some providers compile patterns with RE2.
    if (/\(\?[=!<]|\\p/.test(String(pattern ?? "")) || String(pattern ?? "").length > 100)
      problems.push(`${path}: pattern`);
    for (const [name, one] of Object.entries(isMembers(properties) ? properties : {}))
      problems.push(...problemsOf(one, `${path}.${name}`));
    if (items !== undefined) problems.push(...problemsOf(items, `${path}[]`));
    if (Array.isArray(anyOf)) problems.push(...anyOf.flatMap((one, at) => problemsOf(one, `${path}|${at}`)));
    return problems;
  }

  test("has only keywords that every large provider takes", () => {
    expect(TOOLS.flatMap(({ name, inputSchema }) => problemsOf(inputSchema, name))).toEqual([]);
    for (const { name, inputSchema } of TOOLS)
      expect([name, inputSchema.type, inputSchema.anyOf]).toEqual([name, "object", undefined]);
    // The check finds what it looks for.
    expect(
      problemsOf({ type: "object", properties: { a: {}, b: { type: "number", exclusiveMinimum: 0 } } }, "x"),
    ).toHaveLength(2);
  });

  test("so do the forms of questions", () => {
    const message = { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "?" }] };
    const at = "2026-01-01T00:00:00.000Z";
    const action = { name: "deploy", arguments: { to: "prod" } };
    const requests = [
      {},
      { options: ["yes", "no"] },
      { options: [{ a: 1 }, 2] },
      { action },
      { action, edit: true },
      { schema: { type: "object", properties: { n: { type: "number", exclusiveMinimum: 0 } } } },
      { schema: { type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] } },
      { schema: { const: 1 } },
    ];
    for (const kind of ["input", "auth"] as const) {
      const interrupt = {
        ...{ id: "int_1", kind, raised_at: at, expires_at: at },
        requests: requests.map((more, n) => ({ request_id: `r${n}`, message, ...more })),
      };
      const forms: unknown[] = Object.values(toInputRequests({ interrupt }));
      expect(forms).toHaveLength(requests.length);
      for (const form of forms) {
        const schema = isMembers(form) && isMembers(form.params) ? form.params.requestedSchema : undefined;
        const { title: _title, ...shown } = JSON.parse(JSON.stringify(schema), (name, value) =>
          name === "title" ? undefined : value,
        );
        expect(problemsOf(shown, "form"), JSON.stringify(form)).toEqual([]);
      }
    }
  });
});

describe("arguments", () => {
  async function setup() {
    const broker = await startBroker();
    const scout = await as(broker.url, "agent:scout");
    await scout.agent("scout");
    const alice = await as(broker.url, "caller:alice");
    const callBy = (token: string) => async (name: string, args: unknown) => {
      const { body } = await callModern(broker.url, token, name, isMembers(args) ? args : {});
      const { isError = false, content, structuredContent } = body.result;
      return { isError, text: content[0].text, data: structuredContent };
    };
    return { ...broker, alice, call: callBy(alice.token), work: callBy(scout.token) };
  }

  const LENIENT: readonly [string, Members, Members][] = [
    [
      "null for absent",
      {
        priority: null,
        metadata: null,
        context_id: null,
        auto_approve: null,
        idempotency_key: null,
        delay_seconds: null,
      },
      {},
    ],
    [
      "an empty text for absent",
      { context_id: "", metadata: "", priority: "", parent_id: "", idempotency_key: "", auto_approve: "" },
      {},
    ],
    ["a number as text", { priority: "7", ttl_seconds: " 3600 ", delay_seconds: "0" }, { priority: 7 }],
    ["a whole number with a point", { priority: "7.0" }, { priority: 7 }],
    [
      "an object as text",
      { metadata: '{"a": [1, null, "x"], "n": 9007199254740991}' },
      { metadata: { a: [1, null, "x"], n: 9007199254740991 } },
    ],
    ["a boolean as text", { auto_approve: "true" }, { auto_approve: true }],
    ["another boolean as text", { auto_approve: "False" }, {}],
    ["no approval in advance", { auto_approve: false }, {}],
    [
      "one of two types, as text",
      { auto_approve: '{"actions": "deploy"}' },
      { auto_approve: { actions: ["deploy"] } },
    ],
    ["null inside of data", { metadata: { a: null, b: "" } }, { metadata: { a: null, b: "" } }],
  ];

  test("are read as they are meant", async () => {
    const { call, alice } = await setup();
    for (const [what, args, expected] of LENIENT) {
      const { isError, text, data } = await call("delegate_task_async", {
        agent: "scout",
        task: "7",
        ...args,
      });
      expect([what, isError, data.ignored_arguments], text).toEqual([what, false, undefined]);
      const { body } = await alice.call("GET", `/v1/delegations/${data.delegation_id}`);
      const { priority, metadata, auto_approve, message } = body;
      expect({ priority, metadata, auto_approve }, what).toEqual({
        priority: 5,
        metadata: {},
        ...{ auto_approve: undefined },
        ...expected,
      });
      expect(message.parts).toEqual([{ text: "7" }]);
    }
  });

  test("of a worker, too", async () => {
    const { call, work } = await setup();
    await call("delegate_task", {
      agent: "scout",
      task: "x",
      wait_seconds: "0",
      cancel_on_disconnect: "false",
    });
    const polled = await work("poll_inbox", { wait_seconds: "0", max: "1", full: "true", agent: null });
    const [{ lease_id }] = polled.data.tasks;
    const report = {
      lease_id,
      message: "at it",
      tools_used: "bash",
      done: "1",
      total: null,
      current_step: "",
    };
    expect((await work("report_progress", report)).isError).toBe(false);
    const ask = { lease_id, question: "?", schema: '{"type": "number"}', options: "", edit: null };
    expect((await work("request_input", ask)).isError).toBe(false);
    const { data } = await call("list_tasks", {
      state: '["input_required", "working"]',
      limit: "5",
      agent: "",
    });
    const [{ delegation_id, question }] = data.tasks;
    expect(question.requests[0].schema).toEqual({ type: "number" });
    const answers = JSON.stringify({ [question.requests[0].request_id]: { data: 5 } });
    const answered = await call("answer_task", {
      delegation_id,
      interrupt_id: question.interrupt_id,
      answers,
    });
    expect([answered.isError, answered.data.state], answered.text).toEqual([false, "submitted"]);
  });

  test("that are null are absent, in both eras", async () => {
    const { url, alice, call } = await setup();
    await call("delegate_task_async", { agent: "scout", task: "x" });
    const params = { name: "list_tasks", arguments: null };
    const modern = await requestModern(url, alice.token, "tools/call", params);
    expect(modern.body.result?.structuredContent?.tasks, JSON.stringify(modern.body)).toHaveLength(1);
    const headers = await openSession(url, alice.token);
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    const legacy = await postMcp(url, alice.token, message, { headers });
    expect(legacy.body.result?.structuredContent?.tasks, JSON.stringify(legacy.body)).toHaveLength(1);
    const lacking = await requestModern(url, alice.token, "tools/call", { ...params, name: "delegate_task" });
    expect(lacking.body.result.structuredContent.error.code).toBe("invalid_request");
  });

  test("data of an answer may be JSON as text, where the question refuses the text", async () => {
    const { call, work } = await setup();
    const object = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    for (const [ask, data, expected] of [
      [{ schema: object }, '{"n":3}', { n: 3 }],
      [{ schema: object }, ' {"n": 3.0}\n', { n: 3 }],
      [{ schema: { type: "integer" } }, "5", 5],
      [{ schema: { type: "string" } }, '{"n":3}', '{"n":3}'],
      [{ schema: { type: "array", items: object } }, '[{"n":3}]', [{ n: 3 }]],
      [{}, '{"n":3}', '{"n":3}'],
      [{ schema: object }, '{"n":9007199254740993}', "inexact_number data.n"],
      [{ schema: object }, '{"n":"x"}', "invalid_request data"],
      [{ schema: object }, '{"n":3', "invalid_request data"],
    ] as const) {
      for (const isSingle of [true, false]) {
        await call("delegate_task_async", { agent: "scout", task: "x" });
        const { data: polled } = await work("poll_inbox", { wait_seconds: 0 });
        const [{ lease_id, delegation_id }] = polled.tasks;
        await work("request_input", { lease_id, question: "?", ...ask });
        const asked = await call("check_task_status", { delegation_id });
        const { interrupt_id, requests } = asked.data.question;
        const name = requests[0].request_id;
        const answers = { [name]: { data } };
        const given = { delegation_id, interrupt_id, ...(isSingle ? { data } : { answers }) };
        const answered = await call("answer_task", given);
        const what = `${JSON.stringify(ask)} ${data}: ${answered.text}`;
        if (answered.isError) {
          const { code, details } = answered.data.error;
          const path = isSingle ? "" : `answers.${name}.`;
          expect(`${code} ${details.issues[0].path.replace(path, "")}`, what).toBe(expected);
          await call("cancel_task", { delegation_id });
          continue;
        }
        const again = await work("poll_inbox", { wait_seconds: 0, full: true });
        expect(JSON.stringify(again.data.tasks[0]), what).toContain(`"data":[${JSON.stringify(expected)}]`);
        await work("complete_task", { lease_id: again.data.tasks[0].lease_id, text: "done" });
      }
    }
  });

  test("that a tool does not have are ignored and listed", async () => {
    const { call } = await setup();
    const { isError, text, data } = await call("delegate_task_async", {
      ...{ agent: "scout", task: "x", security_context: { user: 1 }, _reasoning: "because", tags: ["a"] },
      auto_approve: { actions: ["deploy"], why: "x" },
      nothing: null,
    });
    expect(isError, text).toBe(false);
    expect(data.ignored_arguments).toEqual(["security_context", "_reasoning", "tags", "auto_approve.why"]);
    expect(text).toContain(
      "Ignored arguments, which this tool does not have: security_context, _reasoning, tags, auto_approve.why.",
    );
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`unheard_of_${n}${"x".repeat(200)}`, 1]),
    );
    const bounded = await call("list_tasks", many);
    expect(bounded.data.ignored_arguments).toHaveLength(20);
    expect(bounded.text.length).toBeLessThan(4_000);
  });

  test("with a name that may be misspelt are refused, and nothing is delegated", async () => {
    const { call, alice } = await setup();
    for (const [name, reason] of [
      ["ttl_second", "did you mean ttl_seconds?"],
      ["ttlSeconds", "did you mean ttl_seconds?"],
      ["TTL-SECONDS", "did you mean ttl_seconds?"],
      ["ttl", "did you mean ttl_seconds?"],
      ["idempotencykey", "did you mean idempotency_key?"],
      ["autoapprove", "did you mean auto_approve?"],
      ["deadline", "ignoring it would change what you ask for"],
      ["dedline", "ignoring it would change what you ask for"],
      ["not_befor", "ignoring it would change what you ask for"],
      ["maxAttempts", "ignoring it would change what you ask for"],
      ["wait_second", "another tool has wait_seconds, this one does not"],
      ["waitSecond", "another tool has wait_seconds, this one does not"],
      ["delegation_ids", "another tool has delegation_id, this one does not"],
    ]) {
      const { isError, data } = await call("delegate_task_async", {
        agent: "scout",
        task: "x",
        [`${name}`]: "1",
      });
      expect([isError, data.error?.code, data.error?.details?.issues[0]], name).toEqual([
        true,
        "invalid_request",
        { path: name, reason: expect.stringContaining(`${reason}`) },
      ]);
    }
    for (const [args, code, path] of [
      [{ priority: "9007199254740993" }, "inexact_number", "priority"],
      [{ metadata: '{"a": {"id": 1915883588174806058}}' }, "inexact_number", "metadata.a.id"],
      [{ metadata: `${'{"a":'.repeat(70)}1${"}".repeat(70)}` }, "invalid_request", "metadata"],
      [{ metadata: '{"a": "\\ud83d"}' }, "invalid_request", "metadata.a"],
      [{ metadata: '{"a": 1' }, "invalid_request", "metadata"],
      [{ priority: "seven" }, "invalid_request", "priority"],
      [{ priority: "1e1" }, "invalid_request", "priority"],
      [{ task: null }, "invalid_request", "task"],
      [{ task: "" }, "invalid_request", "task"],
    ] as const) {
      const { data, text } = await call("delegate_task_async", { agent: "scout", task: "x", ...args });
      expect([data.error?.code, data.error?.details?.issues[0].path], text).toEqual([code, path]);
    }
    expect((await alice.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
  });
});

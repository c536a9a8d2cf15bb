/** Runs over AG-UI: what a client sees of a delegation, from its start to its end, its question or its failure. */
import { AgentCapabilitiesSchema } from "@ag-ui/core/schemas";
import { describe, expect, test } from "vitest";
import { request } from "../../support/broker.ts";
import { until } from "../../support/until.ts";
import { agUi, type Json, setup, started } from "./support.ts";

test("a run with progress, artifacts and a reply", async () => {
  const { scout, lease, client } = await setup();
  const ui = client("thread-1");
  ui.say("count the words", "m1");
  const { run, lease_id, delegation } = await started(ui, lease);
  expect(delegation).toMatchObject({
    context_id: "thread-1",
    message: { messageId: "m1", parts: [{ text: "count the words" }] },
  });
  await scout.heartbeat(lease_id, {
    progress: { message: "on it", current_step: "read", done: 1, total: 2 },
  });
  const artifact = (more: object, flags: object = {}) =>
    scout.call("POST", `/v1/leases/${lease_id}/artifacts`, {
      artifact: { artifactId: "out", ...more },
      ...flags,
    });
  await artifact({ name: "out", parts: [{ text: "one " }] }, { append: true });
  await artifact({ parts: [{ text: "two" }, { data: { n: 2 } }] }, { append: true, last_chunk: true });
  await scout.heartbeat(lease_id, { progress: { message: "nearly", current_step: "write" } });
  await scout.reply(lease_id, { text: "2 words", usage: { input_tokens: 5 } });
  const { types, last, result, error } = await run;
  expect(error).toBeUndefined();
  expect(types).toEqual([
    ...["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "ACTIVITY_SNAPSHOT"],
    ...["STATE_DELTA", "ACTIVITY_DELTA"],
    ...["ACTIVITY_DELTA", "STEP_STARTED"],
    ...["STATE_DELTA", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"],
    ...["STATE_DELTA", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"],
    ...["ACTIVITY_DELTA", "STEP_FINISHED", "STEP_STARTED"],
    ...["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"],
    ...["STATE_DELTA", "ACTIVITY_DELTA", "STEP_FINISHED", "RUN_FINISHED"],
  ]);
  expect(last.outcome).toEqual({ type: "success" });
  const usage = { input_tokens: 5, complete: true };
  expect(result).toMatchObject({
    ...{ delegation_id: delegation.id, reply: { parts: [{ text: "2 words" }] }, usage },
  });
  expect(ui.messages()).toMatchObject([
    { role: "user", id: "m1" },
    { role: "assistant", content: "one two" },
    { role: "assistant", content: "2 words" },
  ]);
  expect(ui.errand()).toMatchObject({
    delegation_id: delegation.id,
    state: "completed",
    artifacts: [{ artifactId: "out", name: "out", parts: [{ data: { n: 2 } }] }],
  });
  expect(ui.agent.messages.find(({ role }) => role === "activity")).toMatchObject({
    content: { state: "completed", message: "nearly", current_step: "write" },
  });
});

test("a run that is refused has an HTTP status and a problem, and no event", async () => {
  const { url, alice, scout, redis, client } = await setup();
  const post = (body: unknown, token: string | null = alice.token, agent = "scout") =>
    request(url, "POST", `/ag-ui/${agent}`, { body, token });
  const input = (more: object = {}) => ({
    ...{ threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "go" }] },
    ...more,
  });
  const props = (errand: object) => input({ forwardedProps: { errand } });
  await scout.agent("scout", { accepts_from: ["caller:bob"] });
  const cases: readonly (readonly [number, string, Promise<{ status: number; body: Json }>])[] = [
    [400, "invalid_json", post("{")],
    [400, "invalid_request", post({ threadId: "t", runId: "r" })],
    [400, "invalid_request", post(input({ threadId: "not a\nthread" }))],
    [400, "invalid_request", post(input({ messages: [] }))],
    [400, "invalid_request", post(input({ messages: [{ id: "m", role: "user", content: 7 }] }))],
    [400, "invalid_request", post(props({ autoApprove: true }))],
    [400, "invalid_request", post(props({ attach: true, cancel: true }))],
    [400, "invalid_request", post(props({ delegation_id: "dlg_0_00000000000000000000000000" }))],
    [400, "invalid_request", post(props({ ttl_seconds: 5, deadline: "2100-01-01T00:00:00Z" }))],
    [
      400,
      "invalid_json",
      post('{"threadId": "t", "runId": "r", "messages": [], "state": {"__proto__": {}}}'),
    ],
    [401, "unauthenticated", post(input(), null)],
    [403, "not_accepted", post(input())],
    [404, "agent_unknown", post(input(), alice.token, "nobody")],
    [404, "delegation_not_found", post(props({ attach: true }))],
    [404, "delegation_not_found", post(props({ cancel: true }))],
  ];
  for (const [status, code, sent] of cases) {
    const { status: got, body } = await sent;
    expect([got, body.code, body.recovery]).toEqual([status, code, expect.stringMatching(/.{10}/)]);
  }
  const { body } = await post(props({ ttl_seconds: 5, deadline: "2100-01-01T00:00:00Z" }));
  expect(body.details.issues[0].path).toMatch(/^forwardedProps\.errand\.(ttl_seconds|deadline)$/);
  const ui = client("t");
  ui.say("go");
  expect(await ui.run()).toMatchObject({ events: [], error: expect.stringContaining("not_accepted") });
  expect(await redis.keys("errand:*:d:*")).toEqual([]);
});

describe("ends", () => {
  test.each([
    ["failed", { state: "failed", error: { code: "broken", message: "it broke" } }, "RUN_ERROR", "broken"],
    ["rejected", { state: "rejected", text: "not me" }, "RUN_ERROR", "rejected"],
  ])("a delegation that is %s", async (_name, reply, type, code) => {
    const { scout, lease, client } = await setup();
    const ui = client("t");
    ui.say("go");
    const { run, lease_id, delegation } = await started(ui, lease);
    await scout.reply(lease_id, { text: undefined, ...reply });
    const { last, error } = await run;
    expect(last).toMatchObject({ type, code, metadata: { errand: { delegation_id: delegation.id } } });
    expect(error).toBe(last.message);
  });

  test("a canceled one, by a second run of the thread; an abort is no cancel", async () => {
    const { scout, alice, lease, client } = await setup();
    const ui = client("t");
    ui.say("go", "m");
    const { run, lease_id, delegation } = await started(ui, lease);
    ui.agent.abortRun();
    await run;
    expect((await alice.get(delegation.id)).body.state).toBe("working");
    const other = client("t");
    const { last, result } = await other.run({
      forwardedProps: { errand: { cancel: { reason: "never mind" } } },
    });
    expect([last.type, last.outcome, result]).toEqual(["RUN_FINISHED", { type: "cancelled" }, undefined]);
    expect((await alice.get(delegation.id)).body.error.message).toContain("never mind");
    expect((await scout.heartbeat(lease_id)).body.details.reason).toBe("canceled");
    // Attached again, it is still canceled, and neither a success nor a failure.
    expect((await ui.run({ forwardedProps: { errand: { attach: true } } })).last.outcome).toEqual({
      type: "cancelled",
    });
  });

  test("a lease that is lost: the artifacts of the attempt disappear", async () => {
    const { scout, lease, client } = await setup();
    const ui = client("t");
    ui.say("go");
    const { run, lease_id } = await started(ui, lease);
    const artifact = { artifactId: "a", parts: [{ text: "half of" }] };
    await scout.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact });
    await until(() => ui.messages().length === 2, { what: "the artifact" });
    await scout.release(lease_id);
    await until(() => ui.messages().length === 1, { what: "its end" });
    const again = await lease();
    await scout.reply(again.lease_id, {
      text: "done",
      artifacts: [{ artifactId: "a", parts: [{ text: "whole" }] }],
    });
    expect((await run).error).toBeUndefined();
    expect(ui.messages().map(({ content }) => content)).toEqual(["go", "whole", "done"]);
    expect(ui.errand().artifacts).toMatchObject([{ artifactId: "a", parts: [] }]);
  });
});

test("a reply that replaces an artifact: the message has the new text only", async () => {
  const { scout, lease, client } = await setup();
  const ui = client("t");
  ui.say("go");
  const { run, lease_id } = await started(ui, lease);
  const artifact = { artifactId: "a", parts: [{ text: "draft" }] };
  await scout.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact });
  await until(() => ui.messages().length === 2, { what: "the draft" });
  await scout.reply(lease_id, { text: "done", artifacts: [{ ...artifact, parts: [{ text: "final" }] }] });
  expect((await run).error).toBeUndefined();
  expect(ui.messages().map(({ content }) => content)).toEqual(["go", "final", "done"]);
});

describe("artifacts that replace others", () => {
  const work = async (state?: object) => {
    const { scout, lease, client } = await setup();
    const ui = client("t");
    if (state) ui.agent.setState(state);
    ui.say("go");
    const { run, lease_id } = await started(ui, lease);
    const put = (parts: object[], flags: object = {}) =>
      scout.call("POST", `/v1/leases/${lease_id}/artifacts`, {
        artifact: { artifactId: "a", parts },
        ...flags,
      });
    const artifacts = () => ui.errand().artifacts.map(({ parts }: Json) => parts);
    const texts = () => ui.messages().map(({ content }) => content);
    return { scout, ui, run, lease_id, put, artifacts, texts };
  };
  const snapshots = (types: readonly string[]) => types.filter((type) => type === "MESSAGES_SNAPSHOT").length;

  test("are additions if their text only grows: the input is not sent again", async () => {
    const { scout, ui, run, lease_id, put, artifacts, texts } = await work();
    for (const n of [1, 2, 3]) await put([{ text: "ab\n".repeat(n) }, { data: { n } }]);
    await until(() => artifacts()[0]?.[0]?.data.n === 3, { what: "the third" });
    expect(texts()).toEqual(["go", "ab\nab\nab\n"]);
    await put([{ data: { n: 4 } }, { text: "end" }], { append: true, last_chunk: true });
    await scout.reply(lease_id, { text: "done" });
    const { types, error } = await run;
    expect([error, snapshots(types)]).toEqual([undefined, 1]);
    expect(artifacts()).toEqual([[{ data: { n: 3 } }, { data: { n: 4 } }]]);
    expect(texts()).toEqual(["go", "ab\nab\nab\nend", "done"]);
    expect(ui.errand().artifacts[0].message_id).toBe(ui.messages()[1]?.id);
  });

  test("with another text share a snapshot, if the input is large", async () => {
    const { scout, run, lease_id, put, texts } = await work({ page: "x".repeat(900_000) });
    for (const n of [1, 2, 3, 4, 5, 6]) await put([{ text: `draft ${n}` }]);
    await scout.reply(lease_id, { text: "done" });
    const { types, error } = await run;
    expect([error, snapshots(types)]).toEqual([undefined, 2]);
    expect(texts()).toEqual(["go", "draft 6", "done"]);
  });

  test("are shown while the work goes on", async () => {
    const { scout, run, lease_id, put, texts } = await work();
    await put([{ text: "draft" }]);
    await put([{ text: "other" }]);
    await put([{ text: "third" }]);
    await until(() => texts()[1] === "third", { what: "the third" });
    await scout.reply(lease_id, { text: "done" });
    expect((await run).error).toBeUndefined();
    expect(texts()).toEqual(["go", "third", "done"]);
  });
});

test("what changes fast is shown at most four times a second, however small it is", async () => {
  const { scout, alice, lease, client } = await setup();
  const ui = client("t");
  ui.say("go");
  const startedAt = performance.now();
  const { run, lease_id, delegation } = await started(ui, lease);
  const changes = Array.from({ length: 20 }, (_, n) => async () => {
    const artifact = { artifactId: "a", parts: [{ text: `draft ${n}` }] };
    await scout.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact });
    await alice.message(delegation.id, `follow-up ${n}`);
  });
  for (const change of changes) await change();
  await scout.reply(lease_id, { text: "done" });
  const { types, error } = await run;
  const elapsedMs = performance.now() - startedAt;
  expect(error).toBeUndefined();
  // One at the start, one at the end.
  expect(types.filter((type) => type === "MESSAGES_SNAPSHOT").length).toBeLessThan(3 + elapsedMs / 250);
  const texts = ui.messages().map(({ content }) => content);
  expect(texts.filter((text) => text.startsWith("follow-up"))).toHaveLength(20);
  expect(texts).toContain("draft 19");
});

test("several artifacts of one update of an A2A agent are shown at once", async () => {
  const { scout, lease, client } = await setup();
  const ui = client("t");
  ui.say("go");
  const { run, lease_id } = await started(ui, lease);
  const artifacts = ["a", "b"].map((id) => ({ artifactId: id, parts: [{ text: `text ${id}` }] }));
  const task = { id: "t", status: { state: "TASK_STATE_WORKING" }, artifacts };
  await scout.call("POST", "/v1/agents/scout/replies", { jsonrpc: "2.0", id: lease_id, result: { task } });
  await until(() => ui.messages().length === 3, { what: "both" });
  await scout.reply(lease_id, { text: "done" });
  await run;
  expect(ui.messages().map(({ content }) => content)).toEqual(["go", "text a", "text b", "done"]);
});

test("the application's state stays, and reaches the agent with its context and content parts", async () => {
  const { scout, lease, client } = await setup();
  const ui = client("t");
  ui.agent.setState({ draft: { title: "x" } });
  ui.agent.addMessage({
    id: "m",
    role: "user",
    content: [
      { type: "text", text: "what is this?" },
      { type: "image", source: { type: "data", value: "aGk=", mimeType: "image/png" } },
      { type: "document", source: { type: "url", value: "https://example.org/a.pdf" } },
      { type: "audio", source: { type: "file", value: "file-1", provider: "openai" } },
    ],
  });
  const { run, lease_id, delegation } = await started(ui, lease, {
    context: [{ description: "page", value: "home" }],
    forwardedProps: { theme: "dark", errand: { priority: 9, metadata: { ticket: 7 } } },
  });
  expect(delegation.message.parts).toEqual([
    { text: "what is this?" },
    { raw: "aGk=", mediaType: "image/png" },
    { url: "https://example.org/a.pdf" },
    { data: { type: "audio", file: "file-1", provider: "openai" } },
  ]);
  expect(delegation.message.metadata["ag-ui"]).toEqual({
    context: [{ description: "page", value: "home" }],
    state: { draft: { title: "x" } },
  });
  expect(delegation).toMatchObject({ priority: 9, metadata: { ticket: 7 } });
  await scout.reply(lease_id, { text: "a cat" });
  await run;
  expect(ui.agent.state).toMatchObject({ draft: { title: "x" }, errand: { state: "completed" } });
  expect(ui.messages()[0]).toMatchObject({ content: [{ type: "text" }, { type: "image" }, {}, {}] });
});

test("children that the caller sees are subagents", async () => {
  const { scout, lease, url, alice } = await setup();
  await scout.call("GET", "/v1/status");
  const { body: made } = await request(url, "PUT", "/v1/agents/helper", { body: {} });
  expect(made.name).toBe("helper");
  const ui = agUi(url, alice.token, "t");
  ui.say("go");
  const { run, lease_id, delegation } = await started(ui, lease);
  // Hers: of those that an agent delegates, only its own principals see anything.
  const child = await alice.delegate("helper", { parent_id: delegation.id, task: "look it up" });
  const hidden = await scout.delegate("helper", { parent_id: delegation.id });
  expect([child.status, hidden.status]).toEqual([202, 202]);
  await scout.heartbeat(lease_id, { progress: { message: "asked a helper" } });
  await until(() => ui.seen("SUBAGENT_STARTED"), { what: "the child" });
  // Its end is noticed although the parent is silent.
  await alice.cancel(child.body.id);
  await until(() => ui.seen("SUBAGENT_ERROR"), { what: "its end" });
  const second = await alice.delegate("helper", { parent_id: delegation.id });
  await scout.reply(lease_id);
  const { events, error } = await run;
  expect(error).toBeUndefined();
  expect(events.filter(({ type }) => type.startsWith("SUBAGENT"))).toMatchObject([
    { type: "SUBAGENT_STARTED", subagentRunId: child.body.id, name: "helper", description: "look it up" },
    { type: "SUBAGENT_ERROR", subagentRunId: child.body.id, code: "canceled" },
    { type: "SUBAGENT_STARTED", subagentRunId: second.body.id },
    { type: "SUBAGENT_FINISHED", subagentRunId: second.body.id, outcome: { type: "suspended" } },
  ]);
});

test("capabilities, in AG-UI's shape, with presence", async () => {
  const { url, alice, scout } = await setup();
  const get = () => request(url, "GET", "/ag-ui/scout/capabilities", { token: alice.token });
  const { body } = await get();
  expect(AgentCapabilitiesSchema.safeParse(body).error).toBeUndefined();
  expect(body.identity).toMatchObject({ name: "scout", metadata: { errand: { presence: { pollers: 0 } } } });
  expect(body.custom.errand.auto_approve).toBe(true);
  await scout.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  expect((await get()).body.custom.errand.auto_approve).toBe(false);
});

test.each([
  ["completed", { type: "RUN_FINISHED", outcome: { type: "success" } }],
  ["failed", { type: "RUN_ERROR", code: "broken", metadata: { errand: { state: "failed" } } }],
])("a delegation that is deleted as soon as it has %s ends its run by its last event", async (state, end) => {
  const { gateway, scout, lease, client } = await setup();
  const { feed, redis, shards } = gateway.broker;
  const ui = client("t");
  ui.say("go", "m");
  const { run, lease_id, delegation } = await started(ui, lease);
  // On the connection of the run, which reads the record later.
  const key = shards.ofId(delegation.id)?.delegation(delegation.id) ?? "";
  const push = ({ type }: { type: string }) => void (type === TERMINAL[state] && redis.unlink(key));
  const stop = feed.subscribe({ kind: "delegation", id: delegation.id }, { push, gap: () => {} });
  const error = { code: "broken", message: "no" };
  await scout.reply(lease_id, state === "failed" ? { state, error } : { text: "done" });
  const { last } = await run;
  stop();
  expect(last).toMatchObject(end);
  expect(ui.errand().state).toBe(state);
});
const TERMINAL: Record<string, string> = { completed: "DELEGATION_COMPLETE", failed: "DELEGATION_FAILED" };

test("a failure of the broker in the middle is the run's error, and no end of the delegation", async () => {
  const { redis, alice, lease, client } = await setup();
  const ui = client("t");
  ui.say("go", "m");
  const { run, delegation } = await started(ui, lease);
  const key = `{errand:0}:d:${delegation.id}`;
  const whole = await redis.hget(key, "message");
  await redis.hset(key, "message", "7");
  await alice.message(delegation.id, "more");
  const { last } = await run;
  expect(last).toMatchObject({
    ...{ type: "RUN_ERROR", code: "internal" },
    metadata: { errand: { delegation_id: delegation.id, category: "INTERNAL", retryable: false } },
  });
  expect(last.metadata.errand.state).toBeUndefined();
  await redis.hset(key, "message", whole ?? "");
  expect((await alice.get(delegation.id)).body.state).toBe("working");
});

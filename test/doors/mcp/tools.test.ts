/**
 * Every tool through the SDK's client, each test in both eras of the protocol. first-client.test.ts has the first
 * generation's client.
 */
import { describe, expect, test } from "vitest";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { as, startBroker } from "../../support/broker.ts";
import { type Era, mcpClient, toolOutput } from "../../support/mcp.ts";
import { until } from "../../support/until.ts";

const ERAS: readonly Era[] = ["modern", "legacy"];

/** A broker with an agent and a caller, and how each of them calls a tool in this era. */
async function setup(era: Era) {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", {
    description: "looks things up",
    skills: [{ id: "s", name: "search", description: "finds", tags: [] }],
  });
  const alice = await as(url, "caller:alice");
  const caller = await mcpClient(url, alice.token, era);
  const worker = await mcpClient(url, scout.token, era);
  type Client = typeof caller;
  const toolOf =
    (client: Client) =>
    async (name: string, args: Record<string, unknown> = {}) =>
      toolOutput(await client.callTool({ name, arguments: args }));
  return { ...broker, scout, alice, caller, worker, call: toolOf(caller), work: toolOf(worker) };
}

describe.each(ERAS)("a client of the %s era", (era) => {
  test("lists the tools of its principal, each with schemas and a description", async () => {
    const { url, caller, worker } = await setup(era);
    const names = async (client: typeof caller) => (await client.listTools()).tools.map(({ name }) => name);
    const delegating = [
      "delegate_task",
      "delegate_task_async",
      "check_task_status",
      "wait_for_results",
      "list_tasks",
      "answer_task",
      "approve_or_deny",
      "send_follow_up",
      "cancel_task",
      "list_schedules",
      "manage_schedule",
      "discover_agents",
      "broker_health",
    ];
    const working = [
      "poll_inbox",
      "report_progress",
      "request_input",
      "complete_task",
      "fail_task",
      "release_task",
      "wait_for_parts",
    ];
    expect(await names(caller)).toEqual(delegating);
    expect(await names(worker)).toEqual([...delegating, ...working]);
    const viewer = await mcpClient(url, (await as(url, "viewer:wall")).token, era);
    expect(await names(viewer)).toEqual([
      "check_task_status",
      "list_tasks",
      "list_schedules",
      "discover_agents",
      "broker_health",
    ]);
    const { tools } = await worker.listTools();
    expect(tools).toHaveLength(TOOLS.length);
    for (const tool of tools) {
      expect(tool.description?.length, tool.name).toBeGreaterThan(40);
      expect(tool.inputSchema, tool.name).toMatchObject({ type: "object" });
      expect(tool.outputSchema, tool.name).toMatchObject({ type: "object" });
      expect(tool.outputSchema?.required ?? [], tool.name).toEqual([]);
    }
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    expect(hints.check_task_status).toMatchObject({ readOnlyHint: true, destructiveHint: false });
    expect(hints.cancel_task).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  });

  test("delegates and waits, with progress", async () => {
    const { caller, scout } = await setup(era);
    const messages: string[] = [];
    const called = caller.callTool(
      { name: "delegate_task", arguments: { agent: "scout", task: "look" } },
      { onprogress: ({ message = "" }) => messages.push(message) },
    );
    // No poll waits yet; a waiting one would lease the task before any progress is sent.
    await until(() => messages.length > 0, { what: "progress" });
    const { body } = await scout.lease("scout");
    const { lease_id } = body.leases[0];
    expect(body.leases[0].request.params.message.parts).toEqual([{ text: "look" }]);
    await scout.heartbeat(lease_id, { progress: { message: "half of it", done: 1, total: 2 } });
    await until(() => messages.includes("scout: 1/2 half of it"), {
      what: "the progress",
    });
    await scout.reply(lease_id, { text: "seen" });
    const { data, text, isError } = toolOutput(await called);
    expect(isError).toBe(false);
    expect(data).toMatchObject({
      state: "completed",
      agent: "scout",
      delegator: "caller:alice",
      reply: { text: "seen" },
    });
    expect(text).toContain("seen");
    expect(text).toContain(data.delegation_id);
    expect(messages[0]).toBe("queued for scout");
  });

  test("gets the delegation_id and the next step when the wait ends", async () => {
    const { call, scout } = await setup(era);
    const { data, text } = await call("delegate_task", { agent: "scout", task: "look", wait_seconds: 0 });
    expect(data).toMatchObject({ state: "submitted", replayed: false });
    expect(data.next).toContain("check_task_status");
    expect(text).toContain(data.delegation_id);
    const waiting = call("check_task_status", { delegation_id: data.delegation_id, wait_seconds: 20 });
    const { body } = await scout.lease("scout");
    await scout.reply(body.leases[0].lease_id, { text: "late but there" });
    expect((await waiting).data).toMatchObject({ state: "completed", reply: { text: "late but there" } });
  });

  test("says that no worker polls", async () => {
    const { call } = await setup(era);
    const { data, text } = await call("delegate_task_async", { agent: "scout", task: "look" });
    expect(data).toMatchObject({ state: "submitted", presence: "offline" });
    expect(text).toContain("No worker polls for scout now");
  });

  test("gets the first call's delegation with the same idempotency key", async () => {
    const { call } = await setup(era);
    const work = { agent: "scout", task: "once", idempotency_key: "k1" };
    const first = await call("delegate_task_async", work);
    const again = await call("delegate_task_async", work);
    expect(again.data).toMatchObject({ delegation_id: first.data.delegation_id, replayed: true });
    const other = await call("delegate_task_async", { ...work, task: "twice" });
    expect(other.isError).toBe(true);
    expect(other.data.error).toMatchObject({
      code: "idempotency_conflict",
      category: "PROTOCOL",
      retryable: false,
      recovery: expect.stringContaining("idempotency_key"),
    });
    const without = await call("delegate_task_async", { agent: "scout", task: "once" });
    expect(without.data.delegation_id).not.toBe(first.data.delegation_id);
  });

  test("asks, is answered, reports, completes; the delegator checks, lists and waits for results", async () => {
    const { call, work } = await setup(era);
    const { data: sent } = await call("delegate_task_async", {
      agent: "scout",
      task: "deploy",
      context_id: "ctx-1",
    });
    const { delegation_id } = sent;
    const polled = await work("poll_inbox", { wait_seconds: 10 });
    const [first] = polled.data.tasks;
    expect(first).toMatchObject({ delegation_id, delegator: "caller:alice", task: { text: "deploy" } });
    expect(Date.parse(first.expires_at) - Date.now()).toBeGreaterThan(600_000);
    expect(polled.text).toContain(first.lease_id);

    await call("send_follow_up", { delegation_id, text: "in staging" });
    const report = await work("report_progress", { lease_id: first.lease_id, message: "on it", done: 1 });
    expect(report.data.messages).toMatchObject([{ text: "in staging", role: "user" }]);
    const { message_id } = report.data.messages[0];
    const seen = await work("report_progress", { lease_id: first.lease_id, seen: message_id });
    expect(seen.data.messages).toEqual([]);
    const status = await call("check_task_status", { delegation_id });
    expect(status.data).toMatchObject({ state: "working", progress: { message: "on it", done: 1 } });

    const asked = await work("request_input", {
      lease_id: first.lease_id,
      question: "Really?",
      options: ["approve", "deny"],
      request_id: "sure",
    });
    expect(asked.data).toMatchObject({ answered: false });
    const results = await call("wait_for_results", { cursor: sent.cursor, wait_seconds: 10 });
    const [asking] = results.data.results;
    expect(asking).toMatchObject({
      delegation_id,
      state: "input_required",
      question: {
        interrupt_id: asked.data.interrupt_id,
        requests: [{ request_id: "sure", text: "Really?", options: ["approve", "deny"] }],
      },
    });
    expect(asking.next).toContain("answer_task");
    const { interrupt_id } = asked.data;
    await call("approve_or_deny", { delegation_id, interrupt_id, decision: "approve", text: "go" });

    const back = await work("poll_inbox", { wait_seconds: 10 });
    const [second] = back.data.tasks;
    expect(second).toMatchObject({ delegation_id, attempt: 1 });
    expect(second.history.at(-1)).toMatchObject({ role: "user", text: "go", decision: "approve" });
    const again = await work("request_input", {
      lease_id: second.lease_id,
      question: "Really?",
      request_id: "sure",
    });
    expect(again.data).toMatchObject({ answered: true, answers: { sure: { decision: "approve" } } });
    const done = await work("complete_task", {
      lease_id: second.lease_id,
      text: "deployed",
      data: { build: 7 },
      artifacts: [{ name: "log.txt", text: "all fine" }],
    });
    expect(done.data).toEqual({ outcome: "matched", delegation_id, state: "completed" });

    const end = await call("wait_for_results", { cursor: results.data.cursor, wait_seconds: 10 });
    expect(end.data.results).toMatchObject([
      {
        delegation_id,
        state: "completed",
        reply: { text: "deployed", data: [{ build: 7 }] },
        artifacts: [{ name: "log.txt", text: "all fine" }],
      },
    ]);
    const full = await call("check_task_status", { delegation_id, full: true });
    expect(full.data.task).toBe("deploy");
    expect(full.data.history.map(({ text }: { text: string }) => text)).toEqual([
      "in staging",
      "Really?",
      "go",
    ]);
    const listed = await call("list_tasks", { context_id: "ctx-1", state: "completed" });
    expect(listed.data).toMatchObject({ tasks: [{ delegation_id }], next_cursor: null });
    expect((await call("list_tasks", { state: "failed" })).data.tasks).toEqual([]);
  });

  test("waits for results after the cursor of a delegation, of named ones, of a conversation, or from now on", async () => {
    const { call, scout } = await setup(era);
    const replies = new Map<string, string>();
    const delegateOne = async (more: object) => {
      const { data } = await call("delegate_task_async", { agent: "scout", task: "look", ...more });
      const [lease] = (await scout.lease("scout")).body.leases;
      replies.set(data.delegation_id, lease.lease_id);
      return data;
    };
    const finish = (id: string) => scout.reply(replies.get(id) ?? "");
    const wait = async (more: object) => {
      const { data } = await call("wait_for_results", { wait_seconds: 0, ...more });
      const found: { delegation_id: string }[] = data.results;
      return { found: found.map(({ delegation_id }) => delegation_id), cursor: String(data.cursor) };
    };
    const first = await delegateOne({ context_id: "c1" });
    const second = await delegateOne({});
    const [one, two] = [String(first.delegation_id), String(second.delegation_id)];
    await finish(one);
    expect((await wait({})).found).toEqual([]);
    expect((await wait({ cursor: first.cursor })).found).toEqual([one]);
    expect((await wait({ cursor: second.cursor })).found).toEqual([one]);
    expect((await wait({ cursor: "0" })).found).toEqual([one]);
    // What has ended is there at once; with a cursor, only what came after it.
    const named = await wait({ ids: [one, two, one] });
    expect(named.found).toEqual([one]);
    // Without a cursor, who asks again gets the same again.
    expect((await wait({ ids: [one, two, one] })).found).toEqual(named.found);
    expect((await wait({ ids: [one, two], cursor: named.cursor })).found).toEqual([]);
    expect((await wait({ ids: [two] })).found).toEqual([]);
    const waiting = call("wait_for_results", { ids: [two], wait_seconds: 20 });
    const other = await delegateOne({});
    await finish(other.delegation_id);
    await finish(two);
    expect((await waiting).data.results).toMatchObject([{ delegation_id: two, state: "completed" }]);
    const all = await wait({ cursor: first.cursor });
    expect(all.found).toEqual([one, other.delegation_id, two]);
    expect((await wait({ cursor: first.cursor, context_id: "c1" })).found).toEqual([one]);
    expect((await wait({ cursor: first.cursor, context_id: "c2" })).found).toEqual([]);
    const stranger = await call("wait_for_results", { ids: [one, `dlg_0_${"0".repeat(26)}`] });
    expect(stranger.data.error).toMatchObject({ code: "delegation_not_found" });
    const misspelt = await call("wait_for_results", { ids: ["the first"] });
    expect(misspelt.data.error).toMatchObject({ code: "delegation_not_found" });
  });

  test("answers several requests at once with answer_task", async () => {
    const { call, scout } = await setup(era);
    const { data } = await call("delegate_task_async", { agent: "scout", task: "deploy" });
    const { delegation_id } = data;
    const { body } = await scout.lease("scout");
    await scout.interrupt(body.leases[0].lease_id, {
      requests: [
        { request_id: "a", text: "Where?" },
        { request_id: "b", text: "When?" },
      ],
    });
    const { data: asking } = await call("check_task_status", { delegation_id });
    const { interrupt_id } = asking.question;
    const half = await call("answer_task", { delegation_id, interrupt_id, answers: { a: { text: "here" } } });
    expect(half.data.error).toMatchObject({
      code: "invalid_request",
      details: { issues: [{ path: "answers.b", reason: "missing" }] },
    });
    const whole = await call("answer_task", {
      delegation_id,
      interrupt_id,
      answers: { a: { text: "here" }, b: { data: { at: 5 } } },
    });
    expect(whole.data).toMatchObject({ state: "submitted" });
    const spent = await call("answer_task", { delegation_id, interrupt_id, text: "too late" });
    expect(spent.data.error).toMatchObject({ code: "interrupt_not_open", delegation_valid: true });
  });

  test("gives work back until its parts have ended, and gets them with it", async () => {
    const { url, call, work, scout } = await setup(era);
    const smith = await as(url, "agent:smith");
    await smith.agent("smith");
    const { data: all } = await call("delegate_task_async", { agent: "scout", task: "a cart" });
    const { delegation_id } = all;
    const lease = async () => (await work("poll_inbox", { wait_seconds: 10 })).data.tasks[0].lease_id;
    const first = await lease();
    const part = async (task: string) => {
      const made = await work("delegate_task_async", { agent: "smith", task, parent_id: delegation_id });
      return String(made.data.delegation_id);
    };
    const ids = [await part("wheels"), await part("axle")];
    const other = await work("delegate_task_async", { agent: "smith", task: "not of it" });
    const foreign = await work("wait_for_parts", {
      lease_id: first,
      ids: [...ids, other.data.delegation_id],
    });
    expect(foreign.data.error).toMatchObject({
      code: "not_a_child",
      details: { children: [other.data.delegation_id] },
      recovery: expect.stringContaining("parent_id"),
    });
    await scout.cancel(other.data.delegation_id);

    const parked = await work("wait_for_parts", { lease_id: first, ids });
    expect(parked.data).toMatchObject({ waiting: true, left: 2 });
    expect(parked.text).toContain("until 2 more delegations ended");
    const asked = await call("check_task_status", { delegation_id });
    expect(asked.data).toMatchObject({ state: "awaiting_children" });
    expect(asked.data.next).toContain("check_task_status");
    const lost = await work("report_progress", { lease_id: first });
    expect(lost.data.error).toMatchObject({ code: "lease_lost", details: { reason: "awaiting" } });
    const [wheels] = (await smith.lease("smith")).body.leases;
    await smith.reply(wheels.lease_id, { text: "two wheels" });
    const [axle] = (await smith.lease("smith")).body.leases;
    await smith.reply(axle.lease_id, {
      state: "failed",
      error: { code: "no_iron", message: "no iron left" },
    });

    const back = await work("poll_inbox", { wait_seconds: 10 });
    const [again] = back.data.tasks;
    expect(again).toMatchObject({
      delegation_id,
      attempt: 1,
      awaited: {
        outcome: "ended",
        parts: [
          { delegation_id: ids[0], state: "completed", reply: { text: "two wheels" } },
          { delegation_id: ids[1], state: "failed", error: { code: "no_iron" } },
        ],
      },
    });
    expect(back.text).toContain("two wheels");
    expect(back.text).toContain("no iron left");
    const last = await part("paint");
    const kept = await work("wait_for_parts", { lease_id: again.lease_id, ids: [...ids, last], until: 2 });
    expect(kept.data).toMatchObject({
      waiting: false,
      outcome: "ended",
      parts: [{ state: "completed" }, { state: "failed" }, { delegation_id: last, state: "submitted" }],
    });
    expect(kept.text).toContain(`Delegation ${last}: submitted.`);
    const done = await work("complete_task", { lease_id: again.lease_id, text: "a cart" });
    expect(done.data).toMatchObject({ state: "completed" });
  });

  test("fails, rejects, releases and cancels", async () => {
    const { call, work } = await setup(era);
    const lease = async () => {
      const { data } = await work("poll_inbox", { wait_seconds: 10 });
      return data.tasks[0].lease_id;
    };
    const { data: one } = await call("delegate_task_async", { agent: "scout", task: "one" });
    const first = await lease();
    const back = await work("release_task", { lease_id: first, reason: "not now" });
    expect(back.data).toEqual({ delegation_id: one.delegation_id });
    await work("fail_task", { lease_id: await lease(), message: "no such file", code: "no_file" });
    const failed = await call("check_task_status", { delegation_id: one.delegation_id });
    expect(failed.isError).toBe(false);
    expect(failed.data).toMatchObject({
      state: "failed",
      error: {
        category: "UPSTREAM",
        code: "no_file",
        message: "no such file",
        retryable: false,
        delegation_valid: false,
        recovery: expect.stringContaining("delegate_task"),
      },
    });

    // The agent's code is one of the broker's, with another meaning.
    const { data: full } = await call("delegate_task_async", { agent: "scout", task: "full" });
    await work("fail_task", { lease_id: await lease(), message: "the disk is full", code: "rate_limited" });
    const { data: limited } = await call("check_task_status", { delegation_id: full.delegation_id });
    expect(limited.error).toMatchObject({
      code: "rate_limited",
      recovery: expect.stringContaining("The message comes from the agent."),
    });

    const waiting = call("delegate_task", { agent: "scout", task: "two" });
    await work("fail_task", { lease_id: await lease(), message: "not mine", rejected: true });
    const rejected = await waiting;
    expect(rejected.isError).toBe(true);
    expect(rejected.data).toMatchObject({
      state: "rejected",
      error: { code: "rejected", message: "not mine" },
    });

    const { data: three } = await call("delegate_task_async", { agent: "scout", task: "three" });
    const held = await lease();
    const beating = work("report_progress", { lease_id: held, wait_seconds: 20 });
    const canceled = await call("cancel_task", { delegation_id: three.delegation_id, reason: "enough" });
    expect(canceled.data).toMatchObject({ state: "canceled", error: { code: "canceled" } });
    const lost = await beating;
    expect(lost.isError).toBe(true);
    expect(lost.data.error).toMatchObject({
      code: "lease_lost",
      details: { reason: "canceled" },
      recovery: expect.stringContaining("poll_inbox"),
    });
    const late = await work("complete_task", { lease_id: held, text: "done" });
    expect(late.data.error).toMatchObject({ code: "lease_lost", delegation_valid: false });
  });

  test("discovers agents and checks the broker", async () => {
    const { call, work } = await setup(era);
    const polling = work("poll_inbox", { wait_seconds: 30 });
    const found = await until(async () => {
      const { data, text } = await call("discover_agents", { query: "SEARCH looks" });
      return data.agents[0]?.presence.pollers === 1 && { ...data, text };
    });
    const { last_seen_at } = found.agents[0].presence;
    expect(found.text).toContain(
      `scout (online, 1 polling, last seen ${last_seen_at}, 0 waiting, 0 working)`,
    );
    expect(Date.parse(last_seen_at)).toBeGreaterThan(0);
    expect(found.agents).toMatchObject([
      { name: "scout", description: "looks things up", skills: [{ id: "s" }], paused: false, waiting: 0 },
    ]);
    expect((await call("discover_agents", { query: "nothing like it" })).data.agents).toEqual([]);
    expect((await call("broker_health")).data).toMatchObject({ principal: "caller:alice", redis: null });
    await call("delegate_task_async", { agent: "scout", task: "end the poll" });
    expect((await polling).data.tasks).toHaveLength(1);
  });

  test("gets an error that names wrong arguments and says whether to retry", async () => {
    const { call, caller } = await setup(era);
    const wrong = await call("delegate_task", { agent: "No Such", tsk: "look", wait_seconds: 600 });
    expect(wrong.isError).toBe(true);
    expect(wrong.data.error).toMatchObject({
      code: "invalid_request",
      category: "PROTOCOL",
      retryable: false,
    });
    const paths = wrong.data.error.details.issues.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(expect.arrayContaining(["agent", "task", "wait_seconds", "tsk"]));
    expect(wrong.text).toContain("Do not retry the same call");
    // An id of a wrong form is one that does not exist.
    const noSuch = await call("check_task_status", { delegation_id: "the first one" });
    expect(noSuch.data.error).toMatchObject({ code: "delegation_not_found" });
    expect(noSuch.text).toContain("There is no delegation 'the first one'.");
    const unknown = await call("delegate_task", { agent: "nobody", task: "look" });
    expect(unknown.data.error).toMatchObject({
      code: "agent_unknown",
      category: "CONFIG",
      recovery: expect.stringContaining("discover_agents"),
    });
    const forbidden = await call("poll_inbox", { agent: "scout", wait_seconds: 0 });
    expect(forbidden.data.error).toMatchObject({ code: "forbidden", category: "AUTH" });
    await expect(caller.callTool({ name: "no_such_tool", arguments: {} })).rejects.toMatchObject({
      code: -32602,
      data: { code: "invalid_request", retryable: false },
    });
  });
});

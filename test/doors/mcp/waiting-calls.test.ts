/** What ends a waiting call, and what that does to the work; forms within a call; two agents that only use tools. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import {
  callModern,
  type Era,
  MODERN,
  mcpClient,
  requestModern,
  TASKS_CAPABILITY,
  toolOutput,
} from "../../support/mcp.ts";
import { openStream } from "../../support/sse.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

const ERAS: readonly Era[] = ["modern", "legacy"];

const ALICE = { text: "caller:alice" };

async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const sent = () =>
    until(async () => (await alice.call("GET", "/v1/delegations")).body.delegations[0]?.id, { what: "it" });
  const stateOf = async (id: string) => (await alice.get(id)).body.state;
  return { ...broker, scout, alice, sent, stateOf };
}

describe.each(ERAS)("in the %s era", (era) => {
  const WORK = { agent: "scout", task: "take your time" };

  test("a canceled call ends the wait, not the delegation", async () => {
    const { url, alice, scout, sent, stateOf, gateway } = await setup();
    const client = await mcpClient(url, alice.token, era);
    const leave = new AbortController();
    const called = client.callTool({ name: "delegate_task", arguments: WORK }, { signal: leave.signal });
    const id = await sent();
    leave.abort();
    await expect(called).rejects.toThrow();
    // It no longer counts against the quota.
    await until(() => gateway.broker.quotas.inUse(ALICE, "polls") === 0, { what: "the end of the wait" });
    expect(await stateOf(id)).toBe("submitted");
    const { body } = await scout.lease("scout");
    expect((await scout.reply(body.leases[0].lease_id)).body.outcome).toBe("matched");
    const after = toolOutput(
      await client.callTool({ name: "check_task_status", arguments: { delegation_id: id } }),
    );
    expect(after.data).toMatchObject({ state: "completed", reply: { text: "done" } });
  });

  test("unless cancel_on_disconnect is set", async () => {
    const { url, alice, sent, stateOf } = await setup();
    const client = await mcpClient(url, alice.token, era);
    const leave = new AbortController();
    const called = client.callTool(
      { name: "delegate_task", arguments: { ...WORK, cancel_on_disconnect: true } },
      { signal: leave.signal },
    );
    const id = await sent();
    leave.abort();
    await expect(called).rejects.toThrow();
    await until(async () => (await stateOf(id)) === "canceled", { what: "the cancel" });
  });

  test("a revoked token ends the wait", async () => {
    const { url, alice, scout, sent, gateway, stateOf } = await setup();
    const second = await as(url, "caller:alice");
    const client = await mcpClient(url, second.token, era);
    const called = client.callTool({ name: "delegate_task", arguments: WORK });
    // It gets the accepted delegation, or its session has ended.
    const ended = called.then(
      () => "ended",
      () => "ended",
    );
    const id = await sent();
    const poller = await as(url, "agent:scout");
    const worker = await mcpClient(url, poller.token, era);
    await gateway.broker.tokens.revoke(second.tokenId);
    expect(await ended).toBe("ended");
    expect(await stateOf(id)).toBe("submitted");
    expect(gateway.broker.quotas.inUse(ALICE, "polls")).toBe(0);
    await expect(client.listTools()).rejects.toThrow();
    // A poll with a revoked token gets no work.
    const { body } = await scout.lease("scout");
    const polling = worker
      .callTool({ name: "poll_inbox", arguments: { wait_seconds: 50 } })
      .then((result) => JSON.stringify(result), String);
    await until(() => gateway.broker.handoff.polls.count("scout") === 1);
    await gateway.broker.tokens.revoke(poller.tokenId);
    expect(await polling).not.toContain("lease_id");
    await scout.reply(body.leases[0].lease_id);
    expect(alice.token).not.toBe(second.token);
  });

  test("a stopping gateway answers waiting calls and stops soon", async () => {
    const { url, alice, scout, gateway, sent } = await setup();
    const client = await mcpClient(url, alice.token, era);
    const worker = await mcpClient(url, scout.token, era);
    const called = client.callTool({ name: "delegate_task", arguments: WORK });
    const id = await sent();
    const { body } = await scout.lease("scout");
    const polling = worker.callTool({ name: "poll_inbox", arguments: { wait_seconds: 50 } });
    const gathering = client.callTool({ name: "wait_for_results", arguments: { wait_seconds: 50 } });
    await until(
      () =>
        gateway.broker.handoff.polls.count("scout") === 1 &&
        gateway.broker.quotas.inUse(ALICE, "polls") === 2,
    );
    const withStalls = allowStalls();
    const from = performance.now();
    await gateway.close();
    expect(performance.now() - from).toBeLessThan(withStalls(8_000));
    expect(toolOutput(await called).data).toMatchObject({ delegation_id: id });
    expect(toolOutput(await polling).data).toEqual({ tasks: [] });
    expect(toolOutput(await gathering).data).toMatchObject({ results: [] });
    expect(body.leases).toHaveLength(1);
  });

  test("work goes only to a call that is still open", async () => {
    const { url, alice, scout, gateway, stateOf } = await setup();
    const worker = await mcpClient(url, scout.token, era);
    const leave = new AbortController();
    const polling = worker.callTool(
      { name: "poll_inbox", arguments: { wait_seconds: 50 } },
      { signal: leave.signal },
    );
    await until(() => gateway.broker.handoff.polls.count("scout") === 1);
    leave.abort();
    await expect(polling).rejects.toThrow();
    await until(() => gateway.broker.handoff.polls.count("scout") === 0, { what: "the end of the poll" });
    const { body } = await alice.delegate("scout");
    expect(await stateOf(body.id)).toBe("submitted");
    const taken = await scout.lease("scout");
    expect(taken.body.leases).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
  });

  test("each principal's waits are limited", async () => {
    const broker = await startBroker({ quotas: { polls: 1 } });
    const { url } = broker;
    const scout = await as(url, "agent:scout");
    await scout.agent("scout");
    const alice = await as(url, "caller:alice");
    const client = await mcpClient(url, alice.token, era);
    const first = client.callTool({ name: "delegate_task", arguments: WORK });
    await until(() => broker.gateway.broker.quotas.inUse(ALICE, "polls") === 1);
    const second = toolOutput(await client.callTool({ name: "delegate_task", arguments: WORK }));
    expect(second.data.error).toMatchObject({
      code: "quota_exceeded",
      category: "TRANSPORT",
      retryable: true,
      retry_after_seconds: 5,
    });
    const { body } = await scout.lease("scout");
    await scout.reply(body.leases[0].lease_id);
    expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
    expect(toolOutput(await first).data).toMatchObject({ state: "completed" });
  });

  test("two agents with only tools: asked, answered and completed, visible in the events", async () => {
    const { url, scout, alice } = await setup();
    const caller = await mcpClient(url, alice.token, era);
    const worker = await mcpClient(url, scout.token, era);
    const stream = await openStream(`${url}/v1/events?after=0`);
    onTestFinished(() => stream.close());
    const call = async (client: typeof caller, name: string, args: Record<string, unknown>) =>
      toolOutput(await client.callTool({ name, arguments: args })).data;

    const working = (async () => {
      const [first] = (await call(worker, "poll_inbox", { wait_seconds: 30 })).tasks;
      await call(worker, "report_progress", { lease_id: first.lease_id, message: "reading" });
      await call(worker, "request_input", { lease_id: first.lease_id, question: "French or English?" });
      const [second] = (await call(worker, "poll_inbox", { wait_seconds: 30 })).tasks;
      const text = `Bonjour, as you said: ${second.history.at(-1).text}`;
      return call(worker, "complete_task", { lease_id: second.lease_id, text });
    })();
    const asking = await call(caller, "delegate_task", { agent: "scout", task: "greet", wait_seconds: 30 });
    expect(asking).toMatchObject({
      state: "input_required",
      question: { requests: [{ text: "French or English?" }] },
    });
    const { delegation_id, question } = asking;
    await call(caller, "answer_task", {
      delegation_id,
      interrupt_id: question.interrupt_id,
      text: "French",
    });
    const end = await call(caller, "check_task_status", { delegation_id, wait_seconds: 30 });
    expect(end).toMatchObject({ state: "completed", reply: { text: "Bonjour, as you said: French" } });
    expect(await working).toMatchObject({ outcome: "matched" });
    await stream.has("DELEGATION_COMPLETE");
    expect(stream.events.map(({ event, data }) => data.status ?? event)).toEqual([
      "queued",
      "leased",
      "progress",
      "interrupted",
      "answered",
      "leased",
      "DELEGATION_COMPLETE",
    ]);
  });
});

test("a subscription to notifications ends at once", async () => {
  const { url, alice } = await setup();
  const notifications = { toolsListChanged: true, taskIds: ["dlg_0_0"] };
  const { notes, body } = await requestModern(
    url,
    alice.token,
    "subscriptions/listen",
    { notifications },
    { capabilities: TASKS_CAPABILITY },
  );
  expect(notes).toMatchObject([{ params: { notifications: {} } }]);
  expect(body.result).toMatchObject({ resultType: "complete" });
});

test("the request's trace continues with the work", async () => {
  const { url, alice, scout } = await setup();
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const args = { agent: "scout", task: "look" };
  await callModern(url, alice.token, "delegate_task_async", args, { headers: { traceparent } });
  const other = traceparent.replace("b7ad", "beef");
  await callModern(url, alice.token, "delegate_task_async", args, { meta: { traceparent: other } });
  const { body } = await scout.lease("scout", { max: 2 });
  expect(body.leases.map((lease: { traceparent: string }) => lease.traceparent)).toEqual([
    traceparent,
    other,
  ]);
});

describe("a client of 2026-07-28 with forms and without tasks", () => {
  test("is asked within the call, which continues with the answer", async () => {
    const { url, alice, scout } = await setup();
    const client = new Client(
      { name: "forms", version: "1" },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: MODERN } } },
    );
    const asked: unknown[] = [];
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: { answer: "blue" } };
    });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${alice.token}` } },
      }),
    );
    onTestFinished(() => client.close());
    const called = client.callTool({ name: "delegate_task", arguments: { agent: "scout", task: "paint" } });
    const first = await scout.lease("scout");
    await scout.interrupt(first.body.leases[0].lease_id, { text: "Which colour?" });
    const second = await scout.lease("scout", { wait_seconds: 20 });
    expect(second.body.leases[0].request.params.message.parts).toEqual([{ text: "blue" }]);
    await scout.reply(second.body.leases[0].lease_id, { text: "painted blue" });
    expect(toolOutput(await called).data).toMatchObject({
      state: "completed",
      reply: { text: "painted blue" },
    });
    expect(asked).toEqual(["Which colour?"]);
    expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  });

  const forms = { capabilities: { elicitation: {} } };
  async function asking(more: Record<string, unknown> = {}) {
    const here = await setup();
    const { url, alice, scout } = here;
    const args = { agent: "scout", task: "paint", wait_seconds: 20 };
    const called = callModern(url, alice.token, "delegate_task", args, forms);
    const { body } = await scout.lease("scout");
    await scout.interrupt(body.leases[0].lease_id, {
      text: "Which colour?",
      request_id: "colour",
      ...more,
    });
    const { result } = (await called).body;
    expect(result.resultType).toBe("input_required");
    const [key = ""] = Object.keys(result.inputRequests);
    const again = (response: unknown, requestState: unknown = result.requestState, token = alice.token) =>
      callModern(url, token, "delegate_task", args, {
        ...forms,
        more: { requestState, inputResponses: { [key]: response } },
      });
    return { ...here, result, key, again };
  }

  test("gets its call answered with the open question when the form is dismissed", async () => {
    const { again, alice, result } = await asking();
    const { data, isError } = toolOutput((await again({ action: "cancel" })).body.result);
    expect(isError).toBe(false);
    expect(data).toMatchObject({
      state: "input_required",
      question: { requests: [{ request_id: "colour" }] },
    });
    expect((await alice.get(result.requestState)).body.state).toBe("input_required");
  });

  test("gets the form again, with the reason, when its answer does not fit", async () => {
    const nested = { properties: { rgb: { type: "array", items: { type: "integer" } } } };
    const { again, alice, result, key } = await asking({ schema: nested });
    for (const [json, reason] of [
      ['{"rgb": ["red"]}', "answers.colour.data.rgb.0: must be a whole number"],
      ["{", "json: is not JSON"],
    ] as const) {
      const refused = (await again({ action: "accept", content: { json } })).body.result;
      expect(refused.resultType).toBe("input_required");
      expect(refused.inputRequests[key].params.message).toContain(`${reason}\n\nWhich colour?`);
    }
    // A denial does not answer a question for data.
    const declined = toolOutput((await again({ action: "decline" })).body.result);
    expect(declined.data).toMatchObject({ state: "input_required" });
    expect((await alice.get(result.requestState)).body.history).toHaveLength(1);
  });

  test("continues to wait when another answer came first", async () => {
    const { again, alice, scout, result } = await asking();
    const { body } = await alice.get(result.requestState);
    await alice.answer(body.id, body.interrupt.id, { text: "red" });
    const called = again({ action: "accept", content: { answer: "blue" } });
    const second = await scout.lease("scout");
    expect(second.body.leases[0].request.params.message.parts).toEqual([{ text: "red" }]);
    await scout.reply(second.body.leases[0].lease_id, { text: "painted" });
    expect(toolOutput((await called).body.result).data).toMatchObject({ state: "completed" });
  });

  test("continues to wait when another answer comes while it answers", async () => {
    const { again, alice, scout, result } = await asking();
    const colours = Array.from({ length: 12 }, (_, i) => `colour ${i}`);
    // All calls see the open question; one of them answers it.
    const calls = colours.map((answer) => again({ action: "accept", content: { answer } }));
    const { body } = await scout.lease("scout", { wait_seconds: 20 });
    const [{ lease_id, request }] = body.leases;
    expect(colours).toContain(request.params.message.parts[0].text);
    await scout.reply(lease_id, { text: "painted" });
    for (const { body } of await Promise.all(calls)) {
      expect(toolOutput(body.result)).toMatchObject({ isError: false, data: { state: "completed" } });
    }
    expect((await alice.get(result.requestState)).body.history).toHaveLength(2);
  });

  test("gains nothing from a forged requestState", async () => {
    const { again, url, alice, result } = await asking();
    const bob = await as(url, "caller:bob");
    const yes = { action: "accept", content: { answer: "blue" } };
    const foreign = toolOutput((await again(yes, result.requestState, bob.token)).body.result);
    expect(foreign.data.error).toMatchObject({ code: "delegation_not_found" });
    const { id } = (await alice.delegate("scout")).body;
    const quiet = toolOutput((await again(yes, id, bob.token)).body.result);
    expect(quiet.data.error).toMatchObject({ code: "delegation_not_found" });
    const nonsense = toolOutput((await again(yes, "nonsense")).body.result);
    expect(nonsense.data.error).toMatchObject({ code: "invalid_request" });
    expect((await bob.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
  });
});

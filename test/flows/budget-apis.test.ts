/** A budget through A2A, AG-UI and MCP: on the way in, as it is shown, and when the broker asks for a larger one. */
import { expect, test } from "vitest";
import { BINDINGS, jsonMessage, rawCalls, sdkClient, sdkMessage, sendParams } from "../doors/a2a/support.ts";
import { agUi } from "../doors/agui/support.ts";
import { as, startBroker } from "../support/broker.ts";
import { type Era, mcpClient, toolOutput } from "../support/mcp.ts";

const BUDGET = { tokens: 100, cost: 2, currency: "USD" };
const SHOWN = { limit: BUDGET, used: { tokens: 150, attempts: 1, cost: 0, currency: "USD" } };

async function setup() {
  const broker = await startBroker();
  const { url, clock, gateway } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const leased = async () =>
    (await scout.lease("scout", { wait_seconds: 30, lease_seconds: 3_600 })).body.leases[0];
  const sweepAfter = async (ms: number) => {
    clock.offset_ms += ms;
    await gateway.sweep.tick();
  };
  /** Works, and uses more than the budget until the broker asks. */
  const overspend = async (): Promise<string> => {
    const { lease_id, delegation } = await leased();
    expect(delegation.budget).toMatchObject({ limit: BUDGET, on_budget: "ask" });
    await scout.heartbeat(lease_id, { usage: { input_tokens: 150 } });
    await sweepAfter(0);
    await sweepAfter(31_000);
    return delegation.id;
  };
  const finish = async () => scout.reply((await leased()).lease_id, { text: "counted" });
  return { ...broker, scout, alice, leased, overspend, finish };
}

/** A2A's name of the budget. */
const IN_A2A = { ...SHOWN, onBudget: "ask", exceeded: true };

test.each(BINDINGS)("%s: the metadata of a send has the budget", async (binding) => {
  const { url, alice, leased } = await setup();
  const client = await sdkClient(url, "scout", alice.token, binding);
  const metadata = { budget: BUDGET, on_budget: "ask", tone: "dry" };
  const message = sendParams(sdkMessage("count"), { returnImmediately: true });
  await client.sendMessage({ ...message, metadata });
  const { delegation } = await leased();
  expect(delegation).toMatchObject({
    metadata: { tone: "dry" },
    budget: { limit: BUDGET, on_budget: "ask" },
  });
  expect(delegation.metadata).not.toHaveProperty("budget");
});

test("A2A: a message with data raises the budget, one with deny ends the task", async () => {
  const { url, alice, overspend, finish } = await setup();
  const { rpc } = rawCalls(url, alice.token);
  const metadata = { budget: BUDGET, on_budget: "ask" };
  const begin = async () => {
    const configuration = { returnImmediately: true };
    await rpc("SendMessage", { message: jsonMessage("count"), metadata, configuration });
    const id = await overspend();
    return (await rpc("GetTask", { id })).body.result;
  };
  const send = async (task: { id: string }, message: object) => {
    const more = { taskId: task.id, parts: [{ text: "" }], ...message };
    const params = { message: jsonMessage("", more), configuration: { returnImmediately: true } };
    return (await rpc("SendMessage", params)).body;
  };
  const asking = await begin();
  expect(asking.status).toMatchObject({
    state: "TASK_STATE_INPUT_REQUIRED",
    message: {
      parts: [{ text: expect.stringContaining("tokens 150 of 100") }],
      metadata: { interruptId: asking.metadata.errand.interrupt.id, requestId: "budget" },
    },
  });
  expect(asking.metadata.errand).toMatchObject({
    budget: IN_A2A,
    interrupt: { requests: [{ action: { name: "raise_budget", arguments: { tokens: 200 } }, edit: true }] },
  });
  const approve = { metadata: { decision: "approve" } };
  const low = await send(asking, { ...approve, parts: [{ data: { tokens: 150 } }] });
  expect(JSON.stringify(low.error)).toContain("data.tokens");
  const raised = await send(asking, { ...approve, parts: [{ data: { tokens: 500 } }] });
  expect(raised.result.task).toMatchObject({
    status: { state: "TASK_STATE_SUBMITTED" },
    metadata: { errand: { budget: { limit: { ...BUDGET, tokens: 500 } } } },
  });
  await finish();

  const other = await begin();
  const denied = await send(other, { parts: [{ data: {} }], metadata: { decision: "deny" } });
  expect(denied.error).toBeDefined();
  const ended = await send(other, { parts: [{ text: "too dear" }], metadata: { decision: "deny" } });
  expect(ended.result.task).toMatchObject({
    status: { state: "TASK_STATE_FAILED" },
    metadata: { errand: { error: { code: "budget_exceeded" } } },
  });
});

test("A2A: a budget that makes no sense is refused with its path", async () => {
  const { url, alice } = await setup();
  const { rpc } = rawCalls(url, alice.token);
  for (const [metadata, path] of [
    [{ budget: { tokens: 0 } }, "metadata.budget.tokens"],
    [{ budget: "much" }, "metadata.budget"],
    [{ on_budget: "ask" }, "metadata.on_budget"],
    [{ auto_approve: 7 }, "metadata.auto_approve"],
  ]) {
    const { error } = (await rpc("SendMessage", { message: jsonMessage("count"), metadata })).body;
    expect([error.code, JSON.stringify(error)]).toEqual([-32602, expect.stringContaining(`"${path}"`)]);
  }
});

test("AG-UI: a run has a budget, shows it, and its next run raises it", async () => {
  const { url, alice, overspend, finish } = await setup();
  const ui = agUi(url, alice.token, "t");
  ui.say("count");
  const settings = { budget: BUDGET, on_budget: "ask" as const, children_on_failure: "keep" as const };
  const running = ui.run({ forwardedProps: { errand: settings } });
  await overspend();
  const { last } = await running;
  const [asked] = last.outcome.interrupts;
  expect(asked).toMatchObject({
    reason: "input_required",
    message: expect.stringContaining("tokens 150 of 100"),
    metadata: { errand: { requests: [{ action: { name: "raise_budget", arguments: { tokens: 200 } } }] } },
  });
  expect(ui.errand().budget).toMatchObject({ ...SHOWN, exceeded: true });
  const payload = { decision: "approve", data: { tokens: 500 } };
  const resumed = ui.run({ resume: [{ interruptId: asked.id, status: "resolved", payload }] });
  await finish();
  expect((await resumed).last).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
  expect(ui.errand().budget.limit).toEqual({ ...BUDGET, tokens: 500 });
});

test("AG-UI: an abandoned budget question denies it", async () => {
  const { url, alice, overspend } = await setup();
  const ui = agUi(url, alice.token, "t");
  ui.say("count");
  const running = ui.run({ forwardedProps: { errand: { budget: BUDGET, on_budget: "ask" } } });
  await overspend();
  const [asked] = (await running).last.outcome.interrupts;
  const { last } = await ui.run({ resume: [{ interruptId: asked.id, status: "cancelled" }] });
  expect(last).toMatchObject({ type: "RUN_ERROR", code: "budget_exceeded" });
});

const ERAS: readonly Era[] = ["modern", "legacy"];

test.each(ERAS)("MCP, %s: the tools take a budget, show it, and raise it", async (era) => {
  const { url, alice, overspend, finish } = await setup();
  const client = await mcpClient(url, alice.token, era);
  const call = async (name: string, args: Record<string, unknown>) =>
    toolOutput(await client.callTool({ name, arguments: args }));
  const task = { agent: "scout", task: "count", budget: BUDGET, on_budget: "ask" };
  const asked = async () => {
    const { data } = await call("delegate_task_async", task);
    expect(data.budget).toMatchObject({ limit: BUDGET, used: { tokens: 0 } });
    const delegation_id = await overspend();
    const shown = await call("check_task_status", { delegation_id });
    expect(shown.data.budget).toMatchObject({ ...SHOWN, exceeded: true });
    expect(shown.data.next).toMatch(/^The broker asks for a larger budget: call approve_or_deny/);
    expect(shown.text).toContain('Action: raise_budget {"tokens":200} (editable)');
    return { delegation_id, interrupt_id: shown.data.question.interrupt_id };
  };
  const edited = await asked();
  const low = await call("answer_task", { ...edited, decision: "approve", data: { tokens: 150 } });
  expect([low.isError, low.data.error.code]).toEqual([true, "invalid_request"]);
  const raised = await call("answer_task", { ...edited, decision: "approve", data: { tokens: 500 } });
  expect(raised.data).toMatchObject({ state: "submitted", budget: { limit: { tokens: 500 } } });
  await finish();

  const proposed = await call("approve_or_deny", { ...(await asked()), decision: "approve" });
  expect(proposed.data.budget.limit).toEqual({ ...BUDGET, tokens: 200 });
  await finish();

  const denied = await call("approve_or_deny", { ...(await asked()), decision: "deny" });
  expect(denied.data).toMatchObject({
    state: "failed",
    error: { code: "budget_exceeded", recovery: expect.stringContaining("Call delegate_task again") },
  });
});

test("MCP: a form raises the budget", async () => {
  const { url, alice, overspend, finish } = await setup();
  const client = await mcpClient(url, alice.token, "modern", { capabilities: { elicitation: {} } });
  const forms: string[] = [];
  client.setRequestHandler("elicitation/create", ({ params }) => {
    forms.push(params.message);
    return { action: "accept", content: { decision: "approve", arguments: '{"tokens": 500}' } };
  });
  const args = { agent: "scout", task: "count", budget: BUDGET, on_budget: "ask", wait_seconds: 40 };
  const calling = client.callTool({ name: "delegate_task", arguments: args });
  await overspend();
  await finish();
  const { data } = toolOutput(await calling);
  expect(data).toMatchObject({ state: "completed", budget: { limit: { tokens: 500 } } });
  expect(forms).toEqual([expect.stringContaining("tokens 150 of 100")]);
});

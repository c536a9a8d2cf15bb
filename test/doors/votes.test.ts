/** Approvals of several people by clients of the protocols: a vote does not end the question, and asks nobody again. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { mcpClient, requestModern, TASKS_CAPABILITY, toolOutput } from "../support/mcp.ts";
import { until } from "../support/until.ts";
import { asTask, sdkClient, sdkMessage, sendParams } from "./a2a/support.ts";
import { agUi, started } from "./agui/support.ts";

const DEPLOY = {
  ...{ kind: "input", request_id: "q", text: "May I?", edit: true },
  action: { name: "deploy", arguments: { to: "prod" } },
};
const APPROVE = { decision: "approve" };

async function setup(votes: Record<string, unknown> = { needed: 2 }) {
  const broker = await startBroker();
  const { url } = broker;
  const api = client(url);
  await api.agent("scout", { votes });
  const scout = await as(url, "agent:scout");
  const alice = await as(url, "caller:alice");
  const ann = await as(url, "approver:ann");
  const lease = async () => (await scout.lease("scout", { wait_seconds: 30 })).body.leases[0];
  /** The agent asks about the work that it gets next. */
  const ask = async () => {
    const { lease_id, delegation } = await lease();
    const { body } = await scout.interrupt(lease_id, DEPLOY);
    return { id: String(delegation.id), interrupt_id: String(body.interrupt_id) };
  };
  return { ...broker, api, scout, alice, ann, lease, ask };
}

test("MCP: a form is shown once to each person, and the call returns while others must approve", async () => {
  const { url, alice, ann, scout, lease, ask } = await setup();
  const forms: string[] = [];
  const mcp = await mcpClient(url, alice.token, "modern", { capabilities: { elicitation: { form: {} } } });
  mcp.setRequestHandler("elicitation/create", ({ params }) => {
    forms.push(String(params.message));
    return { action: "accept", content: APPROVE };
  });
  const args = { agent: "scout", task: "go", wait_seconds: 45 };
  const called = mcp.callTool({ name: "delegate_task", arguments: args });
  const { id, interrupt_id } = await ask();
  const shown = toolOutput(await called);
  expect(forms).toHaveLength(1);
  expect(forms[0]).toContain("0 of 2 approvals");
  expect(shown.data).toMatchObject({
    state: "input_required",
    question: { interrupt_id, votes: { needed: 2, given: ["caller:alice"] } },
  });
  expect(shown.text).toContain("1 of 2 approvals: caller:alice");
  // As a task, it is at work for who has approved.
  const taskOf = async (token: string) => {
    const options = { capabilities: TASKS_CAPABILITY };
    return (await requestModern(url, token, "tasks/get", { taskId: id }, options)).body.result;
  };
  const own = await taskOf(alice.token);
  expect([own.status, own.inputRequests]).toEqual(["working", undefined]);
  expect(own.statusMessage).toContain("1 of 2 approvals");
  const others = await taskOf(ann.token);
  expect([others.status, Object.keys(others.inputRequests)]).toEqual([
    "input_required",
    [`${interrupt_id}:q`],
  ]);
  // An edit voids it, so it is asked again, and told what the other one approved.
  await ann.answer(id, interrupt_id, { ...APPROVE, data: { to: "staging" } });
  const again = await taskOf(alice.token);
  expect(again.status).toBe("input_required");
  expect(JSON.stringify(again.inputRequests)).toContain("staging");
  await alice.answer(id, interrupt_id, { ...APPROVE, data: { to: "staging" } });
  await scout.reply((await lease()).lease_id);
});

test("MCP: an approval that does not count is said in the next form, where it can be denied", async () => {
  const { url, alice, api, ask } = await setup({ not_by_delegator: true });
  const forms: string[] = [];
  const mcp = await mcpClient(url, alice.token, "modern", { capabilities: { elicitation: { form: {} } } });
  mcp.setRequestHandler("elicitation/create", ({ params }) => {
    forms.push(String(params.message));
    return { action: "accept", content: { decision: forms.length === 1 ? "approve" : "deny" } };
  });
  const called = mcp.callTool({
    name: "delegate_task",
    arguments: { agent: "scout", task: "go", wait_seconds: 45 },
  });
  const { id } = await ask();
  await until(async () => (await api.get(id)).body.interrupt === null, { what: "the denial" });
  expect(forms[1]).toContain("Somebody else than the delegator must approve");
  await api.call("POST", `/v1/delegations/${id}/cancel`, {});
  await called;
});

test.each(["sendMessage", "sendMessageStream"] as const)(
  "A2A: %s with a vote returns the task, which asks still",
  async (way) => {
    const { url, alice, ann, lease, scout, ask } = await setup();
    const sdk = await sdkClient(url, "scout", alice.token);
    const begun = asTask(await sdk.sendMessage(sendParams(sdkMessage("go"), { returnImmediately: true })));
    const { id, interrupt_id } = await ask();
    expect(begun.id).toBe(id);
    const params = sendParams(sdkMessage("fine", { taskId: id, metadata: APPROVE }));
    let last: unknown;
    if (way === "sendMessage") last = await sdk.sendMessage(params);
    else for await (const update of sdk.sendMessageStream(params)) last = update;
    expect(JSON.stringify(last)).toContain("caller:alice");
    expect((await alice.get(id)).body.interrupt.votes.given).toMatchObject([
      { by: "caller:alice", via: "a2a" },
    ]);
    await ann.answer(id, interrupt_id, APPROVE);
    await scout.reply((await lease()).lease_id);
  },
);

test("AG-UI: a run with a vote ends with the same interrupt, and shows the vote", async () => {
  const { url, alice, ann, scout, lease, ask } = await setup();
  const ui = agUi(url, alice.token, "t");
  ui.say("go", "m");
  const run = ui.run();
  const { id, interrupt_id } = await ask();
  const { last } = await run;
  expect(last.outcome.interrupts[0].id).toBe(interrupt_id);
  const resume = [{ interruptId: interrupt_id, status: "resolved" as const, payload: APPROVE }];
  const voted = await ui.run({ resume });
  expect([voted.error, voted.last.outcome.interrupts[0].id]).toEqual([undefined, interrupt_id]);
  expect(ui.errand().interrupt.votes).toMatchObject({ needed: 2, given: [{ by: "caller:alice" }] });
  expect(ui.messages().at(-1)).toMatchObject({ role: "user", content: "approve" });
  await ann.answer(id, interrupt_id, APPROVE);
  const { run: again, lease_id } = await started(agUi(url, alice.token, "t"), lease, {
    forwardedProps: { errand: { attach: true, delegation_id: id } },
  });
  await scout.reply(lease_id, { text: "done" });
  expect((await again).error).toBeUndefined();
});

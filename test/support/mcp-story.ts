/** A story that calls every tool successfully, with any client. */
import { expect } from "vitest";
import { TOOLS } from "../../src/doors/mcp/tools/tools.ts";

/** Calls a tool; returns the data of its output. */
export type CallTool = (
  name: string,
  args: Record<string, unknown>,
) => Promise<ReturnType<typeof JSON.parse>>;

/** `call` is a caller's client, `work` agent:scout's. The agent exists and has no work. */
export async function callEveryTool(call: CallTool, work: CallTool): Promise<void> {
  const called = new Set<string>();
  const counted =
    (tool: CallTool): CallTool =>
    (name, args) => {
      called.add(name);
      return tool(name, args);
    };
  await runStory(counted(call), counted(work));
  expect([...called].sort()).toEqual(TOOLS.map(({ name }) => name).sort());
}

async function runStory(call: CallTool, work: CallTool): Promise<void> {
  expect((await call("discover_agents", {})).agents).toMatchObject([{ name: "scout" }]);
  expect(await call("broker_health", {})).toMatchObject({ principal: expect.stringMatching(/^caller:/) });
  // With a client that supports tasks this becomes a task, polled until it is finished.
  const delegating = call("delegate_task", { agent: "scout", task: "look", wait_seconds: 40 });
  const { tasks: looked } = await work("poll_inbox", { wait_seconds: 40 });
  const { lease_id } = looked[0];
  const end = { lease_id, text: "seen", data: { n: 1 }, artifacts: [{ name: "a", text: "b" }] };
  expect(await work("complete_task", end)).toMatchObject({ state: "completed" });
  const done = await delegating;
  expect(done).toMatchObject({ state: "completed", reply: { text: "seen", data: [{ n: 1 }] } });

  const deploy = { agent: "scout", task: "deploy", priority: 9, metadata: { build: 7 } };
  const { delegation_id: one } = await call("delegate_task_async", deploy);
  const { delegation_id: two } = await call("delegate_task_async", { agent: "scout", task: "test" });
  const { tasks } = await work("poll_inbox", { wait_seconds: 10, max: 2 });
  expect(tasks.map((task: { delegation_id: string }) => task.delegation_id)).toEqual([one, two]);
  const [first, second] = tasks;
  await call("send_follow_up", { delegation_id: one, text: "in staging" });
  const report = await work("report_progress", {
    lease_id: first.lease_id,
    message: "on it",
    done: 1,
    total: 2,
  });
  expect(report.messages).toMatchObject([{ text: "in staging" }]);
  const sure = { lease_id: first.lease_id, question: "Really?" };
  const { interrupt_id: approval } = await work("request_input", sure);
  const where = { lease_id: second.lease_id, question: "Where?", options: ["here", "there"] };
  const { interrupt_id: question } = await work("request_input", where);
  const { results } = await call("wait_for_results", { cursor: "0", wait_seconds: 10 });
  expect(results.map((result: { delegation_id: string }) => result.delegation_id).sort()).toEqual(
    [done.delegation_id, one, two].sort(),
  );
  await call("approve_or_deny", { delegation_id: one, interrupt_id: approval, decision: "approve" });
  await call("answer_task", { delegation_id: two, interrupt_id: question, text: "here" });

  const { tasks: back } = await work("poll_inbox", { wait_seconds: 10, max: 2 });
  const leaseOf = (id: string) =>
    back.find((task: { delegation_id: string }) => task.delegation_id === id).lease_id;
  expect(await work("fail_task", { lease_id: leaseOf(one), message: "no such file" })).toMatchObject({
    state: "failed",
  });
  const part = { agent: "scout", task: "a part", parent_id: two };
  const { delegation_id: child } = await call("delegate_task_async", part);
  const waits = { lease_id: leaseOf(two), ids: [child] };
  expect(await work("wait_for_parts", waits)).toMatchObject({ waiting: true, left: 1 });
  await call("cancel_task", { delegation_id: child });
  const { tasks: resumed } = await work("poll_inbox", { wait_seconds: 10 });
  expect(await work("release_task", { lease_id: resumed[0].lease_id, reason: "not now" })).toEqual({
    delegation_id: two,
  });
  expect(await call("cancel_task", { delegation_id: two, reason: "enough" })).toMatchObject({
    state: "canceled",
  });
  const status = await call("check_task_status", { delegation_id: two, full: true });
  expect(status).toMatchObject({ state: "canceled", task: "test" });
  const nightly = { agent: "scout", task: "tidy up" };
  const { schedule_id } = await call("manage_schedule", {
    action: "create",
    cron: "0 3 * * *",
    delegation: nightly,
  });
  expect((await call("list_schedules", {})).schedules).toMatchObject([{ schedule_id, agent: "scout" }]);
  const listed = await call("list_tasks", { state: "failed" });
  expect(listed.tasks).toMatchObject([{ delegation_id: one, error: { message: "no such file" } }]);
}

/** Schedules over MCP: what a model creates, changes, sees and deletes, and how a mistake is refused. */
import { expect, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { mcpClient, toolOutput } from "../../support/mcp.ts";

async function setup() {
  const { url } = await startBroker();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const toolsOf = async (token: string) => {
    const client = await mcpClient(url, token, "modern");
    return {
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name: string, args: Record<string, unknown> = {}) =>
        toolOutput(await client.callTool({ name, arguments: args })),
    };
  };
  const { call } = await toolsOf(alice.token);
  const manage = (action: string, args: Record<string, unknown> = {}) =>
    call("manage_schedule", { action, ...args });
  return { url, scout, alice, toolsOf, call, manage };
}

const delegation = {
  agent: "scout",
  task: "read the news",
  budget: { tokens: 1_000 },
  on_budget: "ask",
  ttl_seconds: 600,
};
const WEEKDAYS = { cron: "30 9 * * MON-FRI", time_zone: "Europe/Berlin" };

test("a model creates a schedule, changes it, runs it, pauses, resumes and deletes it", async () => {
  const { alice, call, manage } = await setup();
  const made = await manage("create", { ...WEEKDAYS, delegation, overlap: "skip", name: "news" });
  expect(made.text).toContain("30 9 * * MON-FRI (Europe/Berlin) to scout, active. Task: read the news");
  const { schedule_id, schedule } = made.data;
  expect(schedule).toMatchObject({
    ...WEEKDAYS,
    ...{ name: "news", owner: "caller:alice", state: "active", overlap: "skip", missed: "one", delegation },
  });
  expect(schedule.next).toHaveLength(3);
  const stored = async () => (await alice.call("GET", `/v1/schedules/${schedule_id}`)).body;
  const { agent: target, ...rest } = delegation;
  expect((await stored()).delegation).toEqual({ target, ...rest });

  const hourly = await manage("change", { schedule_id, every_seconds: 3_600, missed: "all" });
  expect(hourly.data.schedule).toMatchObject({ every_seconds: 3_600, missed: "all", name: "news" });
  await manage("change", { schedule_id, delegation: { agent: "scout", task: "read less" } });
  expect((await stored()).delegation).toEqual({ target: "scout", task: "read less" });

  const ran = await manage("run", { schedule_id });
  expect((await alice.get(ran.data.delegation_id)).body).toMatchObject({ task_preview: "read less" });
  expect((await manage("pause", { schedule_id })).data.schedule).toMatchObject({ state: "paused", next: [] });
  expect((await manage("resume", { schedule_id })).data.schedule.state).toBe("active");
  const one = await call("list_schedules", { schedule_id });
  expect(one.data.schedules[0].runs).toMatchObject([
    { kind: "manual", delegation_id: ran.data.delegation_id },
  ]);
  expect(one.text).toContain(`manual: ${ran.data.delegation_id}`);
  expect((await manage("delete", { schedule_id })).data).toEqual({ schedule_id, deleted: true });
  expect((await call("list_schedules")).text).toBe("No schedules.");
});

test("a list continues with its cursor, and a long task is shown in short", async () => {
  const { call, manage } = await setup();
  const task = "read ".repeat(2_000);
  for (const name of ["a", "b", "c"])
    await manage("create", { every_seconds: 60, name, delegation: { agent: "scout", task } });
  const page = await call("list_schedules", { limit: 2 });
  expect(page.data.schedules.map((one: { name: string }) => one.name)).toEqual(["a", "b"]);
  expect(page.data.schedules[0]).not.toHaveProperty("delegation");
  expect(page.text.length).toBeLessThan(2_000);
  const { data } = await call("list_schedules", { cursor: page.data.next_cursor });
  expect(data).toMatchObject({ schedules: [{ name: "c" }], next_cursor: null });
  const { schedule_id } = data.schedules[0];
  expect((await call("list_schedules", { schedule_id })).data.schedules[0].delegation.task).toBe(task);
});

test("a repeated create with the same key is the same schedule", async () => {
  const { call, manage } = await setup();
  const args = { ...WEEKDAYS, delegation, idempotency_key: "news" };
  const first = await manage("create", args);
  expect((await manage("create", args)).data.schedule_id).toBe(first.data.schedule_id);
  expect((await call("list_schedules")).data.schedules).toHaveLength(1);
  const ran = await manage("run", { schedule_id: first.data.schedule_id, idempotency_key: "now" });
  const again = await manage("run", { schedule_id: first.data.schedule_id, idempotency_key: "now" });
  expect(again.data.delegation_id).toBe(ran.data.delegation_id);
});

test.each<[string, Record<string, unknown>, string, string]>([
  ["create", { delegation }, "", "cron"],
  ["create", { ...WEEKDAYS }, "", "delegation"],
  ["create", { cron: "@daily", delegation }, "cron", "0 0 * * *"],
  ["create", { ...WEEKDAYS, delegation: { task: "x" } }, "delegation.agent", "missing"],
  [
    "create",
    { ...WEEKDAYS, delegation: { ...delegation, budget: { tokens: 0 } } },
    "delegation.budget.tokens",
    "1",
  ],
  [
    "create",
    { ...WEEKDAYS, delegation: { ...delegation, parent_id: "dlg_0" } },
    "delegation.parent_id",
    "unknown",
  ],
  ["create", { ...WEEKDAYS, delegation, schedule_id: `sch_${"0".repeat(26)}` }, "schedule_id", "new"],
  ["pause", {}, "schedule_id", "list_schedules"],
  ["pause", { schedule_id: `sch_${"0".repeat(26)}`, cron: "0 3 * * *" }, "cron", "only create and change"],
])("%s with %o is refused", async (action, args, path, reason) => {
  const { call, manage } = await setup();
  const { isError, data } = await manage(action, args);
  expect([isError, data.error.code]).toEqual([true, "invalid_request"]);
  const [issue] = data.error.details.issues;
  if (path !== "") expect(issue.path).toBe(path);
  expect(JSON.stringify(issue)).toContain(reason);
  expect((await call("list_schedules")).data.schedules).toEqual([]);
});

test("the tool that changes is listed for those who delegate, and knows no schedule of a stranger", async () => {
  const { url, manage, toolsOf } = await setup();
  const { schedule_id } = (await manage("create", { ...WEEKDAYS, delegation })).data;
  for (const [principal, sees] of [
    ["viewer:vic", false],
    ["approver:ann", false],
    ["caller:bob", true],
  ] as const) {
    const { token } = await as(url, principal);
    const { names, call } = await toolsOf(token);
    expect([principal, (await names()).includes("manage_schedule")]).toEqual([principal, sees]);
    const { data } = await call("manage_schedule", { action: "delete", schedule_id });
    expect([principal, data.error.code]).toEqual([principal, sees ? "not_found" : "forbidden"]);
  }
});

/**
 * Tool outputs stay small: the largest output of each tool is measured, and the first generation's client checks it
 * against the tool's output schema.
 */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";
import { firstClient, toolOutput } from "../../support/mcp.ts";

const KIB = 1_024;
/** Of a single view or one page: text and data together. */
const ONE = 48 * KIB;
const LIST = 96 * KIB;
/** With full: true. */
const FULL = 1_088 * KIB;

async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const toolsOf = async (token: string) => {
    const { client: mcp } = await firstClient(url, token);
    // From here on the client checks outputs against their schemas.
    await mcp.listTools();
    return async (name: string, args: Record<string, unknown>, most: number) => {
      const result = await mcp.callTool({ name, arguments: args });
      expect(Buffer.byteLength(JSON.stringify(result)), name).toBeLessThan(most);
      return toolOutput(result);
    };
  };
  const delegate = async (more: Record<string, unknown> = {}) =>
    String((await alice.delegate("scout", more)).body.id);
  const lease = async () => String((await scout.lease("scout")).body.leases[0].lease_id);
  return { ...broker, scout, alice, toolsOf, delegate, lease };
}

test("a large question is cut in a list, and complete with full: true", async () => {
  const { alice, scout, toolsOf, delegate, lease } = await setup();
  const call = await toolsOf(alice.token);
  const ids: string[] = [];
  for (let i = 0; i < 4; i += 1) {
    ids.push(await delegate());
    const requests = Array.from({ length: 32 }, (_, at) => ({
      request_id: `r${at}`,
      text: "w".repeat(9_000),
      options: Array.from({ length: 100 }, (__, n) => `${"o".repeat(40)}${n}`),
      schema: { type: "object", properties: { a: { type: "string", description: "z".repeat(3_000) } } },
    }));
    expect((await scout.interrupt(await lease(), { requests })).status).toBe(200);
  }
  const [delegation_id] = ids;
  const { data } = await call("wait_for_results", { cursor: "0", wait_seconds: 5, limit: 50 }, LIST);
  expect(data.results).toHaveLength(4);
  expect(data.results[0]).toMatchObject({ question: { truncated: true, requests: [{ truncated: true }] } });
  expect(data.results[0].next).toContain("full: true first");
  await call("list_tasks", { limit: 50 }, LIST);
  const one = await call("check_task_status", { delegation_id }, ONE);
  expect(one.data.question).toMatchObject({ truncated: true });
  const whole = await call("check_task_status", { delegation_id, full: true }, FULL);
  expect(whole.data.question.requests[0]).toMatchObject({ text: "w".repeat(9_000), schema: {} });
  // A question of ordinary size is complete.
  const small = await delegate();
  const common = { text: "Which?", options: ["a", "b"], schema: { type: "object" } };
  await scout.interrupt(await lease(), common);
  const { question } = (await call("check_task_status", { delegation_id: small }, ONE)).data;
  expect(question.truncated).toBeUndefined();
  expect(question.requests).toMatchObject([common]);
});

test("replies, artifacts, progress and errors are cut, too", async () => {
  const { alice, scout, toolsOf, delegate, lease } = await setup();
  const call = await toolsOf(alice.token);
  const delegation_id = await delegate({ task: "t".repeat(500_000) });
  const artifacts = Array.from({ length: 100 }, (_, at) => ({
    artifactId: `${at}${"i".repeat(200)}`,
    name: "n".repeat(250),
    parts: [{ text: "x".repeat(4_000) }, { data: { k: "x".repeat(1_000) } }],
  }));
  const replied = await scout.reply(await lease(), { text: "r".repeat(100_000), artifacts });
  expect(replied.status).toBe(200);
  const failing = await delegate();
  const held = await lease();
  await scout.heartbeat(held, {
    progress: {
      message: "m".repeat(4_000),
      current_step: "c".repeat(256),
      tools_used: Array.from({ length: 64 }, () => "t".repeat(256)),
    },
  });
  const working = await call("list_tasks", { state: "working" }, 4 * KIB);
  expect(working.data.tasks[0].progress.message.length).toBeLessThanOrEqual(400);
  await scout.call("POST", `/v1/leases/${held}/reply`, {
    state: "failed",
    error: { code: "agent_error", message: "e".repeat(60_000) },
  });
  const listed = await call("list_tasks", { limit: 50 }, 8 * KIB);
  expect(listed.data.tasks).toMatchObject([
    { delegation_id: failing, error: { message: "e".repeat(400) } },
    { delegation_id, reply: { text: "r".repeat(400), truncated: true }, artifacts_omitted: 100 },
  ]);
  const one = await call("check_task_status", { delegation_id }, ONE);
  expect(one.data).toMatchObject({ artifacts_omitted: 100, next: expect.stringContaining("full: true") });
  const whole = await call("check_task_status", { delegation_id, full: true }, FULL);
  expect(whole.data.reply.text).toHaveLength(100_000);
  expect(whole.data.artifacts.length + whole.data.artifacts_omitted).toBe(100);
  const wrong = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${at}`, 1]));
  const refused = await call("broker_health", { ...wrong, ["l".repeat(5_000)]: 1 }, 8 * KIB);
  expect(refused.data.error.details.issues).toEqual([
    { path: "k100", reason: "unknown field, after 100 others" },
  ]);
  const answers = { delegation_id, interrupt_id: "i", answers: { ...wrong, ["l".repeat(5_000)]: 1 } };
  const { data } = await call("answer_task", answers, 8 * KIB);
  expect(data.error.details.issues).toHaveLength(20);
  expect(data.error.details.issues_omitted).toBe(881);
});

test("many agents have short descriptions, a single one a longer one", async () => {
  const { url, alice, toolsOf } = await setup();
  const operator = client(url);
  const skills = Array.from({ length: 20 }, (_, at) => ({
    id: `s${at}`,
    name: `n${at}`,
    description: "q".repeat(1_000),
    tags: [],
  }));
  for (let i = 0; i < 60; i += 1) {
    await operator.agent(`many-${i}`, { description: `no-${i}- ${"d".repeat(4_000)}`, skills });
  }
  const call = await toolsOf(alice.token);
  const { data, text } = await call("discover_agents", {}, LIST);
  expect([data.agents.length, data.omitted]).toEqual([50, 11]);
  expect(data.agents[0]).toMatchObject({ truncated: true, skills: [{ id: "s0" }] });
  expect(text).toContain("Narrow the list with query");
  const found = await call("discover_agents", { query: "no-7-" }, LIST);
  expect(found.data.agents).toHaveLength(1);
  expect(found.data.agents[0]).toMatchObject({
    name: "many-7",
    skills: skills.map(({ tags: _tags, ...shown }) => shown),
  });
  expect(found.data.agents[0].truncated).toBeUndefined();
});

test("leased work is cut to a readable size, and whole with full: true", async () => {
  const { alice, scout, toolsOf, delegate } = await setup();
  const call = await toolsOf(scout.token);
  const task = "x".repeat(900_000);
  const id = await delegate({ task });
  for (let i = 0; i < 12; i += 1) await alice.message(id, `${i} ${"y".repeat(50_000)}`);
  const polled = await call("poll_inbox", { wait_seconds: 5 }, FULL);
  const [cut] = polled.data.tasks;
  expect(cut).toMatchObject({ delegation_id: id, task: { truncated: true }, history_omitted: 11 });
  expect(polled.text).toContain("poll_inbox with full: true");
  await call("release_task", { lease_id: cut.lease_id }, ONE);
  const again = await call("poll_inbox", { wait_seconds: 5, full: true }, 4_096 * KIB);
  const [whole] = again.data.tasks;
  expect(whole.task).toMatchObject({ text: task });
  expect(whole.history).toHaveLength(12);
  expect(again.text).not.toContain("The task is cut");
  // Follow-ups repeat until they are seen; the rest comes next.
  const received: string[] = [];
  for (let seen: string | undefined, left = 12; left > 0; ) {
    const args = { lease_id: whole.lease_id, ...(seen && { seen }) };
    const { messages } = (await call("report_progress", args, FULL)).data;
    received.push(...messages.map(({ text }: { text: string }) => text.split(" ")[0]));
    left -= messages.length;
    seen = messages.at(-1).message_id;
  }
  expect(received.length).toBeGreaterThanOrEqual(12);
});

/**
 * One principal sends as many requests as it can, beside another. Checks order and counts; the benchmark measures
 * times.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { ConcurrencyLimiter, weightOf } from "../../src/doors/http/concurrency-limiter.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { callModern, openSession, sendMcp } from "../support/mcp.ts";
import { until } from "../support/until.ts";

const MOST = LIMITS.requests.value;

async function setup() {
  const broker = await startBroker();
  const alice = await as(broker.url, "caller:alice");
  const bob = await as(broker.url, "caller:bob");
  const { writer } = broker.gateway.broker;
  /** Holds back alice's submits before Redis until it is called. */
  const original = writer.move.bind(writer);
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  onTestFinished(() => open());
  let reached = 0;
  vi.spyOn(writer, "move").mockImplementation(async (...args) => {
    if (args[0].params?.delegator === "caller:alice") {
      reached += 1;
      await opened;
    }
    return original(...args);
  });
  return { ...broker, alice, bob, open: () => open(), reached: () => reached };
}

test("a flood of submits: a bounded number goes before another principal's request, and the rest are served in order", async () => {
  const { gateway, url, alice, bob, open, reached } = await setup();
  await client(url).agent("scout");
  const flood = Array.from({ length: 2 * MOST }, () => alice.delegate("scout"));
  await until(() => gateway.inProgress("caller:alice").waiting === MOST);
  expect(reached()).toBe(MOST);
  expect((await bob.delegate("scout")).status).toBe(202);
  expect(gateway.inProgress("caller:alice")).toEqual({ running: MOST, waiting: MOST });
  open();
  // On a busy machine some may have waited too long and are refused.
  for (const { status } of await Promise.all(flood)) expect([202, 503]).toContain(status);
  await until(() => gateway.inProgress("caller:alice").running === 0);
});

test("a body is parsed when its turn comes, because a parsed one takes more memory", async () => {
  const { gateway, url, alice, open, reached } = await setup();
  await client(url).agent("scout");
  const flood = Array.from({ length: MOST }, () => alice.delegate("scout"));
  await until(() => reached() === MOST);
  const malformed = alice.call("POST", "/v1/delegations", "no JSON");
  await until(() => gateway.inProgress("caller:alice").waiting === 1);
  open();
  expect((await malformed).body.code).toBe("invalid_json");
  await Promise.all(flood);
});

test("requests that wait do not count against their principal", async () => {
  const { gateway, url, alice } = await setup();
  await client(url).agent("scout");
  const scout = await as(url, "agent:scout");
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const polls = Array.from({ length: MOST + 10 }, () =>
    fetch(`${url}/v1/agents/scout/leases`, {
      method: "POST",
      headers: { authorization: `Bearer ${scout.token}`, "content-type": "application/json" },
      body: JSON.stringify({ wait_seconds: 60 }),
      signal: controller.signal,
    }).catch(() => null),
  );
  await until(() => gateway.broker.handoff.polls.countAll() === MOST + 10);
  expect(gateway.inProgress("agent:scout").running).toBe(0);
  expect((await scout.call("GET", "/v1/agents/scout")).status).toBe(200);
  controller.abort();
  await Promise.all(polls);
  expect((await alice.call("GET", "/v1/agents/scout")).status).toBe(200);
});

test("calls in an MCP session wait for their turn like all others", async () => {
  const { gateway, url, alice, reached } = await setup();
  await client(url).agent("scout");
  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const headers = await openSession(url, alice.token);
  const name = "delegate_task_async";
  const calls = Array.from({ length: MOST + 10 }, (_, id) => ({
    ...{ jsonrpc: "2.0", id, method: "tools/call" },
    params: { name, arguments: { agent: "scout", task: "do it" } },
  }));
  for (let from = 0; from < calls.length; from += 100) {
    await sendMcp(url, alice.token, calls.slice(from, from + 100), { headers, signal: leave.signal });
  }
  await until(() => reached() === MOST, { what: "as many as may" });
  expect(gateway.inProgress("caller:alice")).toEqual({ running: MOST, waiting: 10 });
});

test("a report over MCP that waits for follow-ups counts as a request that waits, not as one in progress", async () => {
  const { gateway, url, bob } = await setup();
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const id = (await bob.delegate("scout")).body.id;
  const [{ lease_id }] = (await scout.lease("scout")).body.leases;
  const report = callModern(url, scout.token, "report_progress", {
    lease_id,
    wait_seconds: 30,
    message: "on it",
  });
  await until(async () => (await bob.get(id)).body.progress?.message === "on it", { what: "the report" });
  expect(gateway.inProgress("agent:scout").running).toBe(0);
  expect(gateway.broker.quotas.inUse({ text: "agent:scout" }, "polls")).toBe(1);
  await bob.message(id, "go on");
  expect((await report).body.result.structuredContent.messages).toMatchObject([{ text: "go on" }]);
});

test("a request that waited too long for its turn is refused, and the next one is served", async () => {
  let now = 0;
  const turns = new ConcurrencyLimiter(() => now, 1);
  expect(turns.begin("a")).toBeNull();
  const old = turns.begin("a");
  now = 5_001;
  const next = turns.begin("a");
  expect(turns.of("a")).toEqual({ running: 1, waiting: 2 });
  turns.end("a");
  await expect(old).rejects.toMatchObject({ code: "overloaded", context: { retry_after_seconds: 1 } });
  await next;
  expect(turns.of("a")).toEqual({ running: 1, waiting: 0 });
  turns.end("a");
  expect(turns.of("a")).toEqual({ running: 0, waiting: 0 });
});

test("a request with a large body takes the place of several, and a heavier one than the limit runs alone", async () => {
  expect([0, 16_383, 16_384, 1_000_000].map(weightOf)).toEqual([1, 1, 2, 62]);
  const turns = new ConcurrencyLimiter(() => 0, 10);
  const began: string[] = [];
  const begin = (name: string, weight: number) => {
    const turn = turns.begin("a", weight);
    if (turn === null) began.push(name);
    else void turn.then(() => began.push(name));
  };
  begin("large", 8);
  begin("small", 2);
  begin("huge", 50);
  // It does not overtake the one that waits.
  begin("last", 1);
  expect(turns.of("a")).toEqual({ running: 10, waiting: 2 });
  turns.end("a", 8);
  expect(turns.of("a")).toEqual({ running: 2, waiting: 2 });
  turns.end("a", 2);
  expect(turns.of("a")).toEqual({ running: 50, waiting: 1 });
  turns.end("a", 50);
  await until(() => began.length === 4);
  expect(began).toEqual(["large", "small", "huge", "last"]);
});

test("the bodies of one principal that are parsed at once are bounded", async () => {
  const { gateway, url, alice, open, reached } = await setup();
  await client(url).agent("scout");
  const task = "x".repeat(50_000);
  const flood = Array.from({ length: 80 }, () => alice.delegate("scout", { task }));
  // Each counts as four.
  await until(() => reached() === MOST / 4 && gateway.inProgress("caller:alice").waiting === 16, {
    timeoutMs: 30_000,
  });
  expect(gateway.inProgress("caller:alice").running).toBe(MOST);
  open();
  for (const { status } of await Promise.all(flood)) expect(status).toBe(202);
});

/** A client proves that it received work by answering a ping, or by a call with the lease. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { callModern, type Era, mcpClient, openSession, sendMcp, toolOutput } from "../../support/mcp.ts";
import { until } from "../../support/until.ts";

async function setup(pingMs: number) {
  const broker = await startBroker({ mcpPingMs: pingMs });
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const delegate = async (): Promise<string> => (await alice.delegate("scout")).body.id;
  const attemptOf = async (id: string): Promise<number> => (await alice.get(id)).body.attempt;
  const stateOf = async (id: string): Promise<string> => (await alice.get(id)).body.state;
  const parked = () =>
    until(() => broker.gateway.broker.handoff.polls.count("scout") === 1, { what: "the poll" });
  /** Advances the clock and runs the sweep. */
  const pass = async (seconds: number) => {
    broker.clock.offset_ms += seconds * 1000;
    await broker.gateway.sweep.tick();
  };
  return { ...broker, scout, delegate, attemptOf, stateOf, parked, pass };
}

/** An answer to the gateway, or a cancellation: a request of its own, about a call that another one began. */
const isOfCall = (body: unknown): boolean =>
  typeof body === "string" && (!body.includes('"method"') || body.includes('"notifications/cancelled"'));

/** An SDK client whose answers to pings are dropped while `silent`, and reach the gateway `elsewhere`. */
async function worker(url: string, token: string, era: Era, silent = false, elsewhere = url) {
  const line = { silent };
  let pings = 0;
  const send: typeof fetch = (input, init) => {
    const isAnswer = typeof init?.body === "string" && !init.body.includes('"method"');
    if (isAnswer) pings += 1;
    return isAnswer && line.silent
      ? Promise.resolve(new Response(null, { status: 202 }))
      : fetch(String(input).replace(url, isOfCall(init?.body) ? elsewhere : url), init);
  };
  const client = await mcpClient(url, token, era, { fetch: send });
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    toolOutput(await client.callTool({ name, arguments: args }));
  return { client, call, line, pings: () => pings };
}

const CONFIRM_SECONDS = 120;

test("an answer to a ping confirms the lease: two pings for the first delivery, then one for each", async () => {
  const { url, scout, delegate, stateOf, pass } = await setup(10_000);
  const { call, pings } = await worker(url, scout.token, "legacy");
  const id = await delegate();
  const { data, text } = await call("poll_inbox", { wait_seconds: 20 });
  expect(data.tasks).toMatchObject([{ delegation_id: id, attempt: 1 }]);
  expect(data.tasks[0]).not.toHaveProperty("confirm_by");
  expect(text).not.toContain("First call report_progress");
  expect(pings()).toBe(2);
  await pass(CONFIRM_SECONDS + 10);
  expect(await stateOf(id)).toBe("working");
  await call("complete_task", { lease_id: data.tasks[0].lease_id, text: "done" });
  await delegate();
  await call("poll_inbox", { wait_seconds: 20 });
  expect(pings()).toBe(3);
});

test("an answer to a ping, and a cancellation, reach the call from any gateway", async () => {
  const { url, gateway, another, scout, delegate, stateOf, parked } = await setup(10_000);
  const { client, call, pings } = await worker(url, scout.token, "legacy", false, (await another()).url);
  const id = await delegate();
  const { data } = await call("poll_inbox", { wait_seconds: 20 });
  expect(data.tasks).toMatchObject([{ delegation_id: id, attempt: 1 }]);
  expect(data.tasks[0]).not.toHaveProperty("confirm_by");
  expect(pings()).toBe(2);
  const leave = new AbortController();
  const params = { name: "poll_inbox", arguments: { wait_seconds: 50 } };
  const polling = client.callTool(params, { signal: leave.signal });
  await parked();
  leave.abort();
  await expect(polling).rejects.toThrow();
  await until(() => gateway.broker.handoff.polls.count("scout") === 0, { what: "the end of the poll" });
  expect(await stateOf(await delegate())).toBe("submitted");
});

test("an answer, or a cancellation, of another principal or session reaches no call", async () => {
  const { url, gateway, scout, parked } = await setup(60_000);
  const headers = await openSession(url, scout.token);
  const poll = {
    ...{ jsonrpc: "2.0", id: 2, method: "tools/call" },
    params: { name: "poll_inbox", arguments: { wait_seconds: 50 } },
  };
  const leave = new AbortController();
  const polling = await sendMcp(url, scout.token, poll, { headers, signal: leave.signal });
  await parked();
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } };
  const bob = await as(url, "agent:scout");
  const others = await openSession(url, bob.token);
  expect((await sendMcp(url, bob.token, cancel, { headers: others })).status).toBe(202);
  const ping = (text: string) => /"id":"([^"]+)"/.exec(text)?.[1];
  const reader = polling.body?.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  while (ping(received) === undefined) received += (await reader?.read())?.value ?? "";
  const answer = { jsonrpc: "2.0", id: ping(received), result: {} };
  expect((await sendMcp(url, bob.token, answer, { headers: others })).status).toBe(202);
  expect(gateway.broker.handoff.polls.count("scout")).toBe(1);
  expect((await sendMcp(url, scout.token, cancel, { headers })).status).toBe(202);
  await until(() => gateway.broker.handoff.polls.count("scout") === 0, { what: "the end of the poll" });
  leave.abort();
});

test("a client that stopped answering gets nothing; the work goes back at once, and no attempt is spent", async () => {
  // Long enough for the first ping to be answered on a busy machine.
  const { url, scout, delegate, parked } = await setup(3_000);
  const { call, line } = await worker(url, scout.token, "legacy");
  await delegate();
  const { data } = await call("poll_inbox", { wait_seconds: 20 });
  await call("complete_task", { lease_id: data.tasks[0].lease_id, text: "done" });

  line.silent = true;
  const polling = call("poll_inbox", { wait_seconds: 20 });
  await parked();
  const id = await delegate();
  expect((await polling).data).toEqual({ tasks: [] });
  const { leases } = (await scout.lease("scout", { wait_seconds: 5 })).body;
  expect(leases).toMatchObject([{ attempt: 1, delegation: { id } }]);
});

test("a client that disconnects during the first ping gets nothing", async () => {
  const { url, scout, delegate } = await setup(60_000);
  const headers = await openSession(url, scout.token);
  const id = await delegate();
  const gone = new AbortController();
  const poll = {
    ...{ jsonrpc: "2.0", id: 2, method: "tools/call" },
    params: { name: "poll_inbox", arguments: {} },
  };
  const polling = await sendMcp(url, scout.token, poll, { headers, signal: gone.signal });
  const reader = polling.body?.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  while (!received.includes('"method":"ping"')) received += (await reader?.read())?.value ?? "";
  await until(async () => (await scout.get(id)).body.state === "working", { what: "the lease" });
  gone.abort();
  const { leases } = (await scout.lease("scout", { wait_seconds: 5 })).body;
  expect(leases).toMatchObject([{ attempt: 1, delegation: { id } }]);
});

describe.each([
  { name: "a client of 2026-07-28, which has no ping,", era: "modern" },
  { name: "a client that never answers pings", era: "legacy" },
] as const)("$name", ({ era }) => {
  test("confirms the lease by its next call", async () => {
    const { url, scout, delegate, stateOf, pass, clock } = await setup(200);
    const { call } = await worker(url, scout.token, era, true);
    const id = await delegate();
    const before = Date.now() + clock.offset_ms;
    const { data, text } = await call("poll_inbox", { wait_seconds: 20 });
    const [{ lease_id, confirm_by }] = data.tasks;
    const left = (Date.parse(confirm_by) - before) / 1000;
    expect(left).toBeGreaterThan(CONFIRM_SECONDS - 5);
    expect(left).toBeLessThan(CONFIRM_SECONDS + 20);
    expect(text).toContain(`First call report_progress with this lease_id, before ${confirm_by}.`);
    await call("report_progress", { lease_id });
    await pass(CONFIRM_SECONDS + 10);
    expect(await stateOf(id)).toBe("working");
  });

  test("and loses it without one, but no attempt; after three returns the work comes without confirm_by", async () => {
    const { url, scout, delegate, stateOf, attemptOf, pass } = await setup(200);
    const { call } = await worker(url, scout.token, era, true);
    const id = await delegate();
    for (let round = 0; round < 3; round += 1) {
      const { data } = await call("poll_inbox", { wait_seconds: 20 });
      expect(data.tasks, `round ${round}`).toMatchObject([{ attempt: 1, confirm_by: expect.any(String) }]);
      await pass(CONFIRM_SECONDS + 1);
      expect(await stateOf(id)).toBe("submitted");
    }
    const { data } = await call("poll_inbox", { wait_seconds: 20 });
    expect(data.tasks[0]).not.toHaveProperty("confirm_by");
    await pass(CONFIRM_SECONDS + 1);
    expect(await stateOf(id)).toBe("working");
    expect(await attemptOf(id)).toBe(1);
  });
});

test("a client that disconnects while its lease is confirmed gets nothing, and the work goes back at once", async () => {
  const { url, gateway, scout, delegate, stateOf } = await setup(10_000);
  const { client, call } = await worker(url, scout.token, "legacy");
  const id = await delegate();
  const { writer } = gateway.broker;
  const move = writer.move.bind(writer);
  const leave = new AbortController();
  vi.spyOn(writer, "move").mockImplementation(async (...args) => {
    const moved = await move(...args);
    if (args[0].move === "heartbeat") {
      leave.abort();
      // Until the gateway has noticed. After a stall of this process, one long sleep would end before it reads the end.
      for (let tick = 0; tick < 20; tick += 1) await sleep(10);
    }
    return moved;
  });
  const polling = client.callTool(
    { name: "poll_inbox", arguments: { wait_seconds: 20 } },
    { signal: leave.signal },
  );
  await expect(polling).rejects.toThrow();
  await until(async () => (await stateOf(id)) === "submitted", { what: "its return" });
  vi.restoreAllMocks();
  expect((await call("poll_inbox", { wait_seconds: 20 })).data.tasks).toMatchObject([{ attempt: 1 }]);
});

test("the client's name is the worker_id of its leases", async () => {
  const { url, scout, delegate } = await setup(10_000);
  const workerOf = async (id: string): Promise<string> => (await scout.get(id)).body.lease.worker_id;
  const { call } = await worker(url, scout.token, "legacy");
  const inSession = await delegate();
  await call("poll_inbox", { wait_seconds: 20 });
  expect(await workerOf(inSession)).toBe("test");
  const cases: [name: string, worker_id: string][] = [
    ["Visual Studio Code", "Visual-Studio-Code"],
    ["\u001b[31mred\n", "-[31mred-"],
    ["x".repeat(500), "x".repeat(128)],
    ["\u4f60\u597d", "mcp"],
  ];
  for (const [name, worker_id] of cases) {
    const id = await delegate();
    const meta = { "io.modelcontextprotocol/clientInfo": { name, version: "1" } };
    await callModern(url, scout.token, "poll_inbox", { wait_seconds: 20 }, { meta });
    expect(await workerOf(id)).toBe(worker_id);
  }
});

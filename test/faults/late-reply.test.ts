import { expect, test } from "vitest";
import { as, client, startBroker, type TestBroker } from "../support/broker.ts";
import { dump } from "../support/dump.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { openStream } from "../support/sse.ts";

const LEASE_SECONDS = 5;
const DONE = { state: "completed", text: "too late" };
const LATE = {
  completed: DONE,
  "completed with artifacts": { ...DONE, artifacts: [{ artifactId: "a", parts: [{ text: "part" }] }] },
  failed: { state: "failed", text: "too late" },
  "failed, retryable": { state: "failed", error: { code: "busy", message: "late", retryable: true } },
  rejected: { state: "rejected", text: "too late" },
  "completed, with next": { ...DONE, next: { wait_seconds: 0 } },
};

/** The same through /replies, as from agents that only speak A2A. */
const A2A: Record<string, (id: string, lease: string) => unknown> = {
  "a message, by the lease": (_id, lease) => ({ jsonrpc: "2.0", id: lease, result: message }),
  "a task, by the lease in the metadata": (_id, lease_id) => ({
    ...task("completed"),
    metadata: { lease_id },
  }),
  "a working task, by the lease": (_id, lease) => ({ jsonrpc: "2.0", id: lease, result: task("working") }),
  "a question, by the lease": (_id, lease) => ({ jsonrpc: "2.0", id: lease, result: task("input-required") }),
  "a canceled task, by the lease": (_id, lease) => ({ jsonrpc: "2.0", id: lease, result: task("canceled") }),
  "an error, by the lease": (_id, lease) => ({
    jsonrpc: "2.0",
    id: lease,
    error: { code: -1, message: "late" },
  }),
  "a message, by the delegation": (delegation_id) => ({ ...message, metadata: { delegation_id } }),
  "a failed task, by the delegation": (id) => ({ jsonrpc: "2.0", id, result: task("failed") }),
};
const message = { messageId: "m1", role: "ROLE_AGENT", parts: [{ text: "too late" }] };
const task = (state: string) => ({
  kind: "task",
  id: "t1",
  contextId: "c1",
  status: { state, message: { kind: "message", messageId: "m2", role: "agent", parts: [] } },
  artifacts: [{ artifactId: "a", parts: [{ kind: "text", text: "part" }] }],
});

/** Everything in Redis with its expiry instants, except presence, which changes by itself. */
async function stateOf({ redis }: TestBroker) {
  const all = Object.entries(await dump(redis));
  const own = all.filter(([key]) => !/^\{errand\}:(?:gateways|pollers:)|^\{errand:0\}:seen$/.test(key));
  const expiries = await Promise.all(own.map(([key]) => redis.call("PEXPIRETIME", key)));
  return Object.fromEntries(own.map(([key, value], n) => [key, { value, expires: expiries[n] }]));
}

/** The first worker sleeps past its lease; everything it sends from then on is late. */
async function lateWorker(broker: TestBroker) {
  const api = client(broker.url);
  await api.agent("scout", { backoff: { initial_ms: 0 }, limits: { max_attempts: 5 } });
  const { id } = (await api.delegate("scout")).body;
  const [paused] = (await api.lease("scout", { lease_seconds: LEASE_SECONDS, worker_id: "paused" })).body
    .leases;
  broker.clock.offset_ms += LEASE_SECONDS * 1_000 + 1;
  await broker.gateway.sweep.tick();
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 2 });
  return { id: String(id), lease: String(paused.lease_id) };
}

async function expectNoTrace(broker: TestBroker, id: string, lease: string): Promise<void> {
  const second = await broker.another();
  const worker = await as(broker.url, "agent:scout");
  const watcher = await openStream(`${broker.url}/v1/events`);
  const before = await stateOf(broker);
  for (const late of Object.values(LATE)) {
    for (const api of [client(broker.url), client(second.url), client(second.url, worker.token)]) {
      expect(await api.reply(lease, late)).toMatchObject({
        status: 409,
        body: { code: "lease_lost", details: { reason: "expired" }, delegation_id: id },
      });
    }
  }
  for (const [what, late] of Object.entries(A2A)) {
    const answer = await worker.call("POST", "/v1/agents/scout/replies", late(id, lease));
    expect([what, answer.status, answer.body.code]).toEqual([what, 409, "lease_lost"]);
  }
  expect(await stateOf(broker)).toEqual(before);
  expect(watcher.events).toEqual([]);
  watcher.close();
}

test("a late reply changes nothing while the second worker works, and the second worker's reply counts", async () => {
  const broker = await startBroker();
  const api = client(broker.url);
  const { id, lease } = await lateWorker(broker);
  const [next] = (await api.lease("scout")).body.leases;
  expect(next).toMatchObject({ attempt: 2, delegation: { id } });
  await expectNoTrace(broker, id, lease);
  expect((await api.reply(next.lease_id, { text: "mine" })).body.outcome).toBe("matched");
  expect((await api.get(id)).body).toMatchObject({
    state: "completed",
    reply: { parts: [{ text: "mine" }] },
  });
  checkHistory(await eventsOf(api, id), "finished");
});

test("a late reply changes nothing after the second worker's, even with the same text", async () => {
  const broker = await startBroker();
  const api = client(broker.url);
  const { id, lease } = await lateWorker(broker);
  const [next] = (await api.lease("scout")).body.leases;
  expect((await api.reply(next.lease_id, DONE)).body.outcome).toBe("matched");
  await expectNoTrace(broker, id, lease);
  checkHistory(await eventsOf(api, id), "finished");
});

test("a late reply changes nothing after a cancel", async () => {
  const broker = await startBroker();
  const api = client(broker.url);
  const { id, lease } = await lateWorker(broker);
  await api.cancel(id);
  await expectNoTrace(broker, id, lease);
  checkHistory(await eventsOf(api, id), "finished");
});

test("a reply after the lease's end but before the sweep noticed still counts", async () => {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout")).body;
  const [slow] = (await api.lease("scout", { lease_seconds: LEASE_SECONDS })).body.leases;
  broker.clock.offset_ms += LEASE_SECONDS * 1_000 + 1;
  expect((await api.reply(slow.lease_id)).body.outcome).toBe("matched");
  await broker.gateway.sweep.tick();
  checkHistory(await eventsOf(api, id), "finished");
});

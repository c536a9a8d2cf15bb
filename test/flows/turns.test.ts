/** Whose work is leased next, through the API: turns of delegators, and their weights. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { stockQueue } from "../support/stock-queue.ts";

async function setup(spec: unknown = {}) {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout", spec);
  const scout = await as(broker.url, "agent:scout");
  /** Delegates this many tasks; the task names its delegator. */
  const send = async (who: string, count: number): Promise<void> => {
    const caller = await as(broker.url, `caller:${who}`);
    for (let left = count; left > 0; left -= 100) {
      const delegations = Array.from({ length: Math.min(left, 100) }, () => ({ target: "scout", task: who }));
      expect((await caller.call("POST", "/v1/delegations/batch", { delegations })).status).toBe(200);
    }
  };
  /** Leases this many; the delegator of each, and its lease. */
  const take = async (max: number): Promise<[who: string, lease: string][]> =>
    (await scout.lease("scout", { wait_seconds: 0, max })).body.leases.map(
      (one: { lease_id: string; delegation: { task_preview: string } }) => [
        one.delegation.task_preview,
        one.lease_id,
      ],
    );
  const takeAll = async (count: number): Promise<string[]> => {
    const taken: string[] = [];
    while (taken.length < count) {
      const some = await take(Math.min(32, count - taken.length));
      if (some.length === 0) break;
      taken.push(...some.map(([who]) => who));
    }
    return taken;
  };
  return { ...broker, api, scout, send, take, takeAll };
}

const countOf = (who: string, taken: readonly string[]): number => taken.filter((one) => one === who).length;

test("with one free slot, many tasks of one delegator delay another's first by at most one", async () => {
  const { scout, send, take, db } = await setup({ limits: { max_working: 1 } });
  await send("ana", 300);
  const [[, running = ""] = []] = await take(1);
  await send("bob", 2);
  const { queue } = await stockQueue(db, "scout");
  const seen: string[] = [];
  for (const { data } of (await queue.getPrioritized()).slice(0, 6)) seen.push(data.delegation_id);
  await scout.reply(running);
  const taken: string[] = [];
  for (let n = 0; n < 6; n += 1) {
    const { leases } = (await scout.lease("scout", { wait_seconds: 0 })).body;
    taken.push(leases[0].delegation.id);
    if (n < 4) expect(leases[0].delegation.task_preview).toBe(n % 2 === 0 ? "ana" : "bob");
    await scout.reply(leases[0].lease_id);
  }
  // As BullMQ's own tools show them.
  expect(taken).toEqual(seen);
});

test("an agent's settings give its delegators weights, and take them away again", async () => {
  const { api, scout, url, send, takeAll } = await setup({ delegator_weights: { "caller:ana": 3 } });
  await send("bob", 100);
  await send("ana", 100);
  expect(Math.abs(countOf("ana", await takeAll(40)) - 30)).toBeLessThanOrEqual(1);
  const patch = { delegator_weights: { "caller:ana": null, "caller:bob": 4 } };
  const changed = (await scout.call("PATCH", "/v1/agents/scout", patch)).body;
  expect(changed).toMatchObject({ changed: ["delegator_weights"], delegator_weights: { "caller:bob": 4 } });
  // What waits keeps its place.
  await takeAll(200);
  await send("ana", 100);
  await send("bob", 100);
  expect(Math.abs(countOf("bob", await takeAll(50)) - 40)).toBeLessThanOrEqual(1);
  const reset = (await api.call("PATCH", "/v1/agents/scout", { delegator_weights: null })).body;
  expect(reset).toMatchObject({ reset: ["delegator_weights"], delegator_weights: {} });
  await takeAll(200);
  await send("ana", 40);
  await send("bob", 40);
  expect(countOf("bob", await takeAll(40))).toBe(20);
  const ana = await as(url, "caller:ana");
  expect((await ana.call("GET", "/v1/agents/scout")).body.delegator_weights).toBeUndefined();
});

test.each([
  [{ "caller:ana": 0 }],
  [{ "caller:ana": 101 }],
  [{ "caller:*": 2 }],
  [Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`caller:c${n}`, 2]))],
])("weights that are none are refused: %j", async (delegator_weights) => {
  const { api } = await setup();
  const { status, body } = await api.call("PATCH", "/v1/agents/scout", { delegator_weights });
  expect([status, body.code]).toEqual([400, "invalid_request"]);
});

/** `GET /v1/stats/agents`: the figures of each agent, for whom, and what they cost. */
import { expect, test } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { agentFiguresPageSchema } from "../../../src/schema/stats.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";

const QUARTER_MS = 900_000;
/** Ten seconds after the begin of a quarter of an hour. */
const atQuarter = (): number => QUARTER_MS - (Date.now() % QUARTER_MS) + 10_000;
const fail = (code: string) => ({ state: "failed", error: { code, message: "no" } });

async function setup() {
  const broker = await startBroker();
  broker.clock.offset_ms = atQuarter();
  const api = client(broker.url);
  const done = async (agent: string, reply = {}) => {
    await api.delegate(agent, { ttl_seconds: 86_400 });
    await api.reply((await api.lease(agent)).body.leases[0].lease_id, reply);
  };
  const page = async (who: { call: typeof api.call } = api, query = "") =>
    agentFiguresPageSchema.parse((await who.call("GET", `/v1/stats/agents${query}`)).body);
  return { ...broker, api, done, page };
}

test("equal the sums of the agent's own figures over the same quarters", async () => {
  const { url, api, clock, done, page } = await setup();
  for (const name of ["scout", "coder", "idle"]) await api.agent(name, { limits: { max_attempts: 1 } });
  await done("scout", { usage: { cost: 0.25, currency: "USD" } });
  await done("scout", { state: "rejected" });
  await done("coder", fail("disk_full"));
  // The first quarter is shown until it is more than an hour old.
  clock.offset_ms += 4 * QUARTER_MS;
  await done("scout", { usage: { cost: 0.5, currency: "USD" } });
  await done("scout", fail("disk_full"));
  await api.cancel((await api.delegate("coder")).body.id);
  const { since, agents, next_cursor } = await page();
  expect(next_cursor).toBeNull();
  expect(agents.map(({ agent }) => agent)).toEqual(["coder", "idle", "scout"]);
  expect(agents[2]).toEqual({
    agent: "scout",
    ...{ completed: 2, failed: 1, rejected: 1, canceled: 0 },
    quarters: [{ ok: 1, failed: 1 }, ...[2, 3, 4].map(() => ({ ok: 0, failed: 0 })), { ok: 1, failed: 1 }],
    costs: [{ currency: "USD", cost: 0.75 }],
  });
  const admin = new Admin({ url, token: OPERATOR });
  for (const { agent, completed, failed, rejected, canceled, quarters } of agents) {
    const { buckets } = await admin.stats({ period: "day", target: agent });
    const last = buckets.slice(-5);
    expect(last[0]?.at).toBe(since);
    const sum = (pick: (bucket: (typeof last)[number]) => number) =>
      last.reduce((all, bucket) => all + pick(bucket), 0);
    expect({ completed, failed, rejected, canceled }).toEqual({
      completed: sum((bucket) => bucket.completed),
      failed: sum((bucket) => bucket.failed),
      rejected: sum((bucket) => bucket.rejected),
      canceled: sum((bucket) => bucket.canceled),
    });
    expect(quarters).toEqual(
      last.map((bucket) => ({ ok: bucket.completed, failed: bucket.failed + bucket.rejected })),
    );
  }
  clock.offset_ms += QUARTER_MS;
  expect((await page()).agents[2]).toMatchObject({ completed: 1, rejected: 0 });
});

test("who sees everything gets the figures of all agents, an agent its own, a caller none", async () => {
  const { url, api, clock, done, page } = await setup();
  for (const name of ["scout", "coder"]) await api.agent(name);
  await done("scout");
  const scout = await as(url, "agent:scout");
  expect((await page(scout)).agents).toMatchObject([{ agent: "scout", completed: 1 }]);
  expect((await page(scout, "?cursor=scout")).agents).toEqual([]);
  expect((await page(await as(url, "caller:alice"))).agents).toEqual([]);
  for (const kind of ["viewer:wall", "approver:ann"]) {
    expect((await page(await as(url, kind))).agents).toMatchObject([{ agent: "coder" }, { completed: 1 }]);
  }
  const first = await page(api, "?limit=1");
  expect([first.agents.length, first.next_cursor]).toEqual([1, "coder"]);
  const both = await new Admin({ url, token: OPERATOR }).statsByAgent({ pageSize: 1 });
  expect(both.agents.map(({ agent }) => agent)).toEqual(["coder", "scout"]);
  expect((await api.call("GET", "/v1/stats/agents?limit=101")).status).toBe(400);

  // Not those of a deleted agent of the same name.
  await api.call("DELETE", "/v1/agents/scout?force=true");
  await api.agent("scout");
  clock.offset_ms += 10_000;
  expect((await page()).agents[1]).toMatchObject({ agent: "scout", completed: 0 });
  expect((await page(await as(url, "agent:scout"))).agents).toMatchObject([{ completed: 0 }]);
});

test("a gateway reads a page at most once in ten seconds", async () => {
  const { api, clock, done, page } = await setup();
  await api.agent("scout");
  expect((await page()).agents).toMatchObject([{ completed: 0 }]);
  await done("scout");
  clock.offset_ms += 9_000;
  expect((await page()).agents).toMatchObject([{ completed: 0 }]);
  clock.offset_ms += 1_000;
  expect((await page()).agents).toMatchObject([{ completed: 1 }]);
});

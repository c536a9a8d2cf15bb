import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Broker } from "../../src/engine/broker.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { eventsOf } from "../support/history.ts";
import { until } from "../support/until.ts";

const AGENTS = ["lead", "scout", "smith"] as const;
type Agent = (typeof AGENTS)[number];
const LEASE = { wait_seconds: 5, lease_seconds: 3_600 };

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const { clock, gateway } = broker;
  const api = client(broker.url);
  for (const name of AGENTS) await api.agent(name);
  const alice = await as(broker.url, "caller:alice");
  const agents = {
    lead: await as(broker.url, "agent:lead"),
    scout: await as(broker.url, "agent:scout"),
    smith: await as(broker.url, "agent:smith"),
  };
  const leased = async (agent: Agent) => (await agents[agent].lease(agent, LEASE)).body.leases[0];
  /** A delegation at work with a child at work, which has one, too. */
  const tree = async (more: Record<string, unknown>, inner: Record<string, unknown> = {}) => {
    const made: { id: string; lease: string; report: (usage: object) => ReturnType<typeof api.call> }[] = [];
    for (const [at, agent] of AGENTS.entries()) {
      const above = AGENTS[at - 1];
      const by = above === undefined ? alice : agents[above];
      const body = at === 0 ? more : { ...(at === 1 && inner), parent_id: made[at - 1]?.id };
      const answer = await by.delegate(agent, body);
      expect(answer.status).toBe(202);
      const { lease_id } = await leased(agent);
      const report = (usage: object) => agents[agent].heartbeat(lease_id, { usage });
      made.push({ id: answer.body.id, lease: lease_id, report });
    }
    const [root, middle, leaf] = made;
    if (!root || !middle || !leaf) throw new RangeError("no tree");
    return { root, middle, leaf };
  };
  const budget = async (id: string) => (await api.get(id)).body.budget;
  const sweepAfter = async (ms: number) => {
    clock.offset_ms += ms;
    await gateway.sweep.tick();
  };
  return { ...broker, api, alice, ...agents, leased, tree, budget, sweepAfter };
}

test.each([1, 7])(
  "a tree that uses too much fails, after its worker was notified, with %i shards",
  async (shards) => {
    const { api, alice, lead, tree, budget, sweepAfter } = await setup({ shards });
    const { root, middle, leaf } = await tree({
      budget: { tokens: 1_000, cost: 2, currency: "USD", attempts: 9 },
    });
    await leaf.report({ input_tokens: 300, output_tokens: 100, cost: 0.7, currency: "USD" });
    await leaf.report({ input_tokens: 300, output_tokens: 100, cost: 0.7, currency: "USD" });
    await middle.report({ input_tokens: 100, cost: 0.1, currency: "USD" });
    await root.report({ output_tokens: 500 });
    await until(async () => (await budget(root.id)).used.tokens === 1_000);
    expect(await budget(root.id)).toEqual({
      limit: { tokens: 1_000, cost: 2, currency: "USD", attempts: 9 },
      used: { tokens: 1_000, cost: 0.8, currency: "USD", attempts: 3 },
    });
    const used = { tokens: 500, cost: 0.8, currency: "USD", attempts: 2 };
    expect(await budget(middle.id)).toEqual({ of: root.id, used });
    expect((await leaf.report({ cost: 1, currency: "EUR" })).body).toMatchObject({
      code: "usage_currency",
      details: {
        issues: [{ reason: "must be USD, as in the budget of this delegation or of one above it" }],
      },
    });

    const waiting = lead.heartbeat(root.lease, { wait_seconds: 20 });
    await leaf.report({ input_tokens: 301 });
    await until(async () => (await budget(root.id)).exceeded === true);
    await sweepAfter(0);
    expect((await waiting).body).toMatchObject({
      state: "working",
      budget: { used: { tokens: 1_001 }, exceeded: true, stops_at: expect.any(String) },
    });
    await leaf.report({ input_tokens: 302 });
    await sweepAfter(29_000);
    expect((await alice.get(root.id)).body.state).toBe("working");
    await sweepAfter(2_000);
    expect((await alice.get(root.id)).body).toMatchObject({
      state: "failed",
      error: { code: "budget_exceeded" },
    });
    for (const { id } of [middle, leaf])
      await until(async () => (await api.get(id)).body.state === "canceled");
    expect((await lead.heartbeat(root.lease)).body).toMatchObject({
      code: "lease_lost",
      details: { reason: "over_budget" },
    });
    const events = await eventsOf(
      { events: (id, query) => api.call("GET", `/v1/delegations/${id}/events${query}`) },
      root.id,
    );
    expect(events.filter(({ status }) => status === "over_budget")).toMatchObject([
      { budget: { used: { tokens: 1_001 } } },
    ]);
  },
);

test("a budget within another counts for both, and stops only its own part", async () => {
  const { api, tree, budget, sweepAfter } = await setup();
  const { root, middle, leaf } = await tree({ budget: { tokens: 1_000 } }, { budget: { tokens: 50 } });
  expect(await budget(leaf.id)).toMatchObject({ of: middle.id });
  await leaf.report({ input_tokens: 51 });
  await until(async () => (await budget(middle.id)).exceeded === true);
  await sweepAfter(0);
  await sweepAfter(31_000);
  expect((await api.get(middle.id)).body.error.code).toBe("budget_exceeded");
  await until(async () => (await api.get(leaf.id)).body.state === "canceled");
  expect((await api.get(root.id)).body).toMatchObject({ state: "working", budget: { used: { tokens: 51 } } });
});

test("a parent that waits for its parts is asked for, and an answer raises the budget", async () => {
  const { api, alice, lead, leased, tree, budget, sweepAfter } = await setup();
  const { root, middle, leaf } = await tree({ budget: { tokens: 100 }, on_budget: "ask" });
  await lead.await(root.lease, [middle.id]);
  await leaf.report({ input_tokens: 150 });
  await until(async () => (await budget(root.id)).exceeded === true);
  await sweepAfter(0);
  const asked = (await alice.get(root.id)).body;
  expect(asked).toMatchObject({
    state: "input_required",
    interrupt: { requests: [{ action: { name: "raise_budget" } }] },
  });
  const { id: question } = asked.interrupt;
  for (const data of [{ tokens: 149 }, { tokens: 150 }, {}]) {
    const low = await alice.answer(root.id, question, { decision: "approve", data });
    expect([low.status, low.body.code]).toEqual([400, "invalid_request"]);
    expect(low.body.details.issues).toMatchObject([{ path: "data.tokens" }]);
  }
  const other = await alice.answer(root.id, question, { decision: "approve", data: { cost: 1 } });
  expect(other.body.code).toBe("invalid_request");
  const raised = await alice.answer(root.id, question, { decision: "approve", data: { tokens: 500 } });
  expect(raised.body).toMatchObject({
    state: "submitted",
    budget: { limit: { tokens: 500 }, used: { tokens: 150 } },
  });
  // Its worker gets the task again, not the answer, and no end of a wait.
  const again = await leased("lead");
  expect(again.request.params.message.parts).toEqual([{ text: "do it" }]);
  expect(again).not.toHaveProperty("awaited");
  expect(again.delegation.budget.limit).toEqual({ tokens: 500 });
  expect((await api.get(leaf.id)).body.state).toBe("working");
  const settled = (await alice.call("GET", "/v1/answers")).body.answers[0];
  expect(settled).toMatchObject({
    outcome: "answered",
    by: "caller:alice",
    requests: [{ action: "raise_budget" }],
  });
});

test("a denial fails the tree, and its repeat is the same answer", async () => {
  const { alice, api, tree, budget, sweepAfter } = await setup();
  const { root, middle, leaf } = await tree({
    budget: { attempts: 2 },
    on_budget: "ask",
    children_on_failure: "keep",
  });
  await until(async () => (await budget(root.id)).exceeded === true);
  await sweepAfter(0);
  await sweepAfter(31_000);
  const { interrupt } = (await alice.get(root.id)).body;
  expect(interrupt.requests[0].message.parts[0].text).toContain("attempts 3 of 2");
  for (let n = 0; n < 2; n += 1) {
    const denied = await alice.answer(root.id, interrupt.id, { decision: "deny" });
    expect(denied.body).toMatchObject({ state: "failed", error: { code: "budget_exceeded" } });
  }
  const events = await eventsOf(
    { events: (id, query) => api.call("GET", `/v1/delegations/${id}/events${query}`) },
    root.id,
  );
  expect(events.at(-1)).toMatchObject({ by: "caller:alice", via: "rest", decision: "deny" });
  // Nothing may go on without a budget.
  for (const { id } of [middle, leaf]) await until(async () => (await api.get(id)).body.state === "canceled");
  const settled = (await alice.call("GET", "/v1/answers")).body.answers[0];
  expect(settled).toMatchObject({
    outcome: "answered",
    by: "caller:alice",
    requests: [{ decision: "deny" }],
  });
});

test("all that is under it is canceled: what a part keeps, and what a part that has ended left", async () => {
  const { api, alice, lead, scout, leased, sweepAfter, budget } = await setup();
  const root = (await alice.delegate("lead", { budget: { tokens: 10 } })).body.id;
  const { lease_id } = await leased("lead");
  const leaves: string[] = [];
  for (const ends of [true, false]) {
    const part = (await lead.delegate("scout", { parent_id: root, children_on_failure: "keep" })).body.id;
    const work = await leased("scout");
    leaves.push((await scout.delegate("smith", { parent_id: part })).body.id);
    if (ends) await scout.reply(work.lease_id);
  }
  await lead.heartbeat(lease_id, { usage: { input_tokens: 11 } });
  await until(async () => (await budget(root)).exceeded === true);
  await sweepAfter(0);
  await sweepAfter(31_000);
  expect((await api.get(root)).body.error.code).toBe("budget_exceeded");
  for (const id of leaves) await until(async () => (await api.get(id)).body.state === "canceled");
});

test("a budget goes on after its delegation has ended", async () => {
  const { api, lead, scout, tree } = await setup();
  const { root, middle, leaf } = await tree({ budget: { tokens: 100 } });
  await lead.reply(root.lease);
  await scout.reply(middle.lease);
  await leaf.report({ input_tokens: 100 });
  expect((await api.get(leaf.id)).body.state).toBe("working");
  await leaf.report({ input_tokens: 101 });
  await until(async () => (await api.get(leaf.id)).body.state === "canceled");
  expect((await api.get(root.id)).body).toMatchObject({ state: "completed", budget: { exceeded: true } });
});

test("a heartbeat that begins after the notice is not held for long", async () => {
  const { lead, tree, sweepAfter } = await setup();
  const { root } = await tree({ budget: { tokens: 10 } });
  await root.report({ input_tokens: 11 });
  await sweepAfter(0);
  const began = performance.now();
  const { body } = await lead.heartbeat(root.lease, { wait_seconds: 60 });
  expect(body.budget.exceeded).toBe(true);
  expect(performance.now() - began).toBeLessThan(50_000);
});

test("an answer cannot set an amount to zero", async () => {
  const { alice, tree, budget, sweepAfter } = await setup();
  const { root } = await tree({ budget: { tokens: 10, cost: 5, currency: "USD" }, on_budget: "ask" });
  await root.report({ input_tokens: 11 });
  await sweepAfter(0);
  await sweepAfter(31_000);
  const { id } = (await alice.get(root.id)).body.interrupt;
  const zero = await alice.answer(root.id, id, { decision: "approve", data: { tokens: 20, cost: 0 } });
  expect([zero.status, zero.body.code]).toEqual([400, "invalid_request"]);
  const little = await alice.answer(root.id, id, { decision: "approve", data: { tokens: 20, cost: 0.01 } });
  expect(little.status).toBe(200);
  expect((await budget(root.id)).limit).toEqual({ tokens: 20, cost: 0.01, currency: "USD" });
});

test("a redrive has the same budget, and begins at nothing", async () => {
  const { alice, tree, sweepAfter } = await setup();
  const { root } = await tree({ budget: { tokens: 10, seconds: 600 }, on_budget: "ask" });
  await root.report({ input_tokens: 5 });
  await sweepAfter(3_700_000);
  await sweepAfter(3_700_000);
  await sweepAfter(0);
  await alice.call("POST", `/v1/delegations/${root.id}/answer`, {
    interrupt_id: (await alice.get(root.id)).body.interrupt.id,
    decision: "deny",
  });
  const again = (await alice.call("POST", `/v1/delegations/${root.id}/redrive`)).body;
  expect(again.budget).toEqual({
    limit: { tokens: 10, seconds: 600 },
    used: { tokens: 0, attempts: 0 },
    on_budget: "ask",
  });
});

test("a budget that makes no sense is refused, and so is a usage", async () => {
  const { alice, lead, leased } = await setup();
  const refusals: [Record<string, unknown>, string][] = [
    [{ budget: {} }, "budget"],
    [{ budget: { tokens: 0 } }, "budget.tokens"],
    [{ budget: { tokens: 1.5 } }, "budget.tokens"],
    [{ budget: { cost: -1, currency: "USD" } }, "budget.cost"],
    [{ budget: { cost: "NaN", currency: "USD" } }, "budget.cost"],
    [{ budget: { cost: 1 } }, "budget.currency"],
    [{ budget: { tokens: 1, currency: "USD" } }, "budget.currency"],
    [{ budget: { cost: 1, currency: "ZZZ" } }, "budget.currency"],
    [{ budget: { seconds: 0 } }, "budget.seconds"],
    [{ budget: { attempts: -2 } }, "budget.attempts"],
    [{ on_budget: "ask" }, "on_budget"],
    [{ budget: { tokens: 1 }, on_budget: "beg" }, "on_budget"],
  ];
  for (const [more, path] of refusals) {
    const { status, body } = await alice.delegate("lead", more);
    expect([status, body.code, body.details.issues[0].path]).toEqual([400, "invalid_request", path]);
  }
  const { id } = (await alice.delegate("lead", { budget: { cost: 1, currency: "USD" } })).body;
  const other = await alice.delegate("scout", { parent_id: id, budget: { cost: 1, currency: "EUR" } });
  expect(other.body.details.issues).toEqual([
    { path: "budget.currency", reason: `the budget of ${id} is in USD` },
  ]);
  const { lease_id } = await leased("lead");
  for (const usage of [{ input_tokens: -1 }, { cost: 1, currency: "ZZZ" }, { cost: "NaN", currency: "USD" }])
    expect((await lead.heartbeat(lease_id, { usage })).body.code).toBe("invalid_request");
  await lead.heartbeat(lease_id, { usage: { input_tokens: 10 } });
  expect((await lead.heartbeat(lease_id, { usage: { input_tokens: 9 } })).body.code).toBe("usage_shrinks");
});

/** How a gateway dies at a delivery between records: before Redis has the call, or before it answers. */
const deaths = fc.constantFrom("lives", "before", "after");
const steps = fc.array(
  fc.record({ who: fc.nat(2), tokens: fc.nat(50), via: fc.nat(1), at: fc.nat(4), death: deaths }),
  { minLength: 3, maxLength: 12 },
);

test("sums are exact, wherever a gateway dies between a report and its delivery", async () => {
  const { tree, budget, clock, another, gateway, lead, scout, smith } = await setup({ shards: 7 });
  const second = await another();
  const other = {
    lead: client(second.url, lead.token),
    scout: client(second.url, scout.token),
    smith: client(second.url, smith.token),
  };
  const dying = [gateway, second.gateway].map(({ broker }) => new Dying(broker));
  await fc.assert(
    fc.asyncProperty(steps, async (walk) => {
      const { root, middle, leaf } = await tree({ budget: { tokens: 1_000_000 } });
      const used = [0, 0, 0];
      for (const { who, tokens, via, at, death } of walk) {
        const { lease, report } = [root, middle, leaf][who] ?? root;
        used[who] = (used[who] ?? 0) + tokens;
        const usage = { input_tokens: used[who] };
        const agent = AGENTS[who] ?? "lead";
        dying[via % 2]?.dieAt(death, at);
        const { status } = via === 0 ? await report(usage) : await other[agent].heartbeat(lease, { usage });
        expect(status).toBe(200);
        for (const one of dying) await one.settled();
        for (const one of dying) one.dieAt("lives", 0);
      }
      // What a gateway left, the sweep of another one delivers: level by level.
      for (let level = 0; level < 3; level += 1) {
        clock.offset_ms += 6_000;
        await second.gateway.sweep.tick();
        for (const one of dying) await one.settled();
      }
      const [ofRoot = 0, ofMiddle = 0, ofLeaf = 0] = used;
      expect((await budget(leaf.id)).used).toEqual({ tokens: ofLeaf, attempts: 1 });
      expect((await budget(middle.id)).used).toEqual({ tokens: ofLeaf + ofMiddle, attempts: 2 });
      expect((await budget(root.id)).used).toEqual({ tokens: ofLeaf + ofMiddle + ofRoot, attempts: 3 });
      await lead.reply(root.lease);
    }),
    { numRuns: 12 },
  );
});

/** A gateway whose moves between records fail from the n-th on. */
class Dying {
  readonly #broker: Broker;
  #death = "lives";
  #left = 0;

  constructor(broker: Broker) {
    this.#broker = broker;
    const move = broker.writer.move.bind(broker.writer);
    vi.spyOn(broker.writer, "move").mockImplementation(async (command, taker) => {
      const isBetween = command.move === "spend" || command.move === "follow_up";
      if (isBetween) this.#left -= 1;
      const dies = isBetween && this.#death !== "lives" && this.#left < 0;
      if (dies && this.#death === "before") throw new Error("the gateway is dead");
      const result = await move(command, taker);
      if (dies) throw new Error("the gateway is dead");
      return result;
    });
  }

  dieAt(death: string, left: number): void {
    this.#death = death;
    this.#left = left;
  }

  async settled(): Promise<void> {
    while (this.#broker.background.size > 0) await Promise.allSettled(this.#broker.background);
  }
}

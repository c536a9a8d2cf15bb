/**
 * Kills a gateway before each of its commands to Redis, one after the other: where a conversation has a line, where delegators
 * take turns by weight, and where what a part has used is on its way to the budget above.
 */
import { expect, test } from "vitest";
import { as } from "../support/broker.ts";
import { type Api, crashWalk, keyOf, type Made, type Verb } from "../support/crash-walk.ts";
import { fieldOf } from "../support/record.ts";
import { usedWithin } from "../support/used.ts";

const serial = { serial_by: "context" };
/** The first of the conversation is leased. */
const leasedFirst = async (api: Api) => {
  const context_id = crypto.randomUUID();
  const { id } = (await api.delegate("scout", { context_id })).body;
  const [lease] = (await api.lease("scout")).body.leases;
  expect(lease.delegation.id).toBe(id);
  return { id: String(id), lease: String(lease.lease_id), context_id };
};
/** And the second one waits behind it. */
const leasedAndBehind = async (api: Api) => {
  const first = await leasedFirst(api);
  expect((await api.delegate("scout", { context_id: first.context_id })).body.behind).toBe(first.id);
  return first;
};

/** The others had their first lease once the first one had ended. */
const inTurn: NonNullable<Verb["check"]> = async ({ api, made, ids }) => {
  const at = async (id: string, is: (event: { status?: string; state: string }) => boolean) =>
    Date.parse((await api.events(id)).body.events.find(is)?.at ?? "");
  const end = await at(made.id, ({ state }) => state === "completed" || state === "canceled");
  const { context_id } = (await api.get(made.id)).body;
  for (const id of ids) {
    if (id === made.id || (await api.get(id)).body.context_id !== context_id) continue;
    expect(await at(id, ({ status }) => status === "leased")).toBeGreaterThanOrEqual(end);
  }
};

const LIMIT = 30;
interface Part extends Made {
  readonly root: string;
}
/** A part of work with a budget is leased, and so is that work. */
const leasedPart = async (api: Api): Promise<Part> => {
  const root = (await api.delegate("scout", { budget: { tokens: LIMIT } })).body.id;
  await api.lease("scout");
  const { id } = (await api.delegate("scout", { parent_id: root })).body;
  const [lease] = (await api.lease("scout")).body.leases;
  expect(lease.delegation.id).toBe(id);
  return { id, lease: lease.lease_id, root };
};
const budgeted = (act: Verb<Part>["act"]): Verb<Part> => ({
  prepare: leasedPart,
  act,
  isDone: async ({ redis }, { id }) => (await fieldOf(redis, keyOf(id), "spends")) === undefined,
  async check({ api, broker, made, ids, survived }) {
    for (let round = 0; round < 3; round += 1) {
      broker.clock.offset_ms += 61_000;
      await broker.gateway.sweep.tick();
      await Promise.allSettled(broker.gateway.broker.background);
    }
    for (const id of ids) expect(await fieldOf(broker.redis, keyOf(id), "spends")).toBeUndefined();
    const { state, error, budget } = (await api.get(made.root)).body;
    expect(budget.used).toEqual(await usedWithin(api, ids));
    const isOver = budget.used.tokens > LIMIT;
    expect(budget.exceeded ?? false).toBe(isOver);
    // The sum of a gateway that was killed may arrive when the work has ended already.
    if (survived) expect(isOver).toBe(true);
    if (survived || !isOver) expect(state).toBe(isOver ? "failed" : "completed");
    expect(error?.code).toBe(state === "failed" ? "budget_exceeded" : undefined);
  },
});
const usage = { input_tokens: LIMIT + 10 };

const LINES: Record<string, Verb> = {
  "delegate behind another, and with more turns than another": {
    agent: { ...serial, delegator_weights: { operator: 3 } },
    prepare: async (api, { url }) => {
      const first = await leasedFirst(api);
      const other = await as(url, "caller:other");
      for (let n = 0; n < 2; n += 1) await other.delegate("scout");
      return first;
    },
    act: async (api, { id }) => {
      const { context_id } = (await api.get(id)).body;
      const [one, two] = [
        { target: "scout", task: "next" },
        { target: "scout", task: "more" },
      ];
      return api.call("POST", "/v1/delegations/batch", { delegations: [{ ...one, context_id }, two] });
    },
    check: async (walk) => {
      await inTurn(walk);
      // Nobody keeps turns in a queue without work.
      expect(await walk.broker.redis.exists("{errand:0}:turns:scout")).toBe(0);
    },
  },
  "reply that admits the next": {
    agent: serial,
    prepare: leasedAndBehind,
    act: (api, { lease }) => api.reply(lease),
    check: inTurn,
  },
  "cancel that admits the next": {
    agent: serial,
    prepare: leasedAndBehind,
    act: (api, { id }) => api.cancel(id),
    check: inTurn,
  },
};
const BUDGETS: Record<string, Verb<Part>> = {
  "report to the budget above": budgeted((api, { lease }) => api.heartbeat(lease, { usage })),
  "reply to the budget above": budgeted((api, { lease }) => api.reply(lease, { usage })),
};

const NAME = "%s: nothing is lost, done twice or out of turn, wherever the gateway dies";
test.each(Object.entries(LINES))(NAME, { timeout: 240_000 }, (_name, verb) => crashWalk(verb));
test.each(Object.entries(BUDGETS))(NAME, { timeout: 240_000 }, (_name, verb) => crashWalk(verb));

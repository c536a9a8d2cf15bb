/**
 * Rules at two gateways: what one reads and compares, the other may revoke, use up or deny before the script runs. Once that is
 * acknowledged, nothing answers by the rule any more.
 */
import { expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";

const QUESTION = { text: "Shall I?", action: { name: "write", arguments: { path: "/srv/a" } } };
const RULE = { agent: "scout", action: "write", arguments: [{ name: "path", path_prefix: "/srv" }] };

async function setup(agents = 1) {
  const { gateway, url, clock, another } = await startBroker();
  const other = await another();
  const api = client(other.url);
  const alice = await as(url, "caller:alice");
  const ann = await as(other.url, "approver:ann");
  const scout = await as(url, "agent:scout");
  await api.agent("scout");
  const create = async (more: Record<string, unknown> = {}) => {
    const made = await ann.call("POST", "/v1/rules", { ...RULE, decision: "approve", ...more });
    expect(made.status).toBe(201);
    return String(made.body.id);
  };
  for (let n = 0; n < agents; n += 1) await alice.delegate("scout");
  const leases: { lease_id: string; delegation: { id: string } }[] = [];
  while (leases.length < agents) leases.push(...(await scout.lease("scout", { max: 10 })).body.leases);
  const scouts = [client(url, scout.token), client(other.url, scout.token)];
  const rule = async (id: string) => (await api.call("GET", `/v1/rules/${id}`)).body;
  return { gateway, clock, api, ann, create, leases, scouts, rule };
}

/** Runs between what the first gateway reads and its script, once. */
function beforeScript(
  { gateway }: Pick<Awaited<ReturnType<typeof setup>>, "gateway">,
  act: () => Promise<unknown>,
) {
  const { writer } = gateway.broker;
  const moveBoth = writer.moveBoth.bind(writer);
  vi.spyOn(writer, "moveBoth").mockImplementationOnce(async (one, two) => {
    await act();
    return moveBoth(one, two);
  });
}

type Setup = Awaited<ReturnType<typeof setup>>;

test.each<[string, (all: Setup, id: string) => Promise<unknown>, string, string?]>([
  ["revoked", ({ ann }, id) => ann.call("DELETE", `/v1/rules/${id}`), "input_required"],
  ["revoked by the operator", ({ api }, id) => api.call("DELETE", `/v1/rules/${id}`), "input_required"],
  [
    "revoked with its token",
    ({ api, ann }) => api.call("DELETE", `/v1/tokens/${ann.tokenId}`),
    "input_required",
  ],
  ["denied", ({ create }) => create({ decision: "deny" }), "submitted", "deny"],
  [
    "denied as far as is clear",
    ({ create }) => create({ decision: "deny", arguments: [{ name: "path", path_prefix: "/srv/a/b" }] }),
    "input_required",
  ],
  [
    "refused by the agent",
    ({ api }) => api.call("PATCH", "/v1/agents/scout", { approvals: "person" }),
    "input_required",
  ],
  [
    "expired",
    async ({ clock }) => {
      clock.offset_ms += 5_000;
    },
    "input_required",
  ],
  [
    "used up",
    async ({ scouts, leases }) => {
      await scouts[1]?.interrupt(leases[1]?.lease_id ?? "", QUESTION);
    },
    "input_required",
  ],
  ["not touched", async ({ ann }) => ann.call("GET", "/v1/rules"), "submitted", "approve"],
])("a rule that is %s after it was read answers nothing by it", async (_name, act, state, decision) => {
  const all = await setup(2);
  const { api, create, leases, scouts } = all;
  const id = await create({ max_uses: 1, for_seconds: 5 });
  beforeScript(all, () => act(all, id));
  const [lease] = leases;
  expect((await scouts[0]?.interrupt(lease?.lease_id ?? "", QUESTION))?.status).toBe(200);
  const after = (await api.get(lease?.delegation.id ?? "")).body;
  expect([after.state, after.history[1]?.metadata.decision]).toEqual([state, decision]);
});

test("a denial that is created meanwhile also stops what was approved with the task", async () => {
  const all = await setup(0);
  const { api, gateway, create, scouts } = all;
  const { id } = (await api.delegate("scout", { auto_approve: true })).body;
  const [lease] = (await scouts[0]?.lease("scout"))?.body.leases ?? [];
  await create({ action: "read" });
  beforeScript({ gateway }, () => create({ decision: "deny" }));
  await scouts[0]?.interrupt(lease.lease_id, QUESTION);
  expect((await api.get(id)).body.history[1].metadata).toMatchObject({ decision: "deny" });
});

test("rules that change again and again leave the question to a person", async () => {
  const all = await setup();
  const { api, gateway, create, leases, scouts } = all;
  await create();
  const { writer } = gateway.broker;
  const moveBoth = writer.moveBoth.bind(writer);
  vi.spyOn(writer, "moveBoth").mockImplementation(async (one, two) => {
    await create();
    return moveBoth(one, two);
  });
  const [lease] = leases;
  await scouts[0]?.interrupt(lease?.lease_id ?? "", QUESTION);
  expect((await api.get(lease?.delegation.id ?? "")).body.state).toBe("input_required");
});

test("a number of uses holds at two gateways at once", async () => {
  const { api, create, leases, scouts, rule } = await setup(20);
  const id = await create({ max_uses: 7 });
  await Promise.all(leases.map(({ lease_id }, n) => scouts[n % 2]?.interrupt(lease_id, QUESTION)));
  const states = await Promise.all(
    leases.map(async ({ delegation }) => (await api.get(delegation.id)).body.state),
  );
  expect(states.filter((state) => state === "submitted")).toHaveLength(7);
  expect(states.filter((state) => state === "input_required")).toHaveLength(13);
  expect(await rule(id)).toMatchObject({ uses: 7, state: "used_up" });
});

test("after a revocation is acknowledged, its uses grow no more", async () => {
  const { ann, api, create, leases, scouts, rule } = await setup(60);
  for (let round = 0; round < 6; round += 1) {
    const id = await create();
    const some = leases.slice(round * 10, round * 10 + 10);
    const asking = some.map(async ({ lease_id }, n) => {
      for (let turns = 0; turns < n; turns += 1) await new Promise(setImmediate);
      await scouts[n % 2]?.interrupt(lease_id, QUESTION);
    });
    for (let turns = 0; turns < round * 3; turns += 1) await new Promise(setImmediate);
    expect((await ann.call("DELETE", `/v1/rules/${id}`)).status).toBe(204);
    const { uses } = await rule(id);
    await Promise.all(asking);
    expect((await rule(id)).uses).toBe(uses);
    const states = await Promise.all(
      some.map(async ({ delegation }) => (await api.get(delegation.id)).body.state),
    );
    expect(states.filter((state) => state === "submitted")).toHaveLength(uses);
  }
});

/** The usage of a delegation over HTTP. */
import { expect, test } from "vitest";
import { client, startBroker } from "../../support/broker.ts";

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const id: string = (await api.delegate("scout")).body.id;
  const lease: string = (await api.lease("scout")).body.leases[0].lease_id;
  return { api, id, lease };
}

test.each([
  ["input_tokens", -1],
  ["output_tokens", 1.5],
  ["cached_tokens", 2 ** 53],
  ["reasoning_tokens", "1"],
  ["cost", -0.01],
  ["cost", null],
  ["cost", 1e13],
  ["currency", "usd"],
  ["model", ""],
  ["model", "x".repeat(129)],
  ["dollars", 1],
])("%s %s is refused by name", async (name, value) => {
  const { api, id, lease } = await setup();
  const usage = { currency: "USD", [name]: value };
  for (const { status, body } of [
    await api.heartbeat(lease, { usage }),
    await api.reply(lease, { state: "completed", usage }),
  ]) {
    expect([status, body.code]).toEqual([400, "invalid_request"]);
    expect(body.details.issues[0].path).toBe(`usage.${name}`);
  }
  expect((await api.get(id)).body.usage).toBeUndefined();
});

test("a cost needs a currency, and a refused reply may be repeated without usage", async () => {
  const { api, id, lease } = await setup();
  const refused = await api.reply(lease, { usage: { cost: 1 } });
  expect(refused.body.details.issues).toEqual([
    { path: "usage.currency", reason: "a cost needs its currency" },
  ]);
  expect((await api.heartbeat(lease, { usage: { cost: 1, currency: "USD" } })).status).toBe(200);
  const foreign = await api.reply(lease, { usage: { cost: 1, currency: "EUR" } });
  expect([foreign.status, foreign.body.code]).toEqual([422, "usage_currency"]);
  expect(foreign.body.details).toEqual({
    currency: "USD",
    issues: [{ path: "usage.currency", reason: "must be USD, as in earlier reports of this delegation" }],
  });
  expect((await api.get(id)).body.state).toBe("working");
  const { body } = await api.reply(lease);
  expect([body.outcome, body.delegation.usage.total]).toEqual([
    "matched",
    { cost: 1, currency: "USD", complete: false },
  ]);
});

test("a held heartbeat reports its usage once; lists and events show it", async () => {
  const { api, id, lease } = await setup();
  const usage = { input_tokens: 3 };
  await api.heartbeat(lease, { usage, progress: { done: 1 }, wait_seconds: 0.1 });
  await api.reply(lease, { usage: { input_tokens: 4, model: "m" } });
  const total = { input_tokens: 4, complete: true };
  const shown = { attempts: [{ attempt: 1, ...total, model: "m" }], total };
  expect((await api.call("GET", "/v1/delegations?target=scout")).body.delegations[0].usage).toEqual(shown);
  const { events } = (await api.events(id)).body;
  expect(events.map((event: { usage?: object }) => event.usage)).toEqual([
    undefined,
    undefined,
    usage,
    { input_tokens: 4 },
  ]);
});

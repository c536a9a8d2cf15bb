/** The Events extension: what it lists, and that polls from a cursor miss nothing and repeat nothing. */
import { expect, test } from "vitest";
import { as, startBroker } from "../../support/broker.ts";
import { requestModern } from "../../support/mcp.ts";

async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(url, "caller:alice");
  const ask = async (method: string, params: Record<string, unknown>, token = alice.token) =>
    (await requestModern(url, token, method, params)).body;
  const poll = async (params: Record<string, unknown>, token?: string) =>
    (await ask("events/poll", { name: "delegation.changed", ...params }, token)).result;
  const lease = async () => (await scout.lease("scout")).body.leases[0].lease_id;
  return { ...broker, scout, alice, ask, poll, lease };
}

const shown = ({ data }: { data: { status?: string; type: string } }) =>
  data.type === "DELEGATION_STATUS" ? data.status : data.type;

test("the server declares the extension, and each event type has a schema and is polled", async () => {
  const { ask } = await setup();
  const { result } = await ask("server/discover", {});
  expect(result.capabilities.extensions).toHaveProperty(["io.modelcontextprotocol/events"]);
  const { events } = (await ask("events/list", {})).result;
  expect(events.map(({ name }: { name: string }) => name)).toEqual([
    "delegation.ended",
    "delegation.question",
    "delegation.changed",
  ]);
  for (const { delivery, inputSchema, payloadSchema } of events)
    expect([delivery, inputSchema.type, payloadSchema.type]).toEqual([["poll"], "object", "object"]);
});

test("without a cursor a poll says where to begin; from there it misses nothing and repeats nothing", async () => {
  const { alice, scout, poll, lease } = await setup();
  await alice.delegate("scout");
  const begin = await poll({});
  expect(begin).toMatchObject({ events: [], truncated: false, hasMore: false, nextPollMs: 5_000 });
  const { id } = (await alice.delegate("scout")).body;
  await lease();
  await scout.reply(await lease());
  const all = await poll({ cursor: begin.cursor, arguments: { delegation_id: id } });
  expect(all.events.map(shown)).toEqual(["DELEGATION_SENT", "leased", "DELEGATION_COMPLETE"]);
  expect(all.events[2]).toMatchObject({
    name: "delegation.changed",
    eventId: all.events[2].cursor,
    timestamp: all.events[2].data.at,
    data: { delegation_id: id, state: "completed" },
  });
  // In pages of one, each from the cursor of the one before.
  const seen = [];
  for (let page = begin; ; ) {
    page = await poll({ cursor: page.cursor, arguments: { delegation_id: id }, maxEvents: 1 });
    seen.push(...page.events);
    expect(page.nextPollMs).toBe(page.hasMore ? 0 : 5_000);
    if (!page.hasMore) break;
  }
  expect(seen).toEqual(all.events);
  expect((await poll({ cursor: all.cursor, arguments: { delegation_id: id } })).events).toEqual([]);
});

test("each type has its own events, of what the caller may see", async () => {
  const { url, alice, scout, poll, lease } = await setup();
  const bob = await as(url, "caller:bob");
  const { cursor } = await poll({});
  const { id } = (await alice.delegate("scout")).body;
  await scout.interrupt(await lease(), { text: "Which?" });
  const ended = { cursor, name: "delegation.ended" };
  const question = { cursor, name: "delegation.question" };
  expect((await poll(question)).events.map(shown)).toEqual(["interrupted"]);
  expect((await poll(ended)).events).toEqual([]);
  await alice.call("POST", `/v1/delegations/${id}/cancel`);
  expect((await poll(ended)).events.map(shown)).toEqual(["DELEGATION_FAILED"]);
  for (const one of [ended, question, { cursor }]) expect((await poll(one, bob.token)).events).toEqual([]);
  expect((await poll({ cursor, arguments: { target: "other" } })).events).toEqual([]);
});

test("events that are too old for the client are left out, and it is told so", async () => {
  const { alice, poll, clock } = await setup();
  const { cursor } = await poll({});
  clock.offset_ms -= 60_000;
  await alice.delegate("scout");
  clock.offset_ms = 0;
  await alice.delegate("scout");
  const page = await poll({ cursor, maxAgeMs: 30_000 });
  expect([page.events.map(shown), page.truncated]).toEqual([["DELEGATION_SENT"], true]);
});

test.each([
  { what: "an unknown type", params: { name: "no.such" }, code: -32011, data: { kind: "event" } },
  { what: "no type", params: { name: undefined }, code: -32602 },
  { what: "an unknown argument", params: { arguments: { contxt: "c" } }, code: -32602 },
  { what: "an argument of another kind", params: { arguments: { target: 7 } }, code: -32602 },
  { what: "a cursor of another kind", params: { cursor: "nonsense" }, code: -32602 },
  { what: "no events at all", params: { maxEvents: 0 }, code: -32602 },
])("$what is refused", async ({ params, code, data }) => {
  const { ask } = await setup();
  const { error } = await ask("events/poll", { name: "delegation.changed", ...params });
  expect(error).toMatchObject({ code, ...(data && { data }) });
});

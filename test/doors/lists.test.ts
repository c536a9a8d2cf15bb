import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";

const JSON_ONLY = { accept: "application/json" };

async function setup(options = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  for (const name of ["scout", "other"]) await admin.agent(name);
  const alice = await as(broker.url, "caller:alice");
  const bob = await as(broker.url, "caller:bob");
  const finish = async (agent: string, reply: Record<string, unknown> = {}) => {
    const { leases } = (await admin.lease(agent)).body;
    await admin.reply(leases[0].lease_id, reply);
    return String(leases[0].delegation.id);
  };
  return { ...broker, admin, alice, bob, finish };
}

type Api = ReturnType<typeof client>;
const idsOf = (body: { delegations: { id: string }[] }) => body.delegations.map(({ id }) => id);

async function all(api: Api, query = ""): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const path: string = `/v1/delegations?${query}${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { status, body } = await api.call("GET", path);
    expect(status).toBe(200);
    ids.push(...idsOf(body));
    cursor = body.next_cursor;
  }
  return ids;
}

describe.each([1, 4])("lists, with %i shards", (shards) => {
  test("are newest first, paged without a gap or a repeat, whatever came in one instant", async () => {
    const { alice } = await setup({ shards });
    const made: string[] = [];
    for (let n = 0; n < 60; n += 1) made.push((await alice.delegate(n % 2 ? "scout" : "other")).body.id);
    const ids = await all(alice, "limit=7");
    expect(new Set(ids).size).toBe(60);
    expect([...ids].sort()).toEqual([...made].sort());
    const times = await Promise.all(ids.map(async (id) => Date.parse((await alice.get(id)).body.created_at)));
    expect(times).toEqual([...times].sort((a, b) => b - a));
  });

  test("show to each what it may see, by every index and filter", async () => {
    const { url, admin, alice, bob, finish } = await setup({ shards });
    const a1 = (await alice.delegate("scout", { context_id: "trip" })).body.id;
    await finish("scout", { state: "failed", error: { code: "no_fuel", message: "dry" } });
    const a2 = (await alice.delegate("other", { context_id: "trip" })).body.id;
    const b1 = (await bob.delegate("scout")).body.id;
    const scout = await as(url, "agent:scout");
    const s1 = (await scout.delegate("other")).body.id;
    const sorted = async (api: Api, query = "") => (await all(api, query)).sort();
    expect(await sorted(alice)).toEqual([a1, a2].sort());
    expect(await sorted(bob)).toEqual([b1]);
    expect(await sorted(scout)).toEqual([a1, b1, s1].sort());
    expect(await sorted(admin)).toEqual([a1, a2, b1, s1].sort());
    expect(await sorted(admin, "target=scout")).toEqual([a1, b1].sort());
    expect(await sorted(alice, "target=scout")).toEqual([a1]);
    expect(await sorted(bob, "delegator=caller:alice")).toEqual([]);
    expect(await sorted(alice, "context_id=trip")).toEqual([a1, a2].sort());
    expect(await sorted(admin, "context_id=trip&state=submitted")).toEqual([a2]);
    expect(await sorted(admin, "error_code=no_fuel")).toEqual([a1]);
    expect(await sorted(admin, "state=failed&error_code=other")).toEqual([]);
  });
});

test("a cursor that is none is refused", async () => {
  const { alice } = await setup();
  expect((await alice.call("GET", "/v1/delegations?cursor=x")).body.code).toBe("invalid_request");
  expect((await alice.call("GET", "/v1/results?after=x")).body.code).toBe("invalid_request");
});

describe("the inbox", () => {
  test("has what the caller delegated and finished, with replies, once each behind its cursor", async () => {
    const { alice, bob, finish } = await setup();
    const a1 = (await alice.delegate("scout")).body.id;
    await bob.delegate("scout");
    await alice.delegate("other");
    await finish("scout", { text: "one" });
    await finish("scout", { text: "two" });
    const first = (await alice.call("GET", "/v1/results")).body;
    expect(first.results).toMatchObject([
      { id: a1, state: "completed", reply: { parts: [{ text: "one" }] } },
    ]);
    const empty = (await alice.call("GET", `/v1/results?after=${first.cursor}`)).body;
    expect(empty.results).toEqual([]);
    const waiting = alice.call("GET", `/v1/results?after=${empty.cursor}&wait_seconds=10`);
    const a3 = await finish("other", { state: "rejected", text: "not mine" });
    const next = (await waiting).body;
    expect(next.results).toMatchObject([{ id: a3, state: "rejected", error: { code: "rejected" } }]);
    expect((await alice.call("GET", `/v1/results?after=${next.cursor}`)).body.results).toEqual([]);
  });

  test("is a working agent's too, apart from what it works on", async () => {
    const { url, admin, finish } = await setup();
    const scout = await as(url, "agent:scout");
    await admin.delegate("scout");
    await finish("scout");
    const mine = (await scout.delegate("other")).body.id;
    await finish("other");
    const { results } = (await scout.call("GET", "/v1/results")).body;
    expect(results.map(({ id }: { id: string }) => id)).toEqual([mine]);
  });
});

describe("artifacts", () => {
  test("come in chunks: streamed as they are, whole in the delegation", async () => {
    const { admin, alice } = await setup();
    const { id } = (await alice.delegate("scout")).body;
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const send = (artifactId: string, text: string, more = {}) =>
      admin.call("POST", `/v1/leases/${lease}/artifacts`, {
        artifact: { artifactId, name: artifactId, parts: [{ text }] },
        ...more,
      });
    await send("report", "a");
    await send("log", "x");
    await send("report", "b", { append: true });
    await send("log", "y");
    expect((await send("report", "c", { append: true, last_chunk: true })).status).toBe(200);
    await admin.reply(lease, {
      artifacts: [{ artifactId: "final", parts: [{ data: { n: 1, empty: [] } }] }],
    });
    const { artifacts } = (await alice.get(id)).body;
    expect(artifacts).toEqual([
      { artifactId: "report", name: "report", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] },
      { artifactId: "log", name: "log", parts: [{ text: "y" }] },
      { artifactId: "final", parts: [{ data: { n: 1, empty: [] } }] },
    ]);
    const { events } = (await alice.events(id)).body;
    const streamed = events.filter((event: { status?: string }) => event.status === "artifact");
    expect(streamed).toHaveLength(5);
    expect(streamed[4]).toMatchObject({
      append: true,
      last_chunk: true,
      artifact: { parts: [{ text: "c" }] },
    });
  });

  test("together with the rest have a limit, told as 413 with the lease kept", async () => {
    const { admin, alice } = await setup({ maxBodyBytes: 4_194_304 });
    const { id } = (await alice.delegate("scout")).body;
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const send = (artifactId: string, size: number) =>
      admin.call("POST", `/v1/leases/${lease}/artifacts`, {
        artifact: { artifactId, parts: [{ text: "x".repeat(size) }] },
      });
    expect((await send("a", 2_000_000)).status).toBe(200);
    expect(await send("b", 2_000_000)).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
    expect((await admin.reply(lease, { text: "x".repeat(2_000_000) })).status).toBe(413);
    expect((await admin.reply(lease, { text: "small" })).status).toBe(200);
    expect((await alice.get(id)).body.artifacts).toHaveLength(1);
    expect((await alice.delegate("scout", { task: "x".repeat(3_200_000) })).status).toBe(413);
  });
});

test("what is finished is forgotten after the retention time: record, lists and all", async () => {
  const { alice, clock, gateway, finish, redis } = await setup({ retentionMs: 1_000_000 });
  const { id } = (await alice.delegate("scout")).body;
  await finish("scout");
  clock.offset_ms = 999_000;
  await gateway.sweep.tick();
  expect((await alice.get(id)).status).toBe(200);
  clock.offset_ms = 1_010_000;
  await gateway.sweep.tick();
  expect((await alice.get(id)).status).toBe(404);
  expect(await all(alice)).toEqual([]);
  expect((await redis.keys("*")).filter((key) => key.includes(id) || key.includes(":list:"))).toEqual([]);
  expect((await alice.call("GET", "/v1/results", undefined, JSON_ONLY)).body.results).toEqual([]);
});

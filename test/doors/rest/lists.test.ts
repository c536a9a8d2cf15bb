/** Lists of delegations: their order, pages and filters, and what each principal sees. */
import { describe, expect, test, vi } from "vitest";
import type { Gateway } from "../../../src/gateway/gateway.ts";
import { as, type client } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";
import { setup } from "./two-callers.ts";

const JSON_ONLY = { accept: "application/json" };

/** Submits this many delegations of a delegator through the writer, for each agent in turn. */
async function submit(
  { broker }: Gateway,
  targets: readonly string[],
  delegator: string,
  count: number,
  more: Record<string, string> = {},
): Promise<string[]> {
  const one = async (_: unknown, n: number) => {
    const target = targets[n % targets.length] ?? "";
    const id = broker.shards.newDelegationId(target);
    const params = { target, delegator, context_id: "shared", priority: 5, ttl_ms: 86_400_000, ...more };
    const message = '{"messageId":"m","role":"ROLE_USER","parts":[]}';
    await broker.writer.move({ move: "submit", id, params, fields: { message } });
    return id;
  };
  return Promise.all(Array.from({ length: count }, one));
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

/** On different shards if there are four. */
const AGENTS = ["scout", "agent-0"];

describe.each([1, 4])("lists, with %i shards", (shards) => {
  test("are newest first, paged without a gap or a repeat", async () => {
    const { alice, admin, gateway } = await setup({ shards });
    const used = AGENTS.map((name) => gateway.broker.shards.indexOfAgent(name));
    expect(new Set(used).size).toBe(Math.min(shards, AGENTS.length));
    for (const name of AGENTS) await admin.agent(name);
    const made: string[] = [];
    for (let n = 0; n < 60; n += 1) made.push((await alice.delegate(AGENTS[n % 2] ?? "")).body.id);
    const ids = await all(alice, "limit=7");
    expect(new Set(ids).size).toBe(60);
    expect([...ids].sort()).toEqual([...made].sort());
    const times = await Promise.all(ids.map(async (id) => Date.parse((await alice.get(id)).body.created_at)));
    expect(times).toEqual([...times].sort((a, b) => b - a));
  });

  test("have all delegations of one instant, however many", async () => {
    const { alice, admin, gateway, redis } = await setup({ shards });
    for (const name of AGENTS) await admin.agent(name);
    const made = await submit(gateway, AGENTS, "caller:alice", 250);
    for (const id of made) {
      const list = gateway.broker.shards.ofId(id)?.list("delegator:caller:alice") ?? "";
      await redis.zadd(list, "XX", 1_700_000_000_000, id);
    }
    for (const limit of [30, 100]) {
      expect(await all(alice, `limit=${limit}`)).toEqual([...made].sort().reverse());
    }
  });

  test("show each principal what it may see, by every index and filter", async () => {
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

describe("a list for a principal that does not see everything", () => {
  /** More than one page reads. */
  const MANY = 1_100;

  async function withOthersWork(count: number) {
    const broker = await setup();
    const { alice, gateway } = broker;
    const mine: string[] = [];
    const delegate = async () => mine.push((await alice.delegate("scout", { context_id: "shared" })).body.id);
    await delegate();
    for (let half = 0; half < 2; half += 1) {
      await submit(gateway, ["scout"], "caller:bob", count / 2);
      await delegate();
    }
    return { ...broker, mine: mine.reverse() };
  }

  test.each([MANY, 200])(
    "has no work of others in its cursor, with %i delegations of others",
    async (count) => {
      const { alice, mine } = await withOthersWork(count);
      for (const query of ["target=scout", "context_id=shared", "delegator=caller:bob"]) {
        const found: string[] = [];
        for (let cursor: string | null = ""; cursor !== null; ) {
          const path: string = `/v1/delegations?limit=1&${query}${cursor && `&cursor=${cursor}`}`;
          const { body } = await alice.call("GET", path);
          found.push(...idsOf(body));
          cursor = body.next_cursor;
          if (cursor !== null) expect(mine).toContain(cursor.split(".")[1]);
        }
        expect(found).toEqual(query.startsWith("delegator") ? [] : mine);
      }
    },
  );

  test("reads no more than a page of others' delegations, and filters its own by the rest", async () => {
    const { alice, gateway } = await setup();
    const parent_id = (await alice.delegate("scout")).body.id;
    const child = (await alice.delegate("other", { parent_id })).body.id;
    await submit(gateway, ["scout"], "caller:bob", MANY, { parent_id });
    const looked = vi.spyOn(gateway.broker.bulk, "evalsha");
    expect(await all(alice, `parent_id=${parent_id}`)).toEqual([child]);
    expect(looked.mock.calls.length).toBeLessThan(10);
  });

  test("of an agent ends where an older agent of the same name ended", async () => {
    const { url, admin, alice, gateway } = await setup();
    await submit(gateway, ["scout"], "caller:bob", MANY);
    // The deletion treats it as finished.
    for (const state of ["submitted", "working", "interrupted"] as const) {
      await gateway.broker.redis.del(gateway.broker.shards.ofAgent("scout").live("scout", state));
    }
    expect((await admin.call("DELETE", "/v1/agents/scout")).status).toBeLessThan(300);
    await admin.agent("scout");
    const id = (await alice.delegate("scout")).body.id;
    const scout = await as(url, "agent:scout");
    const { body } = await scout.call("GET", "/v1/delegations?limit=100");
    expect({ ids: idsOf(body), next: body.next_cursor }).toEqual({ ids: [id], next: null });
  });
});

test("the lists of a parent and a context show nothing else to principals that see only their own", async () => {
  const { alice, finish } = await setup();
  const parent = (await alice.delegate("scout")).body.id;
  const child = (await alice.delegate("other", { parent_id: parent, context_id: "c" })).body.id;
  await alice.delegate("other", { context_id: "d" });
  expect(await all(alice, `parent_id=${parent}`)).toEqual([child]);
  expect(await all(alice, `parent_id=${parent}&context_id=d`)).toEqual([]);
  await finish("scout");
  expect(await all(alice, `parent_id=${parent}&context_id=c`)).toEqual([child]);
});

test("a cursor that is none is refused", async () => {
  const { alice } = await setup();
  expect((await alice.call("GET", "/v1/delegations?cursor=x")).body.code).toBe("invalid_request");
  expect((await alice.call("GET", "/v1/results?after=x")).body.code).toBe("invalid_request");
});

test("a finished delegation is deleted after the retention time, with its entries in lists", async () => {
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
  expect((await keysIn(redis, "*")).filter((key) => key.includes(id) || key.includes(":list:"))).toEqual([]);
  expect((await alice.call("GET", "/v1/results", undefined, JSON_ONLY)).body.results).toEqual([]);
});

test("are filtered by several states, by creation time, and by a part of the preview", async () => {
  const { alice, admin, finish } = await setup();
  const made: string[] = [];
  for (const task of ["Deploy the site", "Write a note", "deploy the DOCS €"]) {
    made.push(String((await alice.delegate("scout", { task })).body.id));
  }
  await finish("scout");
  const listed = async (query: string) => {
    const { status, body } = await alice.call("GET", `/v1/delegations?${query}`);
    expect(status).toBe(200);
    return { ids: idsOf(body), scanned_to: body.scanned_to };
  };
  const [first = "", second = "", third = ""] = made;
  expect((await listed("state=completed,canceled")).ids).toEqual([first]);
  expect((await listed("state=completed,submitted")).ids).toEqual([third, second, first]);
  expect((await listed("q=DEPLOY")).ids).toEqual([third, first]);
  expect((await listed("q=docs%20%E2%82%AC&state=submitted")).ids).toEqual([third]);
  expect(await listed("q=nothing")).toEqual({ ids: [], scanned_to: null });
  const at = async (id: string) => String((await admin.get(id)).body.created_at);
  const ended = async (id: string) => String((await admin.get(id)).body.finished_at);
  const [firstAt, thirdAt] = [await at(first), await at(third)];
  expect((await listed(`since=${thirdAt}`)).ids).toContain(third);
  expect((await listed(`until=${firstAt}`)).ids).toEqual([]);
  expect((await listed(`ended_since=${await ended(first)}`)).ids).toEqual([first]);
  expect((await listed(`ended_since=${await ended(first)}&state=submitted`)).ids).toEqual([]);
  const after = new Date(Date.parse(await ended(first)) + 1).toISOString();
  expect((await listed(`ended_since=${after}`)).ids).toEqual([]);
  const page = await listed("limit=1");
  expect(page).toEqual({ ids: [third], scanned_to: thirdAt });
  for (const wrong of ["state=done", "state=working,", "since=yesterday", "ended_since=1", "q="]) {
    const { body } = await alice.call("GET", `/v1/delegations?${wrong}`);
    expect([wrong, body.code]).toEqual([wrong, "invalid_request"]);
  }
});

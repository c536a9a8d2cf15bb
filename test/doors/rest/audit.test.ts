/** The audit log: its entries, readers and pages, and that it has no secrets. */
import { expect, test } from "vitest";
import { toPrincipal } from "../../../src/engine/access/access.ts";
import { audit } from "../../../src/engine/upkeep/audit.ts";
import { keys } from "../../../src/redis/keys.ts";
import { type AuditEntry, auditPageSchema } from "../../../src/schema/audit.ts";
import { as, client, startBroker } from "../../support/broker.ts";
import { onOneRedis } from "../../support/on-cluster.ts";

const OTHERS = keys.auditOthers;
const OPERATOR = toPrincipal("operator");
const SCOUT = toPrincipal("agent:scout");

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  const page = async (query = "") => {
    const { status, body } = await admin.call("GET", `/v1/audit${query}`);
    expect(status).toBe(200);
    return auditPageSchema.parse(body);
  };
  return { ...broker, admin, page };
}

test("tokens, pauses and deletions are logged with principal, action and time, newest first", async () => {
  const { url, admin, page, redis } = await setup();
  await admin.agent("scout");
  const alice = await as(url, "caller:alice");
  await admin.call("POST", "/v1/agents/scout/pause");
  await admin.call("POST", "/v1/agents/scout/resume");
  expect((await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`)).status).toBe(204);
  expect((await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`)).status).toBe(404);
  expect((await admin.call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);

  const { entries, next_cursor } = await page();
  expect(next_cursor).toBeNull();
  const relevant = entries.filter(({ action }) => action !== "agent.create");
  expect(relevant).toMatchObject([
    { by: "operator", action: "agent.delete", subject: "scout", details: { force: true } },
    { action: "token.revoke", subject: alice.tokenId, details: { principal: "caller:alice" } },
    { action: "agent.resume", subject: "scout" },
    { action: "agent.pause", subject: "scout" },
    {
      action: "token.create",
      subject: alice.tokenId,
      details: { principal: "caller:alice", expires_at: null },
    },
  ]);
  for (const { at } of entries) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);
  const stored = JSON.stringify(await redis.xrange("{errand}:audit", "-", "+"));
  expect(stored).not.toContain(alice.token);
});

test("only the operator may read it", async () => {
  const { url } = await setup();
  for (const principal of ["caller:alice", "agent:scout", "approver:ann", "viewer:eve"]) {
    const answer = await (await as(url, principal)).call("GET", "/v1/audit");
    expect([answer.status, answer.body.code]).toEqual([403, "forbidden"]);
  }
});

test("pages of both streams come in one order, each entry once; filters narrow them", async () => {
  const { gateway, clock, admin, page } = await setup();
  for (let n = 0; n < 12; n += 1) {
    // One millisecond per entry: within a millisecond, the operator's entries come first.
    clock.offset_ms += 1;
    await audit(gateway.broker, n % 3 === 0 ? OPERATOR : SCOUT, "agent.update", `a${n}`, { n });
  }
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = `?limit=5${cursor === null ? "" : `&cursor=${cursor}`}`;
    const found = await page(query);
    seen.push(...found.entries.map(({ subject }) => subject));
    cursor = found.next_cursor;
  } while (cursor !== null);
  expect(seen).toEqual(Array.from({ length: 12 }, (_, n) => `a${11 - n}`));

  expect((await page("?by=agent:scout&limit=3")).entries.map(({ subject }) => subject)).toEqual([
    "a11",
    "a10",
    "a8",
  ]);
  expect((await page("?action=agent.pause")).entries).toEqual([]);
  expect((await page("?subject=a3")).entries).toMatchObject([{ subject: "a3", details: { n: 3 } }]);
  for (const wrong of ["?cursor=x", "?action=x", "?limit=101", "?other=1"]) {
    expect((await admin.call("GET", `/v1/audit${wrong}`)).status).toBe(400);
  }
});

/** Fills the stream of all others as a version without shares wrote it. */
async function fill(redis: Awaited<ReturnType<typeof startBroker>>["redis"], by: string, number: number) {
  const adding = redis.pipeline();
  const rest = ["action", "agent.update", "subject", by, "details", "{}"];
  for (let n = 0; n < number; n += 1) adding.xadd(OTHERS, "*", "by", by, ...rest);
  const share = `${by}|rest`;
  const indexing = redis.pipeline().zincrby(`${OTHERS}:shares`, number, share);
  for (const [, id] of (await adding.exec()) ?? []) {
    const place = String(id)
      .split("-")
      .map((part) => part.padStart(16, "0"));
    indexing.zadd(`${OTHERS}:index`, 0, `${share}|${place.join("-")}`);
  }
  await indexing.exec();
}

test("it is bounded: others cannot displace the operator's entries, and old ones are deleted", async () => {
  const { gateway, page, redis, clock } = await setup();
  await audit(gateway.broker, OPERATOR, "agent.pause", "kept");
  await fill(redis, SCOUT.text, 1_150);
  await audit(gateway.broker, SCOUT, "agent.update", "scout", { huge: "x".repeat(2_000) });
  await audit(gateway.broker, SCOUT, "agent.update", "scout");
  expect(await redis.xlen(OTHERS)).toBe(1_000);
  expect((await page("?by=operator")).entries).toMatchObject([{ subject: "kept" }]);
  expect((await page("?limit=2")).entries[1]).toMatchObject({ details: { truncated: true } });

  clock.offset_ms = 91 * 86_400_000;
  expect((await page("?by=operator")).entries).toEqual([]);
  for (let n = 0; n < 10; n += 1) await audit(gateway.broker, SCOUT, "agent.update", "later");
  expect(new Set((await page()).entries.map(({ subject }) => subject))).toEqual(new Set(["later"]));
  expect(await redis.xlen(OTHERS)).toBe(10);
  expect([
    await redis.zcard(`${OTHERS}:index`),
    await redis.zrange(`${OTHERS}:shares`, "0", "-1", "WITHSCORES"),
  ]).toEqual([10, ["agent:scout|rest", "10"]]);
});

test("decisions have a share of their own, and the operator's are not among its changes", async () => {
  const { clock, gateway, page, redis } = await setup();
  const before = await redis.xlen(keys.audit);
  for (const by of [OPERATOR, SCOUT]) await audit(gateway.broker, by, "delegation.decide", "decided");
  await audit(gateway.broker, OPERATOR, "schedule.run", "ran");
  await audit(gateway.broker, OPERATOR, "rule.create", "ruled");
  await audit(gateway.broker, SCOUT, "agent.update", "changed");
  expect(await redis.xlen(keys.audit)).toBe(before);
  expect(await redis.zrange(`${OTHERS}:shares`, "0", "-1")).toEqual([
    "agent:scout|decisions",
    "agent:scout|rest",
    "operator|decisions",
    "operator|rules",
    "operator|schedules",
  ]);
  clock.offset_ms += 1;
  await audit(gateway.broker, OPERATOR, "agent.pause", "paused");
  const subjects = (await page("?by=operator")).entries.map(({ subject }) => subject);
  expect(subjects).toEqual(["paused", "ruled", "ran", "decided"]);
});

test("a principal cannot push out the entries of another, nor its own changes by sessions", async () => {
  const { gateway, page, redis } = await setup();
  const { broker } = gateway;
  const bob = toPrincipal("caller:bob");
  await audit(broker, bob, "session.create", "of bob");
  await audit(broker, SCOUT, "agent.update", "a change");
  // Somebody else has filled the stream, so the stream is full before the share of the noise is.
  for (let n = 0; n < 9; n += 1) await fill(redis, `caller:crowd-${n}`, 1_000);
  await fill(redis, "caller:large", 999);
  for (let n = 0; n < 25; n += 1)
    await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        audit(broker, SCOUT, at % 2 === 0 ? "session.create" : "session.revoke", `ses_${n}_${at}`),
      ),
    );
  expect(await redis.xlen(OTHERS)).toBe(10_000);
  /** All pages of a filtered list. */
  const all = async (filter: string) => {
    const found: AuditEntry[] = [];
    let cursor: string | null = null;
    do {
      const next = await page(`?${filter}${cursor === null ? "" : `&cursor=${cursor}`}`);
      found.push(...next.entries);
      cursor = next.next_cursor;
    } while (cursor !== null);
    return found;
  };
  expect(await all("by=caller:bob")).toMatchObject([{ subject: "of bob" }]);
  expect(await all("by=agent:scout&action=agent.update")).toMatchObject([{ subject: "a change" }]);
  const shares = await redis.zrange(`${OTHERS}:shares`, "0", "-1", "WITHSCORES");
  const counts = shares.filter((_, at) => at % 2 === 1).map(Number);
  expect(counts.reduce((sum, count) => sum + count)).toBe(10_000);
  expect(Math.max(...counts)).toBeLessThanOrEqual(1_000);
  const left = await all("by=agent:scout");
  expect(new Set(left.map(({ id }) => id)).size).toBe(left.length);
  expect(left.length).toBe(1 + Number(shares[shares.indexOf("agent:scout|sessions") + 1]));
  const times = left.map(({ at }) => at);
  expect(times).toEqual(times.toSorted().reverse());
});

onOneRedis("it counts the commands of one server")(
  "a rare entry is on the first page of its filter, however much came after it, at a bounded cost",
  async () => {
    const { gateway, page, redis } = await setup();
    await audit(gateway.broker, SCOUT, "agent.update", "rare");
    await audit(gateway.broker, OPERATOR, "agent.pause", "rarer");
    for (let n = 0; n < 9; n += 1) await fill(redis, `caller:crowd-${n}`, 1_100);
    const reads = async () => {
      const stats = await redis.info("commandstats");
      return Number(/cmdstat_xrevrange:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    for (const [query, subjects, most] of [
      ["?by=agent:scout&action=agent.update", ["rare"], 11],
      ["?by=agent:scout", ["rare"], 11],
      ["?subject=rare&limit=1", ["rare"], 22],
      ["?action=agent.pause", ["rarer"], 22],
      ["?by=caller:crowd-8&limit=2", ["caller:crowd-8", "caller:crowd-8"], 1],
    ] as const) {
      const before = await reads();
      const { entries } = await page(query);
      expect([query, entries.map(({ subject }) => subject)]).toEqual([query, subjects]);
      expect((await reads()) - before).toBeLessThanOrEqual(most);
    }
    // Entries of both streams in turns.
    const adding = redis.pipeline();
    for (let n = 0; n < 3_000; n += 1) {
      for (const [key, by] of [
        [OTHERS, SCOUT.text],
        [keys.audit, "operator"],
      ] as const)
        adding.xadd(
          key,
          `${Date.now() + 1_000 + n}-1`,
          "by",
          by,
          "action",
          "agent.resume",
          "subject",
          "x",
          "details",
          "{}",
        );
    }
    await adding.exec();
    expect((await page("?action=agent.pause")).entries).toMatchObject([{ subject: "rarer" }]);
    expect(await page("?by=agent:nobody")).toEqual({ entries: [], next_cursor: null });
    expect(await page("?subject=nothing")).toEqual({ entries: [], next_cursor: null });
  },
);

test("an entry about an agent whose name is that of a field is read", async () => {
  const { admin, page } = await setup();
  await admin.agent("details");
  await admin.agent("subject");
  expect((await page("?subject=details")).entries).toMatchObject([{ subject: "details" }]);
  expect((await page()).entries.map(({ subject }) => subject)).toEqual(["subject", "details"]);
});

/** The audit log: its entries, readers and pages, and that it has no secrets. */
import { expect, test } from "vitest";
import { toPrincipal } from "../../../src/engine/access/access.ts";
import { audit } from "../../../src/engine/upkeep/audit.ts";
import { auditPageSchema } from "../../../src/schema/audit.ts";
import { as, client, startBroker } from "../../support/broker.ts";

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

test("it is bounded: others cannot displace the operator's entries, and old ones are deleted", async () => {
  const { gateway, page, redis, clock } = await setup();
  await audit(gateway.broker, OPERATOR, "agent.pause", "kept");
  const fill = redis.pipeline();
  for (let n = 0; n < 11_000; n += 1) fill.xadd("{errand}:audit:others", "*", "by", SCOUT.text);
  await fill.exec();
  await audit(gateway.broker, SCOUT, "agent.update", "scout", { huge: "x".repeat(2_000) });
  expect(await redis.xlen("{errand}:audit:others")).toBeLessThanOrEqual(10_100);
  expect((await page("?by=operator")).entries).toMatchObject([{ subject: "kept" }]);
  expect((await page("?limit=1")).entries).toMatchObject([
    { subject: "scout", details: { truncated: true } },
  ]);

  clock.offset_ms = 91 * 86_400_000;
  expect((await page("?by=operator")).entries).toEqual([]);
  await audit(gateway.broker, SCOUT, "agent.update", "later");
  expect((await page()).entries).toMatchObject([{ subject: "later" }]);
  expect(await redis.xlen("{errand}:audit:others")).toBeLessThanOrEqual(100);
});

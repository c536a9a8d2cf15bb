/** Large reads: the size of one page, and that they do not delay others. */
import { expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";

const JSON_ONLY = { accept: "application/json" };
const LARGE = 2_900_000;
/** As many as fit on one page, and one more. */
const PAGE_BYTES = 8 * 1024 * 1024;
const COUNT = 5;

async function setup() {
  const broker = await startBroker({ maxBodyBytes: 4 * 1024 * 1024 });
  const admin = client(broker.url);
  await admin.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  return { ...broker, admin, alice };
}

/** Finished delegations whose artifacts together exceed one page. */
async function withLargeWork() {
  const broker = await setup();
  const { admin, alice } = broker;
  const ids: string[] = [];
  for (let n = 0; n < COUNT; n += 1) {
    ids.push((await alice.delegate("scout")).body.id);
    const lease = (await admin.lease("scout")).body.leases[0].lease_id;
    const artifact = { artifactId: "a", parts: [{ text: "x".repeat(LARGE) }] };
    expect((await admin.call("POST", `/v1/leases/${lease}/artifacts`, { artifact })).status).toBe(200);
    await admin.reply(lease);
  }
  /** Follows the cursors to the end; returns the contents of each page. */
  const pages = async (path: string, items: string, cursor: string, parameter: string, from?: string) => {
    const found: { id: string; delegation_id: string }[][] = [];
    for (let at = from; at !== null; ) {
      const query: string = at === undefined ? "" : `&${parameter}=${at}`;
      const { body } = await alice.call("GET", `${path}${query}`, undefined, JSON_ONLY);
      expect(JSON.stringify(body).length).toBeLessThan(PAGE_BYTES + 100_000);
      if (body[items].length === 0) break;
      found.push(body[items]);
      at = body[cursor];
    }
    return found;
  };
  return { ...broker, ids, pages };
}

test("lists, the inbox and pages of events end early when they grow large, and continue by their cursors", async () => {
  const { alice, ids, pages } = await withLargeWork();
  const listed = await pages("/v1/delegations?limit=100", "delegations", "next_cursor", "cursor");
  expect(listed.map(({ length }) => length)).toEqual([2, 2, 1]);
  expect(listed.flat().map(({ id }) => id)).toEqual([...ids].reverse());

  const results = await pages("/v1/results?limit=100", "results", "cursor", "after", "0");
  expect(results.map(({ length }) => length)).toEqual([2, 2, 1]);
  expect(results.flat().map(({ id }) => id)).toEqual(ids);

  const events = await pages("/v1/events?limit=1000", "events", "cursor", "after", "0");
  expect(events.length).toBeGreaterThan(1);
  const eventIds = events.flat().map(({ delegation_id }) => delegation_id);
  expect(eventIds).toEqual(ids.flatMap((id) => [id, id, id, id]));

  // Entries that do not match do not count against the page.
  const { body } = await alice.call("GET", "/v1/delegations?state=failed");
  expect(body).toEqual({ delegations: [], next_cursor: null, scanned_to: null });
});

test("work continues while no list or replay can be served", async () => {
  const { gateway, admin, alice } = await setup();
  gateway.broker.bulk.disconnect();
  expect((await alice.call("GET", "/v1/delegations")).status).toBe(503);
  expect((await alice.call("GET", "/v1/results")).status).toBe(503);
  expect((await alice.call("GET", "/v1/events?after=0", undefined, JSON_ONLY)).status).toBe(503);
  const { id } = (await alice.delegate("scout")).body;
  const lease = (await admin.lease("scout")).body.leases[0].lease_id;
  expect((await admin.heartbeat(lease)).status).toBe(200);
  expect((await admin.reply(lease)).status).toBe(200);
  expect((await alice.get(id)).body.state).toBe("completed");
});

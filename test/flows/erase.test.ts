import { expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { dump, keysIn } from "../support/dump.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { until } from "../support/until.ts";

const SECRET = "canary-5d1f";
const JSON_ONLY = { accept: "application/json" };

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  /** A finished delegation that has left data in every place. */
  const finished = async (headers?: Record<string, string>) => {
    const made = await alice.delegate("scout", { task: SECRET }, headers);
    const id = String(made.body.id);
    const [lease] = (await api.lease("scout")).body.leases;
    await api.call("POST", `/v1/leases/${lease.lease_id}/artifacts`, {
      artifact: { artifactId: "a", parts: [{ text: SECRET }] },
    });
    await alice.message(id, SECRET);
    await api.reply(lease.lease_id, { text: SECRET });
    return id;
  };
  const eventsAfter = async (cursor: string) =>
    (await alice.call("GET", `/v1/events?after=${cursor}`, undefined, JSON_ONLY)).body;
  return { ...broker, api, alice, finished, eventsAfter };
}

test("a finished delegation can be erased at once, everywhere, and only by its delegator and the operator", async () => {
  const { url, api, alice, finished, redis } = await setup();
  const live = String((await alice.delegate("scout")).body.id);
  const refused = (await alice.erase(live)).body;
  expect(refused).toMatchObject({ status: 409, code: "wrong_state" });
  expect(refused.recovery).toContain("Cancel it first");
  await alice.cancel(live);
  const id = await finished({ "idempotency-key": "once" });
  const bob = await as(url, "caller:bob");
  expect((await bob.erase(id)).body).toMatchObject({ status: 404, code: "delegation_not_found" });
  expect((await (await as(url, "agent:scout")).erase(id)).body.code).toBe("forbidden");
  expect((await (await as(url, "approver:ann")).erase(id)).body.code).toBe("forbidden");
  expect((await alice.erase(id)).status).toBe(204);
  const left = JSON.stringify(await dump(redis));
  expect(left).not.toContain(SECRET);
  expect((await alice.get(id)).status).toBe(404);
  expect((await alice.events(id)).status).toBe(404);
  expect((await alice.erase(id)).body.code).toBe("delegation_not_found");
  expect((await alice.call("GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  // The idempotency key does not create it again.
  const again = await alice.delegate("scout", { task: SECRET }, { "idempotency-key": "once" });
  expect(again.body).toMatchObject({ code: "already_finished", delegation_id: id });
  const { entries } = (await api.call("GET", "/v1/audit?action=delegation.erase")).body;
  expect(entries).toMatchObject([{ by: "caller:alice", subject: id }]);
});

test("a replay continues past erased events: nothing is missed, and there is no RESET", async () => {
  const { alice, finished, eventsAfter } = await setup();
  const first = await finished();
  const { cursor } = await eventsAfter("0");
  const second = await finished();
  const third = await finished();
  // Everything up to the cursor is erased, the entry of the cursor included.
  expect((await alice.erase(first)).status).toBe(204);
  const types = (events: { type: string; delegation_id: string }[]) =>
    events.map(({ type, delegation_id }) => `${type} ${delegation_id}`);
  const after = types((await eventsAfter(cursor)).events);
  expect(after[0]).toBe(`DELEGATION_SENT ${second}`);
  expect(after.at(-1)).toBe(`DELEGATION_COMPLETE ${third}`);
  expect((await alice.erase(second)).status).toBe(204);
  expect(types((await eventsAfter(cursor)).events)[0]).toBe(`DELEGATION_SENT ${third}`);
  expect((await alice.erase(third)).status).toBe(204);
  expect((await eventsAfter(cursor)).events).toEqual([]);
  const fourth = await finished();
  expect(types((await eventsAfter(cursor)).events)[0]).toBe(`DELEGATION_SENT ${fourth}`);
});

test("erasing does not hide that other events were trimmed", async () => {
  const { alice, finished, eventsAfter, redis } = await setup();
  const first = await finished();
  const { cursor } = await eventsAfter("0");
  await finished();
  expect((await alice.erase(first)).status).toBe(204);
  await redis.xtrim("{errand:0}:feed:caller:alice", "MAXLEN", 2);
  expect((await eventsAfter(cursor)).events[0].type).toBe("RESET");
});

const onOneShard = onOneRedis("it uses a cursor as the id of an event, which it is with one shard");

onOneShard("no RESET when everything that trimming left is erased, until more is trimmed", async () => {
  const { alice, finished, eventsAfter, redis } = await setup();
  const feed = "{errand:0}:feed:caller:alice";
  await finished();
  const kept = await finished();
  const { cursor } = await eventsAfter("0");
  await redis.xtrim(feed, "MINID", String((await eventsAfter("0")).events[5].id));
  const second = await finished();
  const { cursor: later } = await eventsAfter("0");
  const third = await finished();
  const begins = (id: string) => ({ type: "DELEGATION_SENT", delegation_id: id });
  expect((await alice.erase(kept)).status).toBe(204);
  expect((await eventsAfter(cursor)).events[0]).toMatchObject(begins(second));
  expect((await alice.erase(second)).status).toBe(204);
  expect((await eventsAfter(cursor)).events[0]).toMatchObject(begins(third));
  expect((await eventsAfter(later)).events[0]).toMatchObject(begins(third));
  await redis.xtrim(feed, "MAXLEN", 2);
  expect((await eventsAfter(later)).events[0].type).toBe("RESET");
  expect((await alice.erase(third)).status).toBe(204);
  expect((await eventsAfter(later)).events[0].type).toBe("RESET");
});

test("children that a cascade is to cancel are canceled before their parent is erased", async () => {
  const { api, alice, gateway } = await setup();
  const root = String((await alice.delegate("scout")).body.id);
  const child = String((await alice.delegate("scout", { parent_id: root })).body.id);
  const died = vi.spyOn(gateway.broker.bulk, "srandmember").mockRejectedValueOnce(new Error("died"));
  await alice.cancel(root);
  died.mockRestore();
  expect((await alice.erase(root)).status).toBe(204);
  await until(async () => (await api.get(child)).body.state === "canceled");
});

test("a delegation that was redriven and then erased is not redriven again", async () => {
  const { api, alice, finished, redis } = await setup();
  const failed = String((await alice.delegate("scout")).body.id);
  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id, { state: "failed", text: undefined, error: { code: "x", message: "no" } });
  const anew = String((await alice.redrive(failed)).body.id);
  const [second] = (await api.lease("scout")).body.leases;
  await api.reply(second.lease_id);
  expect((await alice.erase(anew)).status).toBe(204);
  expect((await alice.redrive(failed)).body).toMatchObject({
    status: 409,
    code: "already_finished",
    delegation_id: anew,
  });
  const bulk = await api.call("POST", "/v1/delegations/redrive", { target: "scout", limit: 10 });
  expect(bulk.body).toMatchObject({ delegations: [], refused: [{ code: "already_finished" }] });
  expect(await keysIn(redis, `*${anew}*`)).toEqual([]);
  // It does not block the redrive of others, either.
  expect((await alice.get(await finished())).body.state).toBe("completed");
});

/** Schedules over HTTP: what is refused, and how; lists; limits; a restart and a backup keep them. */
import { expect, test } from "vitest";
import { isOwnKey } from "../../../src/redis/keys.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, startBroker } from "../../support/broker.ts";

const delegation = { target: "scout", task: "tidy up" };

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const create = (body: Record<string, unknown>, key?: string) =>
    alice.call(
      "POST",
      "/v1/schedules",
      { delegation, ...body },
      key ? { "idempotency-key": key } : undefined,
    );
  return { ...broker, admin, alice, create };
}

test.each([
  ["@daily", "0 0 * * *"],
  ["0 30 9 * * *", "30 9 * * *"],
  ["0 0 12 ? * MON-FRI *", "0 12 * * MON-FRI"],
  ["60 * * * *", "0 * * * *"],
  ["0 24 * * *", "0 0 * * *"],
  ["9 30 * * 1", "30 9 * * 1"],
  ["0 0 5 31 *", "0 0 31 5 *"],
  ["0 0 31 2 *", "0 0 28 2 *"],
  ["0 9 * * monday", "0 9 * * MON"],
  ["09:30", "30 9 * * *"],
  ["0 9", "0 9 * * *"],
  ["nonsense", "0 9 * * *"],
])("the cron expression %s is refused, and the nearest is %s", async (cron, nearest) => {
  const { create } = await setup();
  const { status, body } = await create({ cron });
  expect({ status, code: body.code, path: body.details.issues[0].path }).toEqual({
    status: 400,
    code: "invalid_request",
    path: "cron",
  });
  const { suggestion } = body.details;
  expect(suggestion).toMatchObject({ cron: nearest, time_zone: "UTC" });
  expect(suggestion.next).toHaveLength(3);
  for (const text of [nearest, ...suggestion.next]) expect(body.details.issues[0].reason).toContain(text);
  expect((await create({ cron: nearest })).body.next).toEqual(suggestion.next);
});

test.each([
  ["Europe/Berln", "Europe/Berlin"],
  ["berlin", "Europe/Berlin"],
  ["New York", "America/New_York"],
  ["+02:00", "UTC"],
])("the time zone %s is refused, and the nearest is %s", async (time_zone, nearest) => {
  const { create } = await setup();
  const { status, body } = await create({ cron: "0 9 * * *", time_zone });
  expect({ status, path: body.details.issues[0].path }).toEqual({ status: 400, path: "time_zone" });
  expect(body.details.suggestion).toMatchObject({ cron: "0 9 * * *", time_zone: nearest });
});

test.each([
  [{ every_seconds: 0.5 }, "every_seconds"],
  [{ every_seconds: 0 }, "every_seconds"],
  [{}, "cron"],
  [{ cron: "0 9 * * *", every_seconds: 60 }, "cron"],
  [{ every_seconds: 60, time_zone: "UTC" }, "time_zone"],
  [{ every_seconds: 60, overlap: "wait" }, "overlap"],
  [{ every_seconds: 60, delegation: { target: "scout" } }, "delegation.task"],
  [{ every_seconds: 60, delegation: { ...delegation, deadline: "2030-01-01T00:00:00Z" } }, "delegation"],
])("%j is refused at %s", async (body, path) => {
  const { create, redis } = await setup();
  const refused = await create(body);
  expect({ status: refused.status, path: refused.body.details.issues[0].path }).toEqual({
    status: 400,
    path,
  });
  expect((await redis.keys("*schedule*")).length).toBe(0);
});

test("the delegation is checked as a submit is", async () => {
  const { create, admin } = await setup();
  const unknown = await create({ every_seconds: 60, delegation: { ...delegation, target: "nobody" } });
  expect(unknown.body.code).toBe("agent_unknown");
  await admin.agent("scout", { accepts_from: ["operator"] });
  expect((await create({ every_seconds: 60 })).body.code).toBe("not_accepted");
});

test("a repeat with the same key answers the same schedule; another body is refused", async () => {
  const { create, alice } = await setup();
  const made = await create({ every_seconds: 60 }, "k");
  expect(made.status).toBe(201);
  expect(made.headers.get("location")).toBe(`/v1/schedules/${made.body.id}`);
  expect(await create({ every_seconds: 60 }, "k")).toMatchObject({ status: 200, body: { id: made.body.id } });
  expect((await create({ every_seconds: 61 }, "k")).body.code).toBe("idempotency_conflict");
  expect((await alice.call("GET", "/v1/schedules")).body.schedules).toHaveLength(1);
});

test("the secrets of a callback are not shown", async () => {
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const admin = client(broker.url);
  await admin.agent("scout");
  const callback = { url: "http://127.0.0.1:9/hook", token: "hidden-token" };
  const body = { every_seconds: 60, delegation: { ...delegation, callback } };
  const made = await admin.call("POST", "/v1/schedules", body);
  expect(made.body.delegation.callback).toEqual({ url: callback.url });
  expect(JSON.stringify((await admin.call("GET", "/v1/schedules")).body)).not.toContain(callback.token);
});

test("each sees its own schedules, in pages; a viewer and the operator see all", async () => {
  const { create, admin, alice, url } = await setup();
  const [bob, viewer] = [await as(url, "caller:bob"), await as(url, "viewer:eve")];
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await create({ every_seconds: 60 + n })).body.id);
  const all: string[] = [];
  for (let query = "?limit=2"; query !== ""; ) {
    const { schedules, next_cursor } = (await alice.call("GET", `/v1/schedules${query}`)).body;
    all.push(...schedules.map((one: { id: string }) => one.id));
    query = next_cursor === null ? "" : `?limit=2&cursor=${next_cursor}`;
  }
  expect(all.toSorted()).toEqual(ids.toSorted());
  const count = async (who: typeof admin) => (await who.call("GET", "/v1/schedules")).body.schedules.length;
  expect([await count(bob), await count(viewer), await count(admin)]).toEqual([0, 5, 5]);
});

test("the schedules of one principal are bounded in number and bytes", async () => {
  const { create, url } = await setup();
  for (let n = 0; n < LIMITS.schedules.value; n += 1)
    expect((await create({ every_seconds: 3600, paused: true })).status).toBe(201);
  const { body } = await create({ every_seconds: 3600 });
  expect(body).toMatchObject({ code: "limit_reached", details: { limit: "schedules" } });
  const bob = await as(url, "caller:bob");
  const task = "x".repeat(LIMITS.schedule_bytes.value);
  const large = await bob.call("POST", "/v1/schedules", {
    every_seconds: 60,
    delegation: { target: "scout", task },
  });
  expect(large).toMatchObject({ status: 400, body: { details: { issues: [{ path: "delegation" }] } } });
});

test("all keys of a schedule are in a backup, and in the slot outside the shards", async () => {
  const { create, redis } = await setup();
  const { body } = await create({ every_seconds: 60 });
  const found = (await redis.keys("*")).filter((key) => key.includes(body.id) || /sched/.test(key));
  expect(found.length).toBeGreaterThan(4);
  expect(found.filter((key) => !isOwnKey(key) || !key.startsWith("{errand}:"))).toEqual([]);
});

test("the schedules of an agent go with it", async () => {
  const { admin, url, redis } = await setup();
  await admin.agent("leader");
  const leader = await as(url, "agent:leader");
  await leader.call("POST", "/v1/schedules", { every_seconds: 60, delegation });
  await admin.call("DELETE", "/v1/agents/leader");
  expect((await admin.call("GET", "/v1/schedules")).body.schedules).toEqual([]);
  expect((await redis.keys("{errand}:schedule*")).length).toBe(0);
});

/** `GET /v1/stats`: what is counted, at how many gateways, for whom; and that it is bounded. */
import { expect, test } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { QueueSampler } from "../../../src/engine/stats/sampler.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";

/** Ten seconds after the begin of a quarter of an hour, so that what follows is in one bucket. */
const inOneBucket = (): number => 900_000 - (Date.now() % 900_000) + 10_000;

const fail = (code: string) => ({ state: "failed", error: { code, message: "no" } });

test("the moves of all gateways are counted by agent and by delegator", async () => {
  const { url, gateway, another, clock } = await startBroker();
  clock.offset_ms = inOneBucket();
  const second = await another();
  const admin = new Admin({ url, token: OPERATOR });
  const api = client(url);
  const alice = await as(url, "caller:alice");
  await api.agent("scout", { limits: { max_attempts: 1 } });
  await api.agent("coder");
  const leased = async (at = api) => String((await at.lease("scout")).body.leases[0].lease_id);
  for (let n = 0; n < 6; n += 1) await alice.delegate("scout", { ttl_seconds: 86_400 });
  const { id } = (await api.delegate("coder")).body;
  await api.cancel(id);
  await api.reply(await leased());
  await client(second.url).reply(await leased(client(second.url)));
  await api.reply(await leased(), fail("disk_full"));
  await api.reply(await leased(), { state: "rejected" });
  // The sweep ends it, and reads no record.
  await leased();
  clock.offset_ms += 120_000;
  await gateway.sweep.tick();
  await new QueueSampler(gateway.broker).sample();
  await second.gateway.broker.counters.flush();

  const scout = await admin.stats({ target: "scout" });
  const codes = [
    { code: "attempts_exhausted", count: 1 },
    { code: "disk_full", count: 1 },
    { code: "rejected", count: 1 },
  ];
  const ends = { completed: 2, failed: 2, rejected: 1 };
  expect(scout).toMatchObject({ target: "scout", delegator: null, bucket_seconds: 60 });
  expect(scout.totals).toMatchObject({ sent: 6, leased: 5, ...ends, canceled: 0, failures: codes });
  expect(scout.totals.time_to_answer?.median_seconds).toBeGreaterThan(0);
  expect(scout.totals.time_to_lease?.p95_seconds).toBeLessThan(60);
  expect(scout.buckets).toHaveLength(60);
  expect(scout.buckets.at(-1)).toMatchObject({ waiting: 1, working: 0, failed: 1, sent: 0 });
  expect(scout.buckets.at(-1)?.oldest_seconds).toBeGreaterThan(60);
  expect(scout.buckets.reduce((sum, { sent }) => sum + sent, 0)).toBe(6);

  const all = await admin.stats({ period: "day" });
  expect(all.totals).toMatchObject({ sent: 7, ...ends, canceled: 1, failures: codes });
  expect(all.buckets).toHaveLength(96);
  const hers = await new Admin({ url, token: alice.token }).stats();
  expect(hers).toMatchObject({ target: null, delegator: "caller:alice" });
  expect(hers.totals).toMatchObject({ sent: 6, leased: 5, ...ends, canceled: 0, failures: codes });
  expect(hers.buckets.at(-1)?.waiting).toBeNull();

  // An hour later only the day has them.
  clock.offset_ms += 3_900_000;
  expect((await admin.stats()).totals).toMatchObject({ sent: 0, time_to_lease: null, failures: [] });
  expect((await admin.stats({ period: "day" })).totals.sent).toBe(7);
});

test("agents and delegators see their own figures, an agent of the same name not those of the deleted one", async () => {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  await api.agent("coder");
  await api.delegate("scout");
  const [scout, alice] = await Promise.all([as(url, "agent:scout"), as(url, "caller:alice")]);
  const ask = async (who: { call: typeof api.call }, query: string) =>
    (await who.call("GET", `/v1/stats${query}`)).status;
  const { body } = await scout.call("GET", "/v1/stats");
  expect(body).toMatchObject({ target: "scout", totals: { sent: 1 } });
  // Without waiting for the next sample.
  expect(body.buckets.at(-1)).toMatchObject({ waiting: 1 });
  for (const kind of ["viewer:wall", "approver:ann"]) {
    const other = await as(url, kind);
    expect((await other.call("GET", "/v1/stats")).body).toMatchObject({ target: null, totals: { sent: 1 } });
    expect(await ask(other, "?delegator=caller:alice")).toBe(200);
  }
  expect(await ask(scout, "?target=coder")).toBe(403);
  expect(await ask(scout, "?delegator=agent:scout")).toBe(200);
  expect(await ask(alice, "?target=scout")).toBe(403);
  expect(await ask(alice, "?delegator=caller:bob")).toBe(403);
  expect(await ask(api, "?target=nobody")).toBe(404);
  expect(await ask(api, "?target=scout&delegator=caller:alice")).toBe(400);

  await api.call("DELETE", "/v1/agents/scout?force=true");
  await api.agent("scout");
  expect((await api.call("GET", "/v1/stats?target=scout")).body.totals).toMatchObject({
    sent: 0,
    canceled: 0,
  });
  expect((await api.call("GET", "/v1/stats")).body.totals).toMatchObject({ sent: 1, canceled: 1 });
});

test("figures are bounded in subjects and in time", async () => {
  const { redis, gateway } = await startBroker();
  const { counters } = gateway.broker;
  const now = Date.now();
  const many = LIMITS.stats_subjects.value + 10;
  counters.sample(
    now,
    Array.from({ length: many }, (_, n) => ({ agent: `a${n}`, waiting: 1, working: 0, oldest_seconds: 1 })),
  );
  await counters.flush();
  expect(await redis.zcard("{errand}:stats:subjects")).toBe(LIMITS.stats_subjects.value);
  const buckets = await keysIn(redis, "{errand}:stats:*:*:*");
  // Two resolutions, and those of `all`.
  const targets = buckets.filter((name) => name.includes(":target:"));
  expect(targets.length).toBe(2 * LIMITS.stats_subjects.value);
  for (const name of buckets) expect(await redis.pttl(name)).toBeGreaterThan(0);
  const all = buckets.find((name) => name.includes(":all:60:")) ?? "";
  expect(await redis.hget(all, "w")).toBe(String(many));
});

test("codes beyond the limit are summed up, with an agent's own code of the sum's name", async () => {
  const { url, redis, clock } = await startBroker();
  clock.offset_ms = inOneBucket();
  const api = client(url);
  await api.agent("scout", { limits: { max_attempts: 1 } });
  const codes = LIMITS.stats_codes.value + 3;
  for (let n = 0; n < codes; n += 1) {
    await api.delegate("scout");
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    await api.reply(lease_id, fail(n === 0 ? "other" : `code_${n}`));
  }
  const { failures, failed } = (await api.call("GET", "/v1/stats?period=day&target=scout")).body.totals;
  expect(failed).toBe(codes);
  const counted = failures.reduce((sum: number, { count }: { count: number }) => sum + count, 0);
  expect(counted).toBe(codes);
  expect(failures.filter(({ code }: { code: string }) => code === "other")).toEqual([
    { code: "other", count: 4 },
  ]);
  const packed = await keysIn(redis, "{errand}:stats:target:scout:*");
  for (const name of packed) {
    expect(Number(await redis.memory("USAGE", name))).toBeLessThan(1_500);
    expect(await redis.call("OBJECT", "ENCODING", name)).toBe("listpack");
  }
});

test("a code that is a member of every object is counted like any other", async () => {
  const { url, clock } = await startBroker();
  clock.offset_ms = inOneBucket();
  const api = client(url);
  await api.agent("scout", { limits: { max_attempts: 1 } });
  for (let n = 0; n < 2; n += 1) {
    await api.delegate("scout");
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    await api.reply(lease_id, fail("constructor"));
  }
  const { totals } = (await api.call("GET", "/v1/stats?period=day&target=scout")).body;
  expect(totals).toMatchObject({ sent: 2, failed: 2, failures: [{ code: "constructor", count: 2 }] });
});

test("what was used is counted by agent and delegator, when it is reported, in up to four currencies", async () => {
  const { url, clock } = await startBroker();
  clock.offset_ms = inOneBucket();
  const admin = new Admin({ url, token: OPERATOR });
  const api = client(url);
  const alice = await as(url, "caller:alice");
  await api.agent("scout");
  for (const currency of ["USD", "EUR", "CHF", "JPY", "SEK"]) {
    await alice.delegate("scout");
    const lease = String((await api.lease("scout")).body.leases[0].lease_id);
    await api.heartbeat(lease, { usage: { input_tokens: 1, cost: 0.1, currency } });
    await api.reply(lease, { usage: { input_tokens: 3, output_tokens: 2, cost: 0.3, currency } });
  }
  const hers = (await new Admin({ url, token: alice.token }).stats()).totals.usage;
  const tokens = { input_tokens: 15, output_tokens: 10, cached_tokens: 0, reasoning_tokens: 0 };
  expect(hers).toMatchObject(tokens);
  expect(hers?.costs.map(({ cost }) => cost)).toEqual([0.3, 0.3, 0.3, 0.3]);
  const { totals, buckets } = await admin.stats({ target: "scout" });
  expect(totals.usage).toMatchObject(tokens);
  expect(buckets.at(-1)?.usage).toMatchObject(tokens);
  expect(buckets.at(0)?.usage).toBeUndefined();
});

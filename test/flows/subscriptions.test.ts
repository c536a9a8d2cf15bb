/** Subscriptions: who is told of what, when, and what becomes of a channel that fails. */
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test, vi } from "vitest";
import { keys } from "../../src/redis/keys.ts";
import { as } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed as setup } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

test("an approver is told of a question, signed, without what it asks", async () => {
  const { ann, api, subscribe, tick, ask, log } = await setup();
  const { url, received } = await startReceiver();
  const made = await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "webhook", url, secret: SECRET, token: "let-me-in" }],
  });
  await tick();
  const { id, interrupt_id } = await ask("Drop the table?");
  await tick();
  await until(() => received.length === 1);
  const [{ headers, body } = { headers: {}, body: "" }] = received;
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
  const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]));
  const { expires_at } = (await api.get(id)).body.interrupt;
  expect(new Webhook(SECRET).verify(body, signed)).toEqual({
    id: headers["webhook-id"],
    subscription_id: made.id,
    type: "question",
    at: expect.any(String),
    title: "scout asks",
    text: `It waits for an answer until ${expires_at.slice(0, 19)}Z.`,
    link: null,
    no_link: expect.stringContaining("ERRAND_PUBLIC_URL"),
    ...{ agent: "scout", delegation_id: id, interrupt_id },
  });
  expect(headers.authorization).toBe("Bearer let-me-in");
  for (const secret of [SECRET, "let-me-in"]) {
    expect(JSON.stringify(made)).not.toContain(secret);
    expect(log.join("\n")).not.toContain(secret);
  }
  // A second look finds nothing new.
  await tick();
  const shown = async () => (await ann.call("GET", `/v1/subscriptions/${made.id}`)).body.deliver[0];
  await until(async () => (await shown()).waiting === 0);
  expect(await shown()).toMatchObject({ state: "ok", delivered_at: expect.any(String) });
  expect(received).toHaveLength(1);
});

test("each is told of what concerns them: questions they may answer, ends of what they delegated", async () => {
  const { ann, alice, api, url: broker, subscribe, tick, ask } = await setup();
  const bob = await as(broker, "caller:bob");
  const told = await Promise.all(
    [ann, alice, bob].map(async (who) => {
      const { url, received } = await startReceiver();
      await subscribe(who, { events: ["question", "ended"], deliver: [{ kind: "webhook", url }] });
      return received;
    }),
  );
  await tick();
  const { id, interrupt_id } = await ask();
  await tick();
  await until(() => told[0]?.length === 1 && told[1]?.length === 1);
  await alice.answer(id, interrupt_id, { text: "yes" });
  const [lease] = (await api.lease("scout")).body.leases;
  await api.reply(lease.lease_id, { state: "failed", error: { code: "no_disk", message: "full" } });
  await tick();
  await until(() => told[1]?.length === 2);
  expect(bodies(told[1] ?? [])[1]).toMatchObject({
    type: "ended",
    state: "failed",
    code: "no_disk",
    delegation_id: id,
  });
  expect(told.map((received) => received.length)).toEqual([1, 2, 0]);
});

test("what happens right after the first subscription is created is told, though nobody has read an event before", async () => {
  const { ann, subscribe, tick, ask } = await setup();
  await ask("Before?");
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  const { id } = await ask("After?");
  await tick();
  await until(() => received.length === 1);
  expect(bodies(received)).toMatchObject([{ delegation_id: id }]);
});

test("a filter chooses agents, delegators and final states", async () => {
  const { ann, alice, api, subscribe, tick } = await setup();
  await api.agent("other");
  const { url, received } = await startReceiver();
  const deliver = [{ kind: "webhook", url }];
  await subscribe(ann, {
    events: ["ended"],
    filter: { agents: ["scout"], delegators: ["caller:*"], states: ["failed"] },
    deliver,
  });
  await tick();
  for (const [agent, body] of [
    ["other", { state: "failed", error: { code: "x", message: "x" } }],
    ["scout", { text: "done" }],
    ["scout", { state: "failed", error: { code: "y", message: "y" } }],
  ] as const) {
    await alice.delegate(agent);
    const [lease] = (await api.lease(agent)).body.leases;
    await api.reply(lease.lease_id, body);
  }
  await api.delegate("scout");
  const [own] = (await api.lease("scout")).body.leases;
  await api.reply(own.lease_id, { state: "failed", error: { code: "z", message: "z" } });
  await tick();
  await until(() => received.length > 0);
  await tick();
  expect(bodies(received).map(({ code }) => code)).toEqual(["y"]);
});

test("the later channel is used only if the question is still open, and quiet hours hold everything but what expires", async () => {
  const { ann, alice, clock, subscribe, tick, ask } = await setup();
  const [soon, late, calm] = await Promise.all([startReceiver(), startReceiver(), startReceiver()]);
  await subscribe(ann, {
    events: ["question"],
    deliver: [
      { kind: "webhook", url: soon.url },
      { kind: "webhook", url: late.url, after_seconds: 600 },
    ],
  });
  const hour = (ahead: number) => new Date(Date.now() + ahead * 3_600_000).toISOString().slice(11, 16);
  await subscribe(ann, {
    events: ["question", "question_expiring"],
    quiet: { from: hour(-1), to: hour(3) },
    deliver: [{ kind: "webhook", url: calm.url }],
  });
  await tick();
  const one = await ask("One?");
  const two = await ask("Two?");
  await tick();
  await until(() => soon.received.length === 2);
  await alice.answer(one.id, one.interrupt_id, { text: "yes" });
  clock.offset_ms += 599_000;
  await tick();
  expect(late.received).toHaveLength(0);
  clock.offset_ms += 2_000;
  await tick();
  await until(() => late.received.length === 1);
  expect(bodies(late.received)).toMatchObject([{ delegation_id: two.id, type: "question" }]);
  expect(calm.received).toHaveLength(0);
  clock.offset_ms += 3 * 3_600_000;
  await tick();
  await until(() => calm.received.length === 1);
});

test("a question about to expire is announced once, ignores quiet hours, and its expiry is told", async () => {
  const { ann, api, alice, clock, gateway, redis, subscribe, tick } = await setup();
  await api.call("PATCH", "/v1/agents/scout", { limits: { interrupt_ttl_seconds: 600 } });
  const { url, received } = await startReceiver();
  const now = Date.now();
  const hour = (ahead: number) => new Date(now + ahead * 3_600_000).toISOString().slice(11, 16);
  await subscribe(ann, {
    events: ["question_expiring", "question_expired"],
    quiet: { from: hour(-2), to: hour(-1) },
    deliver: [{ kind: "webhook", url }],
  });
  await subscribe(alice, {
    events: ["question_expiring"],
    quiet: { from: hour(-1), to: hour(1) },
    deliver: [{ kind: "webhook", url }],
  });
  await tick();
  const made = await alice.delegate("scout", { ttl_seconds: 86_400 });
  const [lease] = (await api.lease("scout")).body.leases;
  const { interrupt_id } = (await api.interrupt(lease.lease_id, { text: "?" })).body;
  await tick();
  clock.offset_ms += 530_000;
  await tick();
  expect(received).toHaveLength(0);
  clock.offset_ms += 20_000;
  await tick();
  await tick();
  await until(() => received.length === 2);
  expect(bodies(received)).toMatchObject([1, 2].map(() => ({ type: "question_expiring", interrupt_id })));
  // The receiver has them a little before the broker knows it.
  await until(async () => (await redis.llen(keys.told(made.body.id))) === 2);
  clock.offset_ms += 60_000;
  await gateway.sweep.tick();
  await tick();
  await until(() => received.length === 3);
  const told = ["approver:ann", "caller:alice"].map((person) => ({ person, channel: "webhook" }));
  const last = bodies(received)[2];
  expect(last).toMatchObject({ type: "question_expired", delegation_id: made.body.id, interrupt_id });
  const [head, ...lines] = last.text.split("\n");
  expect(head).toBe("Notified of it:");
  expect(lines.map((line: string) => line.replace(/ at \d{4}-\d\d-\d\dT[\d:]{8}Z$/, "")).sort()).toEqual(
    told.map(({ person }) => `${person} by webhook`),
  );
  const [answered] = (await ann.call("GET", "/v1/answers?outcome=expired")).body.answers;
  expect(answered.told).toHaveLength(2);
  expect(answered.told).toEqual(expect.arrayContaining(told.map((one) => expect.objectContaining(one))));
});

test("above digest_above, what waits is one notification", async () => {
  const { ann, subscribe, tick, ask, clock } = await setup();
  const { url, received } = await startReceiver();
  await subscribe(ann, {
    events: ["question"],
    digest_above: 2,
    deliver: [{ kind: "webhook", url, after_seconds: 60 }],
  });
  await tick();
  for (const text of ["1", "2", "3"]) await ask(text);
  clock.offset_ms += 61_000;
  await tick();
  await until(() => received.length === 1);
  expect(bodies(received)).toMatchObject([
    { type: "digest", counts: { question: 3 }, title: "3 notifications: scout" },
  ]);
  await tick();
  expect(received).toHaveLength(1);
});

test("work that waits for an agent nobody polls for rings at most once in every_seconds", async () => {
  const { ann, alice, api, clock, subscribe, tick } = await setup();
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["no_worker"], every_seconds: 60, deliver: [{ kind: "webhook", url }] });
  await tick();
  expect(received).toHaveLength(0);
  await alice.delegate("scout");
  await alice.delegate("scout");
  for (let looks = 0; looks < 3; looks += 1) await tick();
  await until(() => received.length === 1);
  expect(bodies(received)).toMatchObject([{ type: "no_worker", agent: "scout", waiting: 2 }]);
  clock.offset_ms += 61_000;
  await tick();
  await until(() => received.length === 2);
  await api.lease("scout", { max: 2 });
  clock.offset_ms += 61_000;
  await tick();
  expect(received).toHaveLength(2);
  const refused = await alice.call("POST", "/v1/subscriptions", {
    events: ["no_worker"],
    deliver: [{ kind: "webhook", url }],
  });
  expect(refused).toMatchObject({ status: 400, body: { details: { issues: [{ path: "events" }] } } });
});

test("a channel that fails is repeated with the same id, paused after a day or at once with 410, and resumed", async () => {
  const { ann, subscribe, tick, ask, clock } = await setup({ callbackRetryMs: () => 1_000 });
  let status = 500;
  const { url, received } = await startReceiver(() => status);
  const { id } = await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  const state = async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  await tick();
  await ask();
  await tick();
  await until(async () => (await state()).state === "failing");
  expect(await state()).toMatchObject({ waiting: 1, problem: { message: "It answered with status 500." } });
  clock.offset_ms += 1_001;
  await tick();
  await until(() => received.length === 2);
  expect(new Set(bodies(received).map((body) => body.id)).size).toBe(1);
  status = 410;
  await until(async () => {
    clock.offset_ms += 1_001;
    await tick();
    return (await state()).state === "paused";
  });
  await ask();
  await tick();
  expect(await state()).toMatchObject({ waiting: 1 });
  status = 204;
  await ann.call("POST", `/v1/subscriptions/${id}/resume`);
  await tick();
  await until(async () => (await state()).waiting === 0);
  expect(await state()).toMatchObject({ state: "ok", problem: null });
});

test("two gateways that read the same events put each notification into its lane once", async () => {
  const { ann, another, redis, subscribe, tick, ask, gateway } = await setup();
  const second = await another();
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }], digest_above: 100 });
  await tick();
  for (let n = 0; n < 5; n += 1) {
    await ask();
    await redis.del(keys.notifier);
    await Promise.all([tick(), second.gateway.broker.subscriptions.tick()]);
  }
  await until(() => received.length === 5);
  expect(new Set(bodies(received).map(({ id }) => id)).size).toBe(5);
  await gateway.broker.subscriptions.tick();
  expect(received).toHaveLength(5);
});

test("events that left the short stream before anybody read them are told all the same", async () => {
  const { ann, redis, gateway, subscribe, tick, ask } = await setup();
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  await tick();
  await ask("One?");
  await ask("Two?");
  for (const { events } of gateway.broker.shards.all) await redis.xtrim(events, "MAXLEN", 1);
  await tick();
  await until(() => received.length === 2);
  await tick();
  expect(bodies(received).map(({ type }) => type)).toEqual(["question", "question"]);
});

test("after its token is revoked, nothing is sent, and the subscription says why", async () => {
  const { api, url: broker, subscribe, tick, ask } = await setup();
  const bea = await as(broker, "approver:bea");
  const { url, received } = await startReceiver();
  const { id } = await subscribe(bea, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  await tick();
  await api.call("DELETE", `/v1/tokens/${bea.tokenId}`);
  await ask();
  await tick();
  await until(
    async () => (await api.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0].state === "paused",
  );
  expect(received).toHaveLength(0);
  const { problem } = (await api.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  expect(problem.message).toContain("revoked");
});

test("a changed channel gets what waits, a deleted subscription sends nothing, and strangers see none", async () => {
  const { ann, alice, clock, redis, subscribe, tick, ask } = await setup();
  const [old, next] = await Promise.all([startReceiver(() => 500), startReceiver()]);
  const { id } = await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url: old.url }] });
  expect((await alice.call("GET", `/v1/subscriptions/${id}`)).status).toBe(404);
  await tick();
  await ask();
  await tick();
  await until(() => old.received.length === 1);
  await ann.call("PATCH", `/v1/subscriptions/${id}`, { deliver: [{ kind: "webhook", url: next.url }] });
  await tick();
  await until(() => next.received.length === 1);
  await ask();
  await ann.call("DELETE", `/v1/subscriptions/${id}`);
  clock.offset_ms += 600_000;
  await tick();
  expect(next.received).toHaveLength(1);
  expect(
    (await redis.keys("*subscription*")).filter(
      (key) => !key.endsWith(":version") && !key.endsWith(":notifier"),
    ),
  ).toEqual([]);
});

test("it is signed by the clock of Redis, which all gateways share, and not by the gateway's own", async () => {
  const { ann, subscribe, tick, ask } = await setup();
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url, secret: SECRET }] });
  await tick();
  await ask("Drop the table?");
  const before = Date.now();
  // An hour slow.
  vi.useFakeTimers({ toFake: ["Date"], now: before - 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  await tick();
  await until(() => received.length === 1);
  const signedAt = Number(received[0]?.headers["webhook-timestamp"]) * 1000;
  expect(Math.abs(before - signedAt)).toBeLessThan(60_000);
});

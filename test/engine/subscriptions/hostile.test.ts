/** What must not stop, double, misdirect or survive: subscriptions and links under odd data, changes and lowered rights. */
import { expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { as, client, request } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
import { bodies, startSubscribed } from "../../support/subscribed.ts";
import { until } from "../../support/until.ts";

const ACTION = { text: "Drop it?", action: { name: "drop", arguments: { table: "users" } } };
const hook = (url: string) => [{ kind: "webhook", url }];
const PUBLIC = { publicUrl: "https://errand.example" };
const tokenOf = (body: { link: string }) => body.link.split("#")[1] ?? "";

test("what another version wrote is passed over: an event, a subscription, a notification", async () => {
  const { ann, api, redis, gateway, subscribe, tick, ask } = await startSubscribed();
  const { url, received } = await startReceiver();
  const { id } = await subscribe(ann, { events: ["question"], deliver: hook(url) });
  const { id: odd } = await subscribe(ann, { events: ["ended"], deliver: hook(url) });
  const settings = JSON.parse((await redis.hget(keys.subscription(odd), "settings")) ?? "{}");
  await redis.hset(keys.subscription(odd), "settings", JSON.stringify({ ...settings, events: ["comet"] }));
  await redis.incr(keys.subscriptionsVersion);
  const now = Date.now();
  const lines = [
    "DELEGATION_STATUS",
    "dlg_0_x",
    1,
    now,
    "input_required",
    "interrupted",
    "scout",
    "caller:alice",
    "c",
    now,
  ];
  for (const shard of gateway.broker.shards.all)
    await redis.xadd(shard.events, "*", "e", [...lines, '"interrupt":{"odd":1}', ""].join("\n"));
  await redis.rpush(keys.notices(id, "0"), "1 {}");
  await redis.zadd(keys.subscriptionsBusy, 0, `${id} 0`);
  const asked = await ask();
  await tick();
  await until(() => received.length === 1);
  expect(bodies(received)).toMatchObject([{ delegation_id: asked.id }]);
  expect((await api.call("DELETE", `/v1/subscriptions/${odd}`)).status).toBe(204);
});

test("an agent's own delegations are told of once after a gap, and an agent that is created again learns nothing old", async () => {
  const { ann, api, url: broker, redis, gateway, subscribe, tick } = await startSubscribed();
  await api.agent("planner");
  const planner = await as(broker, "agent:planner");
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: hook(url) });
  const made = (await planner.delegate("scout")).body;
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, { text: "?" });
  for (const { events } of gateway.broker.shards.all) await redis.xtrim(events, "MAXLEN", 1);
  await api.delegate("scout");
  for (const { events } of gateway.broker.shards.all) await redis.xtrim(events, "MAXLEN", 1);
  await tick();
  await until(() => received.length === 1);
  await tick();
  expect(bodies(received)).toMatchObject([{ delegation_id: made.id }]);
  await api.call("DELETE", "/v1/agents/planner?force=true");
  await api.agent("planner");
  const again = await as(broker, "agent:planner");
  const { url: mine, received: told } = await startReceiver();
  await subscribe(again, { events: ["ended"], deliver: hook(mine) });
  await api.cancel(made.id);
  await tick();
  await tick();
  expect(told).toHaveLength(0);
});

test("changes of subscriptions in a row hold nobody up", async () => {
  const { ann, alice, redis, subscribe, tick, ask } = await startSubscribed();
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: hook(url) });
  const { id } = await subscribe(alice, { events: ["ended"], deliver: hook(url) });
  await ask();
  let changing = true;
  const changes = (async () => {
    while (changing) await redis.incr(keys.subscriptionsVersion);
  })();
  await tick();
  changing = false;
  await changes;
  await alice.call("PATCH", `/v1/subscriptions/${id}`, { name: "x" });
  await until(() => received.length === 1);
});

test("a digest is of those that come first, although a later one is older", async () => {
  const { ann, clock, redis, subscribe, tick, ask } = await startSubscribed();
  const { url, received } = await startReceiver();
  const { id } = await subscribe(ann, {
    ...{ events: ["question"], digest_above: 1 },
    deliver: [{ kind: "webhook", url, after_seconds: 600 }],
  });
  const asked = [await ask("1"), await ask("2"), await ask("3")];
  await tick();
  const list = keys.notices(id, "0");
  const texts = await redis.lrange(list, 0, -1);
  const at = JSON.parse(texts[0]?.slice(2) ?? "{}").at;
  for (const [n, late] of [0, 60_000, 1_000].entries()) {
    const text = texts[n] ?? "";
    await redis.lset(
      list,
      n,
      `${text.slice(0, 2)}${JSON.stringify({ ...JSON.parse(text.slice(2)), at: at + late })}`,
    );
  }
  clock.offset_ms += 602_000;
  await tick();
  await until(() => received.length === 1);
  expect(bodies(received)).toMatchObject([{ type: "question", delegation_id: asked[0]?.id }]);
  clock.offset_ms += 60_000;
  await tick();
  await until(() => received.length === 2);
  expect(bodies(received)[1]).toMatchObject({ type: "digest", counts: { question: 2 } });
});

test("a notification that its receiver never takes is dropped, and the next one comes", async () => {
  const { ann, clock, subscribe, tick, ask } = await startSubscribed({ callbackRetryMs: () => 1_000 });
  const { url, received } = await startReceiver((count) => (count <= 3 ? 413 : 204));
  const { id } = await subscribe(ann, { events: ["question"], deliver: hook(url) });
  await ask("1");
  const second = await ask("2");
  await until(async () => {
    clock.offset_ms += 1_001;
    await tick();
    return received.length === 4;
  });
  expect(bodies(received)[3]).toMatchObject({ delegation_id: second.id });
  const shown = async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  await until(async () => (await shown()).waiting === 0);
  expect(await shown()).toMatchObject({ state: "ok", dropped: 1 });
});

test("a channel that was replaced counts no longer: neither its answer nor its links", async () => {
  const { ann, api, url: broker, subscribe, tick, ask } = await startSubscribed(PUBLIC);
  let answer: (status: number) => void = () => {};
  const old = await startReceiver(() => new Promise((resolve) => (answer = resolve)));
  const next = await startReceiver();
  const { id } = await subscribe(ann, { events: ["question"], deliver: hook(old.url) });
  await ask();
  await tick();
  await until(() => old.received.length === 1);
  const patch = { deliver: hook(next.url) };
  expect((await api.call("PATCH", `/v1/subscriptions/${id}`, patch)).status).toBe(403);
  await ann.call("PATCH", `/v1/subscriptions/${id}`, patch);
  answer(410);
  await tick();
  await until(() => next.received.length === 1);
  const { deliver } = (await ann.call("GET", `/v1/subscriptions/${id}`)).body;
  expect(deliver).toMatchObject([{ state: "ok" }]);
  const post = (token: string) =>
    request(broker, "POST", "/v1/links/question", { token: null, body: { token } });
  expect((await post(tokenOf(bodies(old.received)[0]))).status).toBe(404);
  expect((await post(tokenOf(bodies(next.received)[0]))).status).toBe(200);
});

test("a button is dead once the agent allows none, and a viewer gets a link to the console only", async () => {
  const { ann, api, url: broker, subscribe, tick, ask } = await startSubscribed(PUBLIC);
  await api.call("PATCH", "/v1/agents/scout", { notify: { one_tap: "approve" } });
  const viewer = await as(broker, "viewer:vic");
  const [ntfy, seen] = await Promise.all([startReceiver(), startReceiver()]);
  await subscribe(ann, {
    events: ["question"],
    deliver: [{ kind: "ntfy", url: `http://127.0.0.1:${ntfy.port}/t` }],
  });
  await subscribe(viewer, { events: ["question"], filter: { delegators: ["*"] }, deliver: hook(seen.url) });
  const { id, interrupt_id } = await ask();
  await tick();
  await until(() => seen.received.length === 1 && ntfy.received.length === 1);
  expect(bodies(seen.received)[0].link).toBe(`https://errand.example/#/d/${id}`);
  expect(ntfy.received.map(({ body }) => JSON.parse(body).actions ?? [])).toEqual([[]]);
  await client(broker).answer(id, interrupt_id, { text: "yes" });
  const made = (await api.delegate("scout")).body;
  await api.lease("scout");
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, ACTION);
  await tick();
  await until(() => ntfy.received.length === 2);
  const [approve] = JSON.parse(ntfy.received[1]?.body ?? "{}").actions;
  await api.call("PATCH", "/v1/agents/scout", { notify: { one_tap: "none" } });
  const pressed = await request(broker, "POST", "/v1/links/answer", {
    token: null,
    body: JSON.parse(approve.body),
  });
  expect(pressed.status).toBe(404);
  expect((await api.get(made.id)).body.state).toBe("input_required");
});

test("subscriptions of an operator token that was replaced send nothing", async () => {
  const { api, another, gateway, subscribe, ask } = await startSubscribed();
  const { url, received } = await startReceiver();
  const { id } = await subscribe(
    { ...api, token: "", tokenId: "" },
    { events: ["question"], deliver: hook(url) },
  );
  const next = await another({ operatorToken: "another-operator-token-1" });
  await ask();
  await gateway.close({ idleGrace: false });
  const { subscriptions } = next.gateway.broker;
  await until(async () => {
    await subscriptions.tick();
    return (await subscriptions.store.find(id))?.channels[0]?.paused;
  });
  expect(received).toHaveLength(0);
});

test("a press whose answer was lost is answered again, and another one is refused", async () => {
  const { ann, url: broker, subscribe, tick, alice, api } = await startSubscribed(PUBLIC);
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: hook(url) });
  const made = (await alice.delegate("scout")).body;
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, ACTION);
  await tick();
  await until(() => received.length === 1);
  const token = tokenOf(bodies(received)[0]);
  const press = (decision: string) =>
    request(broker, "POST", "/v1/links/answer", { token: null, body: { token, decision } });
  expect((await press("approve")).body).toEqual({ delegation_id: made.id });
  expect((await press("approve")).body).toEqual({ delegation_id: made.id });
  expect((await press("deny")).status).toBe(404);
});

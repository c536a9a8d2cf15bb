/** Subscriptions over HTTP: what is refused, lists, limits, and what the channels get. */
import { expect, test } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { LIMITS } from "../../../src/schema/limits.ts";
import { client } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
import { bodies, startSubscribed as setup } from "../../support/subscribed.ts";
import { until } from "../../support/until.ts";

const HOOK = { kind: "webhook", url: "https://example.com/hook" };

test.each([
  [{ deliver: [{ kind: "email", to: "ann@example.com" }] }, "deliver.0.kind"],
  [{ deliver: [{ kind: "webhook", url: "http://10.0.0.1/hook" }] }, "deliver.0.url"],
  [{ deliver: [{ kind: "ntfy", url: "https://ntfy.sh/" }] }, "deliver.0.url"],
  [{ deliver: [{ kind: "pager", url: "https://example.com" }] }, "deliver.0.kind"],
  [{ deliver: [] }, "deliver"],
  [{ deliver: Array(LIMITS.subscription_channels.value + 1).fill(HOOK) }, "deliver"],
  [{ events: [] }, "events"],
  [{ events: ["everything"] }, "events.0"],
  [{ quiet: { from: "22:00", to: "07:00", time_zone: "Europe/Berln" } }, "quiet.time_zone"],
  [{ quiet: { from: "25:00", to: "07:00" } }, "quiet.from"],
  [{ quiet: { from: "07:00", to: "07:00" } }, "quiet.to"],
  [{ filter: { delegators: ["nobody"] } }, "filter.delegators.0"],
  [{ digest_above: 0 }, "digest_above"],
])("%j is refused, and nothing is stored", async (body, path) => {
  const { ann, redis } = await setup();
  const answer = await ann.call("POST", "/v1/subscriptions", {
    events: ["question"],
    deliver: [HOOK],
    ...body,
  });
  expect({ status: answer.status, path: answer.body.details?.issues[0].path }).toEqual({ status: 400, path });
  expect(await redis.zcard(keys.subscriptions)).toBe(0);
});

test("subscriptions are bounded in number and bytes, and listed in pages", async () => {
  const { ann, subscribe } = await setup();
  const large = {
    events: ["question"],
    deliver: Array(LIMITS.subscription_channels.value).fill({
      ...HOOK,
      url: `${HOOK.url}/${"x".repeat(2_000)}`,
    }),
  };
  const filter = {
    agents: Array.from({ length: 50 }, (_, n) => `${"a".repeat(60)}${n}`),
    delegators: Array.from({ length: 50 }, (_, n) => `caller:${"a".repeat(60)}${n}`),
  };
  const refused = await ann.call("POST", "/v1/subscriptions", { ...large, filter });
  expect(refused.status).toBe(400);
  expect(refused.body.detail).toContain(`${LIMITS.subscription_bytes.value} bytes`);
  const made = [];
  for (let n = 0; n < LIMITS.subscriptions.value; n += 1)
    made.push((await subscribe(ann, { events: ["question"], deliver: [HOOK], name: `${n}` })).id);
  const full = await ann.call("POST", "/v1/subscriptions", { events: ["question"], deliver: [HOOK] });
  expect(full).toMatchObject({
    status: 409,
    body: { code: "limit_reached", details: { limit: "subscriptions" } },
  });
  const listed = [];
  for (let cursor = ""; ; ) {
    const { subscriptions, next_cursor } = (await ann.call("GET", `/v1/subscriptions?limit=7${cursor}`)).body;
    listed.push(...subscriptions.map(({ id }: { id: string }) => id));
    if (next_cursor === null) break;
    cursor = `&cursor=${next_cursor}`;
  }
  expect(listed.sort()).toEqual(made.sort());
});

test("a channel that is down keeps a bounded number of notifications, and counts what it drops", async () => {
  const { ann, alice, api, redis, subscribe, tick } = await setup();
  const { url } = await startReceiver(() => 500);
  const { id } = await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  await tick();
  const made = await alice.delegate("scout");
  const [lease] = (await api.lease("scout")).body.leases;
  await api.interrupt(lease.lease_id, { text: "?" });
  const notice = {
    kind: "question",
    agent: "scout",
    at: Date.now(),
    delegation: made.body.id,
    question: "q",
  };
  const most = LIMITS.notices_waiting.value;
  const line = JSON.stringify(notice);
  await redis.rpush(keys.notices(id, "0"), ...Array.from({ length: most }, (_, n) => `${n} ${line}`));
  await tick();
  const { deliver } = (await ann.call("GET", `/v1/subscriptions/${id}`)).body;
  expect(deliver).toMatchObject([{ waiting: most, dropped: 1 }]);
});

test("a test says for each channel whether it was delivered, without a secret", async () => {
  const { ann, subscribe } = await setup();
  const [good, bad] = await Promise.all([startReceiver(), startReceiver(() => 403)]);
  const { id, deliver } = await subscribe(ann, {
    ...{ name: "my phone", events: ["question"] },
    deliver: [
      { kind: "webhook", url: good.url },
      { kind: "slack", url: `http://127.0.0.1:${bad.port}/services/SECRET` },
    ],
  });
  expect(JSON.stringify(deliver)).not.toContain("SECRET");
  const tested = await ann.call("POST", `/v1/subscriptions/${id}/test`);
  expect(tested.body.deliver).toEqual([
    { kind: "webhook", delivered: true, problem: null },
    { kind: "slack", delivered: false, problem: "It answered with status 403." },
  ]);
  expect(bodies(good.received)).toMatchObject([
    { type: "test", subscription_id: id, text: `Somebody tested the subscription "my phone" (${id}).` },
  ]);
});

test("a principal has a number of tests at all gateways together, and gets one back each minute", async () => {
  const { url: first, another, ann, api, clock, subscribe } = await setup();
  const { url: hook, received } = await startReceiver();
  const { id } = await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url: hook }] });
  const other = await another();
  const gateways = [first, other.url].map((url) => client(url, ann.token));
  const most = LIMITS.subscription_tests.value;
  const press = () =>
    Promise.all(
      Array.from({ length: most }, (_, n) => gateways[n % 2]?.call("POST", `/v1/subscriptions/${id}/test`)),
    );
  expect((await press()).map((answer) => answer?.status)).toEqual(Array(most).fill(200));
  const sent = received.length;
  const [refused] = await press();
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(30);
  expect(received).toHaveLength(sent);
  // Others have their own.
  expect((await api.call("POST", `/v1/subscriptions/${id}/test`)).status).toBe(200);
  clock.offset_ms += 60_000;
  const again = await press();
  expect(again.filter((answer) => answer?.status === 200)).toHaveLength(1);
});

test("a long question is cut between characters", async () => {
  const { api, ann, subscribe, tick, ask } = await setup();
  await api.call("PATCH", "/v1/agents/scout", { notify: { contents: ["webhook"] } });
  const { url, received } = await startReceiver();
  await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  await tick();
  for (const start of ["", "a"]) await ask(start + "\u{1f600}".repeat(2_000));
  await tick();
  await until(() => received.length === 2);
  const texts = bodies(received).map(({ text }) => String(text));
  expect(texts.map((text) => text.isWellFormed())).toEqual([true, true]);
  expect(texts.join()).toContain("\u{1f600} …");
});

test("Slack gets escaped text, ntfy JSON at its root, both a link; what is asked only where the agent allows it", async () => {
  const { api, ann, subscribe, tick, ask } = await setup({ publicUrl: "https://errand.example" });
  await api.call("PATCH", "/v1/agents/scout", { notify: { contents: ["ntfy"], links: "sign_in" } });
  const [slack, ntfy] = await Promise.all([startReceiver(), startReceiver()]);
  await subscribe(ann, {
    events: ["question"],
    deliver: [
      { kind: "slack", url: slack.url },
      { kind: "ntfy", url: `http://127.0.0.1:${ntfy.port}/sub/topic-1`, token: "tk_1" },
    ],
  });
  await tick();
  const { id } = await ask("Run <!channel> & rm?");
  await tick();
  await until(() => slack.received.length === 1 && ntfy.received.length === 1);
  const [{ text }] = bodies(slack.received);
  expect(text).toContain("scout asks");
  expect(text).not.toContain("rm?");
  const [sent] = ntfy.received;
  expect({ path: sent?.path, authorization: sent?.headers.authorization }).toEqual({
    path: "/sub/",
    authorization: "Bearer tk_1",
  });
  expect(JSON.parse(sent?.body ?? "")).toMatchObject({
    ...{ topic: "topic-1", title: "scout asks", priority: 4 },
    message: expect.stringMatching(/^Run <!channel> & rm\?\nIt waits for an answer until [0-9T:-]+Z\.$/),
    click: `https://errand.example/#/d/${id}`,
  });
});

/** The broker itself fails to send, not the receiver: the channel says so, nothing is lost or sent twice, and it goes on. */
import { expect, test, vi } from "vitest";
import { keys } from "../../../src/redis/keys.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { startReceiver } from "../../support/receiver.ts";
import { startSubscribed } from "../../support/subscribed.ts";
import { until } from "../../support/until.ts";

async function setup(options: Parameters<typeof startSubscribed>[0] = {}, status = () => 204) {
  const started = await startSubscribed({ callbackRetryMs: () => 1_000, ...options });
  const { ann, subscribe, tick, clock } = started;
  const { url, received } = await startReceiver(status);
  const { id } = await subscribe(ann, { events: ["question"], deliver: [{ kind: "webhook", url }] });
  await tick();
  const channel = async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0];
  const forward = (ms: number) => {
    clock.offset_ms += ms;
    return tick();
  };
  return { ...started, id, received, channel, forward };
}

test("an error of ours is shown, holds up no other lane, and does not count towards a pause", async () => {
  let status = 500;
  const { gateway, alice, ask, subscribe, tick, received, channel, forward } = await setup({}, () => status);
  const other = await startReceiver();
  await subscribe(alice, { events: ["ended"], deliver: [{ kind: "webhook", url: other.url }] });
  const { id } = await ask();
  const read = vi.spyOn(gateway.broker.agents, "read").mockRejectedValueOnce(new Error("a bug"));
  await tick();
  await until(async () => (await channel()).state === "failing");
  expect(await channel()).toMatchObject({ waiting: 1, problem: { message: expect.stringContaining("log") } });
  expect(received).toEqual([]);
  read.mockRestore();
  await forward(90_000_000);
  await until(async () => (await channel()).problem.message.includes("500"));
  expect((await channel()).state).toBe("failing");
  status = 204;
  await forward(2_000);
  await until(async () => (await channel()).state === "ok");
  expect(received).toHaveLength(2);
  await alice.cancel(id);
  await tick();
  await until(() => other.received.length === 1);
});

test("what was delivered is not sent again because it could not be noted", async () => {
  const { gateway, ask, tick, received, channel, forward } = await setup();
  await ask();
  vi.spyOn(gateway.broker.redis, "lpush").mockRejectedValueOnce(new Error("a bug"));
  await tick();
  await until(async () => (await channel()).waiting === 0);
  await forward(60_000);
  expect(received).toHaveLength(1);
});

test("a job that fails is gone at once, because the lane gets another one", async () => {
  const { gateway, redis, id, ask, tick, received, forward } = await setup();
  await ask();
  const { store } = gateway.broker.subscriptions;
  const lane = vi.spyOn(store, "lane").mockRejectedValue(new Error("a bug"));
  await tick();
  await until(() => lane.mock.calls.length > 0);
  await until(async () => !(await redis.keys("*")).some((key) => key.includes(`${id}.0.`)));
  lane.mockRestore();
  // Once its claim is over.
  await forward(15_000);
  await until(() => received.length === 1);
});

test("while memory is full the channel says so, and sends once some is free", async () => {
  const { target, redis } = await startOwnRedis();
  const { ask, tick, received, channel, forward, api } = await setup({ redis: target });
  const { id } = await ask();
  await redis.config("SET", "maxmemory", "1");
  await tick();
  await until(async () => (await channel()).state === "failing");
  expect(await channel()).toMatchObject({
    waiting: 1,
    problem: { message: expect.stringContaining("memory is full") },
  });
  // The operator sees it in the list of all.
  const { subscriptions } = (await api.call("GET", "/v1/subscriptions")).body;
  expect(subscriptions).toMatchObject([{ deliver: [{ state: "failing" }] }]);
  await forward(2_000);
  expect(received).toEqual([]);
  await redis.config("SET", "maxmemory", "0");
  await forward(2_000);
  await until(() => received.length === 1);
  expect(JSON.parse(received[0]?.body ?? "")).toMatchObject({ delegation_id: id });
  await until(async () => (await channel()).state === "ok");
  expect(await redis.zcard(keys.subscriptionsBusy)).toBe(0);
});

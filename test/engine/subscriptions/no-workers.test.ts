/** Work that waits for agents nobody polls for: who is told again, when, and what looking costs. */
import { expect, test } from "vitest";
import { as } from "../../support/broker.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { startReceiver } from "../../support/receiver.ts";
import { bodies, startSubscribed } from "../../support/subscribed.ts";
import { until } from "../../support/until.ts";

const LOOKS = 10;
const AGENTS = Array.from({ length: 30 }, (_, n) => `scout-${n}`);

test.each(["all agents", "named ones", "few"])(
  "looks at agents that wait cost nothing until somebody is told again: %s",
  async (which) => {
    const { target, redis } = await startOwnRedis("everysec");
    const { ann, api, alice, clock, subscribe, tick } = await startSubscribed({ redis: target });
    const { url, received } = await startReceiver();
    const agents = which === "few" ? AGENTS.slice(0, 12) : AGENTS;
    for (const name of agents) {
      await api.agent(name);
      await alice.delegate(name);
    }
    const { id } = await subscribe(ann, {
      events: ["no_worker"],
      every_seconds: 60,
      filter: which === "all agents" ? {} : { agents },
      deliver: [{ kind: "webhook", url }],
    });
    const isSent = async (times: number) => {
      await until(() => received.length === times);
      await until(
        async () => (await ann.call("GET", `/v1/subscriptions/${id}`)).body.deliver[0].waiting === 0,
      );
    };
    await tick();
    await isSent(1);
    expect(bodies(received)).toMatchObject([{ type: "digest", counts: { no_worker: agents.length } }]);
    await redis.config("RESETSTAT");
    for (let looks = 0; looks < LOOKS; looks += 1) await tick();
    // What scripts do by themselves is counted, too, but these are sent by the gateway, or only by presence.
    const stats = await redis.info("commandstats");
    const calls = ["evalsha", "hmget"].map((name) =>
      Number(new RegExp(`_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
    );
    for (const count of calls) expect(count).toBeLessThan(LOOKS * 8);
    expect(received).toHaveLength(1);
    clock.offset_ms += 61_000;
    await tick();
    await isSent(2);
  },
);

test("an agent whose work waits again, a new subscription, and a longer pause of another are not held back", async () => {
  const { ann, api, url: broker, clock, subscribe, tick } = await startSubscribed();
  const slow = await startReceiver();
  const deliver = (url: string) => [{ kind: "webhook", url }];
  const events = ["no_worker"];
  await subscribe(ann, { events, every_seconds: 600, deliver: deliver(slow.url) });
  await api.delegate("scout");
  await tick();
  await until(() => slow.received.length === 1);
  const fast = await startReceiver();
  await subscribe(await as(broker, "approver:bea"), {
    events,
    every_seconds: 20,
    deliver: deliver(fast.url),
  });
  await tick();
  await until(() => fast.received.length === 1);
  clock.offset_ms += 21_000;
  await tick();
  await until(() => fast.received.length === 2);
  await api.call("POST", "/v1/agents/scout/pause");
  clock.offset_ms += 21_000;
  await tick();
  await api.call("POST", "/v1/agents/scout/resume");
  clock.offset_ms += 11_000;
  await tick();
  await until(() => fast.received.length === 3);
  expect(slow.received).toHaveLength(1);
});

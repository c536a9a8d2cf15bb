/** Redis is killed while a schedule makes a tick a second: when it is back, no tick is lost, and none is made twice. */
import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { madeBy } from "../support/scheduled.ts";
import { until } from "../support/until.ts";

test("while Redis is away no tick is made, and when it is back each is made once", async () => {
  const own = await startOwnRedis();
  const { url, log } = await startBroker({ redis: own.target, sweepEveryMs: 250 });
  const api = client(url);
  await api.agent("scout");
  const delegation = { target: "scout", task: "tidy up" };
  const body = { every_seconds: 1, missed: "all", delegation };
  const { id, next } = (await api.call("POST", "/v1/schedules", body)).body;
  const ticks = async () => (await madeBy(api, id)).map(({ metadata }) => metadata.schedule.at);
  const atLeast = (count: number) => until(async () => (await ticks()).length >= count, { what: "ticks" });
  await atLeast(2);
  for (let kills = 1; kills <= 3; kills += 1) {
    const before = (await ticks()).length;
    // It is killed in the middle of ticks, and starts again by itself.
    own.signal("SIGKILL");
    await atLeast(before + 3);
  }
  await api.call("POST", `/v1/schedules/${id}/pause`);
  const made = await ticks();
  const first = Date.parse(next[0]);
  expect(made).toEqual(made.map((_, n) => new Date(first + n * 1_000).toISOString()));
  const runs = (await api.call("GET", `/v1/schedules/${id}/runs`)).body.runs;
  expect(runs.map((run: { at: string }) => run.at).toReversed()).toEqual(made);
  expect(log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

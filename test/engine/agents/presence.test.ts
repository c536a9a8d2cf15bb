import { expect, onTestFinished, test, vi } from "vitest";
import { PresenceTracker } from "../../../src/engine/agents/presence.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { freshDb, openRedis } from "../../support/broker.ts";
import { testShards } from "../../support/on-cluster.ts";

test("an agent that was seen just now is online for a reader that read before that was written", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const redis = openRedis(await freshDb());
  const log = createLog("debug", () => {});
  const polls = { count: () => 0 };
  const presence = new PresenceTracker(redis, new Shards(testShards()), polls, "gw", log, () => false);
  onTestFinished(async () => {
    await presence.stop();
    vi.useRealTimers();
    redis.disconnect();
  });
  await presence.start();
  presence.seen("scout");
  const reading = presence.ofAll(redis, [{ name: "scout", seen: null, unreached: null, paused: "" }]);
  vi.advanceTimersByTime(1_000);
  expect(await reading).toMatchObject([{ state: "online", last_seen_at: expect.any(String) }]);
});

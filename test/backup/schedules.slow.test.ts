/** A schedule in a backup, and in a move to more shards: its history is there, no tick is made twice, and it goes on. */
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { isOwnKey } from "../../src/redis/keys.ts";
import { client, startBroker } from "../support/broker.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { freshDir } from "../support/program.ts";
import { madeBy } from "../support/scheduled.ts";
import { until } from "../support/until.ts";
import { cli } from "./cli.ts";

vi.setConfig({ testTimeout: 60_000 });

async function setup(own: Awaited<ReturnType<typeof startOwnRedis>>, shards = 1) {
  const broker = await startBroker({ redis: own.target, shards });
  const api = client(broker.url);
  const runs = async (id: string) => (await api.call("GET", `/v1/schedules/${id}/runs`)).body.runs;
  return { ...broker, own, api, runs, dataDir: dirname(own.target.socket) };
}

test.each([
  ["restored", 1],
  ["moved to more shards", 3],
])("a schedule that is %s makes each tick once", async (_, shards) => {
  const before = await setup(await startOwnRedis("everysec"));
  await before.api.agent("scout", { limits: { max_waiting: 1000 } });
  const settings = { every_seconds: 1, missed: "all", delegation: { target: "scout", task: "tidy up" } };
  const { id } = (await before.api.call("POST", "/v1/schedules", settings)).body;
  await until(async () => (await before.runs(id)).length >= 3, { what: "three ticks" });
  expect((await before.own.redis.keys("*")).filter((key) => !isOwnKey(key))).toEqual([]);
  const dataDir = join(freshDir(), "later");
  if (shards === 1) {
    const file = join(freshDir(), "errand.backup");
    expect(await cli(before.dataDir, "backup", file)).toMatchObject({ code: 0 });
    await before.gateway.close({ idleGrace: false });
    expect(await cli(dataDir, "restore", file, "--data-dir", dataDir)).toMatchObject({ code: 0 });
  } else {
    await before.gateway.close({ idleGrace: false });
    await before.own.embedded.stop();
    const moved = ["migrate", "--to-data-dir", dataDir, "--shards", "3"];
    const { code, stderr } = await cli(before.dataDir, ...moved);
    expect([code, stderr]).toEqual([0, expect.anything()]);
  }
  const after = await setup(await startOwnRedis("everysec", dataDir), shards);
  const kept = (await after.runs(id)).length;
  expect(kept).toBeGreaterThanOrEqual(3);
  await until(async () => (await after.runs(id)).length >= kept + 3, { what: "three more ticks" });
  await after.api.call("POST", `/v1/schedules/${id}/pause`);
  const times = (await madeBy(after.api, id)).map(({ metadata }) => Date.parse(metadata.schedule.at));
  expect(times).toEqual(times.map((_time, at) => (times[0] ?? 0) + at * 1000));
});

/**
 * A schedule of one tick a second over two gateways that are killed in turn: each tick of the calendar makes one delegation.
 * `SCHEDULE_SECONDS=300` runs it for five minutes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { client, freshDb } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { madeBy } from "../support/scheduled.ts";
import { until } from "../support/until.ts";

const SECONDS = Number(process.env.SCHEDULE_SECONDS ?? 15);
const delegation = { target: "scout", task: "tidy up" };

test("one tick a second over two gateways that are killed in turn: exactly the ticks of the calendar", {
  timeout: SECONDS * 1_000 + 40_000,
}, async () => {
  const db = await freshDb();
  const start = () => startGatewayProcess(db, { sweepEveryMs: 250 });
  const gateways = [await start(), await start()];
  const api = () => client(gateways.find((one) => one.isAlive())?.url ?? "");
  await api().agent("scout", { limits: { max_waiting: 10_000 } });
  const body = { every_seconds: 1, missed: "all", delegation };
  const { id, next } = (await api().call("POST", "/v1/schedules", body)).body;
  const end = performance.now() + SECONDS * 1_000;
  let kills = 0;
  for (let turn = 0; performance.now() < end; turn = 1 - turn) {
    // The time between two kills is the load, nothing is waited for.
    await sleep(1_500 + Math.random() * 2_000);
    await gateways[turn]?.kill();
    kills += 1;
    gateways[turn] = await start();
  }
  const { body: paused } = await api().call("POST", `/v1/schedules/${id}/pause`);
  const until_ms = Date.parse(paused.updated_at);
  const first = Date.parse(next[0]);
  const expected = Array.from({ length: Math.floor((until_ms - first) / 1_000) + 1 }, (_, tick) =>
    new Date(first + tick * 1_000).toISOString(),
  );
  // A tick that was claimed before the pause is still made; one that is due in the same moment may be.
  const ticks = await until(
    async () => {
      const made = (await madeBy(api(), id)).map(({ metadata }) => metadata.schedule.at);
      return made.length >= expected.length - 1 ? made : undefined;
    },
    { what: "the last ticks" },
  );
  expect(new Set(ticks).size).toBe(ticks.length);
  expect(ticks).toEqual(expected.slice(0, ticks.length));
  console.log(`${ticks.length} ticks in ${SECONDS} s, ${kills} gateways killed; each was made once`);
});

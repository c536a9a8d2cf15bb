/** Kills a gateway before each of its commands to Redis, one after the other, while it makes a tick of a schedule. */
import { once } from "node:events";
import { expect, test } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { madeBy } from "../support/scheduled.ts";

const HOUR = 3_600_000;
const delegation = { target: "scout", task: "tidy up" };

test("a gateway that is killed before any of its commands loses no tick, and makes none twice", {
  timeout: 240_000,
}, async () => {
  const broker = await startBroker();
  const { clock, gateway } = broker;
  const api = client(broker.url);
  await api.agent("scout");
  let survived = false;
  let kills = 0;
  for (let n = 1; !survived; n += 1) {
    expect(n).toBeLessThan(60);
    // Two ticks are due; BullMQ, which follows the machine's clock, wakes nobody for them.
    clock.offset_ms = -2 * HOUR - 1_000;
    const body = { every_seconds: 3600, missed: "all", overlap: "cancel_running", delegation };
    const { id, next } = (await api.call("POST", "/v1/schedules", body)).body;
    clock.offset_ms = 0;
    const victim = await startGatewayProcess(broker.db);
    await victim.arm(n);
    victim.child.send({ schedules: true });
    await Promise.race([once(victim.child, "message"), once(victim.child, "exit")]);
    survived = victim.isAlive();
    await victim.kill();
    if (!survived) kills += 1;
    // A tick that was claimed is taken over after two seconds.
    clock.offset_ms = 3_000;
    await gateway.broker.schedules.tick();
    await gateway.broker.schedules.tick();
    const made = await madeBy(api, id);
    expect({ n, ticks: made.map(({ metadata }) => metadata.schedule.at) }).toEqual({
      n,
      ticks: next.slice(0, 2),
    });
    expect(made.map(({ state }) => state)).toEqual(["canceled", "submitted"]);
    const { runs } = (await api.call("GET", `/v1/schedules/${id}/runs`)).body;
    expect(runs.map((run: { delegation_id: string }) => run.delegation_id)).toEqual(
      made.map((one) => one.id).toReversed(),
    );
    await api.call("DELETE", `/v1/schedules/${id}`);
  }
  expect(kills).toBeGreaterThan(8);
});

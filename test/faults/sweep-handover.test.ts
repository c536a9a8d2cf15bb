import { expect, test, vi } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { checkHistory, eventsOf } from "../support/history.ts";

/** How long records that one gateway took are left to it. */
const LEFT_MS = 2_000;

test("records that a gateway took are left to it for 2 s; if it died, another gateway takes them", async () => {
  const { url, clock, gateway, another } = await startBroker();
  const second = await another();
  const api = client(url);
  await api.agent("scout");
  const { id } = (await api.delegate("scout", { ttl_seconds: 10 })).body;
  clock.offset_ms = 10_001;

  const died = vi.spyOn(gateway.broker.writer, "move").mockRejectedValueOnce(new Error("died"));
  expect(await gateway.sweep.tick()).toBe(1);
  expect(died).toHaveBeenCalledOnce();

  clock.offset_ms += LEFT_MS / 2;
  expect(await second.gateway.sweep.tick()).toBe(0);
  expect((await api.get(id)).body.state).toBe("submitted");

  clock.offset_ms += LEFT_MS / 2 + 1_000;
  expect(await second.gateway.sweep.tick()).toBe(1);
  expect((await api.get(id)).body).toMatchObject({ state: "failed", error: { code: "deadline_exceeded" } });
  expect(await gateway.sweep.tick()).toBe(0);
  checkHistory(await eventsOf(api, id), "finished");
});

test("two gateways that sweep at once handle each record once", async () => {
  const { url, clock, gateway, another } = await startBroker();
  const second = await another();
  const api = client(url);
  await api.agent("scout");
  const count = 150;
  for (let n = 0; n < count; n += 1) await api.delegate("scout", { ttl_seconds: 10 });
  clock.offset_ms = 10_001;
  const handled = await Promise.all([gateway.sweep.tick(), second.gateway.sweep.tick()]);
  expect(handled[0] + handled[1]).toBe(count);
  const { body } = await api.call("GET", "/v1/agents/scout");
  expect(body.counts).toMatchObject({ waiting: 0, delayed: 0 });
});

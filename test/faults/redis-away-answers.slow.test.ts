/** Answers while Redis is away that are more than a plain "try again". redis-away.slow.test.ts tests how fast they are. */
import { expect, inject, test, vi } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openRedisLink } from "../support/redis-link.ts";
import { until } from "../support/until.ts";

async function setup() {
  const proxy = await openRedisLink(inject("redisSocket"));
  const broker = await startBroker();
  const redis = { url: `redis://127.0.0.1:${proxy.port}/${broker.db}` };
  const { gateway, url } = await broker.another({ redis });
  const api = client(url);
  await api.agent("scout");
  return { proxy, gateway, api, url, direct: client(broker.url) };
}

test("an accepted delegation whose result cannot be awaited any more is still answered as accepted", async () => {
  const { proxy, gateway, api, direct } = await setup();
  const { writer } = gateway.broker;
  const move = writer.move.bind(writer);
  vi.spyOn(writer, "move").mockImplementationOnce(async (command) => {
    const result = await move(command);
    await proxy.fault("refuse");
    return result;
  });
  const { status, body, headers } = await api.delegate("scout", {}, { prefer: "wait=1" });
  await proxy.heal();
  expect([status, body.state, body.target]).toEqual([202, "submitted", "scout"]);
  expect(headers.get("location")).toBe(`/v1/delegations/${body.id}`);
  expect((await direct.get(body.id)).status).toBe(200);
}, 120_000);

test("/metrics answers without the gauges of the queues", async () => {
  const { proxy, api, url } = await setup();
  await api.delegate("scout");
  const viewer = await as(url, "viewer:prometheus");
  const caller = await as(url, "caller:alice");
  const scrape = async (token = OPERATOR) => {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, text: await response.text() };
  };
  const before = (await scrape()).text;
  for (const line of ['errand_queue_waiting{agent="scout"} 1', "errand_redis_up 1"])
    expect(before).toContain(line);
  expect((await scrape(viewer.token)).status).toBe(200);
  expect((await scrape(caller.token)).status).toBe(403);
  await proxy.fault("refuse");
  const { status, text } = await scrape();
  expect(status).toBe(200);
  for (const line of ['errand_moves_total{move="submit"} 1', "errand_redis_up 0"])
    expect(text).toContain(line);
  expect(text).not.toContain("errand_queue_waiting{");
  // Long enough that no cached token lets it in.
  await until(async () => (await viewer.call("GET", "/v1/tokens")).status === 503);
  expect((await scrape(viewer.token)).status).toBe(200);
  expect((await scrape(caller.token)).status).toBe(403);
  expect((await scrape(`${viewer.token.slice(0, -1)}!`)).status).toBe(401);
});

test("the error of a failed read has no outcome, that of a failed write has one", async () => {
  const { proxy, api } = await setup();
  await proxy.fault("refuse");
  const id = `dlg_0_${"0".repeat(26)}`;
  const read = (await api.get(id)).body;
  expect([read.code, read.details]).toEqual(["redis_unavailable", undefined]);
  expect(read.recovery).not.toContain("Idempotency-Key");
  const write = (await api.delegate("scout")).body;
  expect([write.code, write.details]).toEqual(["redis_unavailable", { outcome: "unknown" }]);
  expect(write.recovery).toContain("Idempotency-Key");
});

/** A worker that ends by itself when nothing came for a time. */
import { expect, test } from "vitest";
import { Agent } from "../../../src/index.ts";
import { client, OPERATOR, startBroker } from "../../support/broker.ts";
import { until } from "../../support/until.ts";

async function setup() {
  const { url, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  const ran: string[] = [];
  const worker = (options: object) =>
    new Agent({ url, token: OPERATOR, agent: "scout", ...options }, ({ delegation }) => {
      ran.push(delegation.id);
      return "done";
    }).run();
  const delegate = async () => String((await api.delegate("scout")).body.id);
  return { api, gateway, ran, worker, delegate };
}

test("with 0 it works on all that waits, on all slots, and stops at once", async () => {
  const { ran, worker, delegate } = await setup();
  await worker({ stopWhenIdleSeconds: 0 });
  expect(ran).toEqual([]);
  const ids = [];
  for (let n = 0; n < 5; n += 1) ids.push(await delegate());
  await worker({ stopWhenIdleSeconds: 0, concurrency: 2 });
  expect(ran.sort()).toEqual(ids.sort());
  await delegate();
  await delegate();
  await worker({ stopWhenIdleSeconds: 0, once: true });
  expect(ran).toHaveLength(6);
});

test("it takes what comes within the time, which then starts again", async () => {
  const { api, ran, worker, delegate } = await setup();
  const startedAt = performance.now();
  // Longer than a busy machine takes to see the poll and to delegate.
  const done = worker({ stopWhenIdleSeconds: 3 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  const id = await delegate();
  await until(() => ran.length === 1);
  const ranAt = performance.now();
  await done;
  expect(ran).toEqual([id]);
  expect(performance.now() - ranAt).toBeGreaterThan(2_900);
  expect(performance.now() - startedAt).toBeLessThan(30_000);
});

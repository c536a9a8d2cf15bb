import { expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../../support/broker.ts";
import { startReceiver } from "../../support/receiver.ts";
import { until } from "../../support/until.ts";

async function scrape(url: string, token = OPERATOR) {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const value = (name: string) =>
    Number(new RegExp(`^${name.replace(/[{}"]/g, "\\$&")} (.+)$`, "m").exec(text)?.[1]);
  return { status: response.status, type: response.headers.get("content-type"), text, value };
}

test("the story of a few delegations can be read from the metrics", async () => {
  const { url, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("scout");
  for (let n = 0; n < 4; n += 1) await api.delegate("scout");
  const lease = async () => String((await api.lease("scout")).body.leases[0].lease_id);
  const first = await lease();
  await api.reply(first);
  await api.reply(first);
  await api.reply(await lease(), { state: "failed", error: { code: "x", message: "x" } });
  const lapsed = await lease();
  clock.offset_ms = 61_000;
  await gateway.sweep.tick();
  expect((await api.reply(first, { text: "another" })).status).toBe(409);
  await api.reply(`${lapsed}99`);

  const { value, text, type } = await scrape(url);
  expect(type).toContain("text/plain");
  expect(value('errand_moves_total{move="submit"}')).toBe(4);
  expect(value('errand_delegations_finished_total{state="completed"}')).toBe(1);
  expect(value('errand_delegations_finished_total{state="failed"}')).toBe(1);
  expect(value('errand_replies_total{outcome="matched"}')).toBe(2);
  expect(value('errand_replies_total{outcome="duplicate"}')).toBe(1);
  expect(value('errand_replies_total{outcome="late"}')).toBe(1);
  expect(value('errand_replies_total{outcome="unknown"}')).toBe(1);
  expect(value('errand_sweep_moves_total{move="lapse"}')).toBe(1);
  // The one whose lease ended waits, too, once its pause is over.
  expect([1, 2]).toContain(value('errand_queue_waiting{agent="scout"}'));
  expect(value('errand_queue_oldest_seconds{agent="scout"}')).toBeGreaterThan(60);
  expect(value("errand_time_to_lease_seconds_count")).toBe(3);
  expect(value("errand_accept_seconds_count")).toBe(4);
  expect(text).toContain('route="/v1/delegations"');
});

test("an end is counted once, whatever happens to the delegation afterwards", async () => {
  const { url, gateway } = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(url);
  await api.agent("scout");
  const { url: receiver, received } = await startReceiver();
  await api.delegate("scout", { callback: { url: receiver } });
  await api.reply(String((await api.lease("scout")).body.leases[0].lease_id));
  await until(() => received.length === 1);
  await Promise.allSettled(gateway.broker.background);
  const { value } = await scrape(url);
  expect(value('errand_moves_total{move="follow_up"}')).toBeGreaterThan(0);
  expect(value('errand_delegations_finished_total{state="completed"}')).toBe(1);
  expect(value("errand_time_to_answer_seconds_count")).toBe(1);
});

test("labels stay bounded: no ids, no principals, agents only up to the cap", async () => {
  const { url } = await startBroker();
  const api = client(url);
  for (let n = 0; n < 120; n += 1) {
    await api.agent(`agent-${n}`);
    await api.delegate(`agent-${n}`);
  }
  await api.call("GET", "/v1/delegations/dlg_0_00000000000000000000000000");
  await api.call("GET", "/some/odd/path");
  const { text } = await scrape(url);
  expect(text.match(/^errand_queue_waiting\{/gm)).toHaveLength(100);
  expect(text).not.toMatch(/dlg_|lse_|caller:|odd/);
});

test("only viewers and the operator may read them", async () => {
  const { url } = await startBroker();
  expect((await scrape(url, (await as(url, "viewer:wall")).token)).status).toBe(200);
  expect((await scrape(url, (await as(url, "caller:alice")).token)).status).toBe(403);
  expect((await scrape(url, "nonsense")).status).toBe(401);
});

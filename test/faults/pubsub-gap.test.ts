/** A gateway's pub/sub connection is down while another gateway publishes. The feed's connection stays up. */
import { expect, test, vi } from "vitest";
import { as, client, request, startBroker } from "../support/broker.ts";
import { cutConnection } from "../support/cut-connection.ts";
import { openStream } from "../support/sse.ts";
import { allowStalls } from "../support/stalls.ts";
import { until } from "../support/until.ts";

/** The promised second for a revocation, and the time that a new connection takes. */
const SOON_MS = 2_000;

/** One gateway that receives no published message until `reconnect`, and another one beside it that publishes. */
async function setup() {
  const broker = await startBroker();
  const { gateway, url } = await broker.another();
  const api = client(broker.url);
  await api.agent("scout");
  // As if the connection had been down at that moment.
  const unheard = vi.spyOn(broker.gateway.broker.bus, "publish").mockResolvedValue(0);
  const disconnected = gateway.broker;
  const reconnect = () => cutConnection(broker, "subscriber");
  const parked = () =>
    until(() => disconnected.handoff.polls.count("scout") === 1, { what: "a parked poll" });
  return { api, url, disconnected, unheard, parked, reconnect, direct: broker.url };
}

async function openPollAndStream(url: string, direct: string) {
  const scout = await as(direct, "agent:scout");
  const poll = request(url, "POST", "/v1/agents/scout/leases", {
    token: scout.token,
    body: { wait_seconds: 15 },
  });
  const stream = await openStream(`${url}/v1/events`, { token: scout.token });
  return { scout, poll, stream };
}

test("a token revoked while pub/sub is down loses its held polls and streams after the reconnect; others keep theirs", async () => {
  const withStalls = allowStalls();
  const { api, url, direct, parked, reconnect } = await setup();
  const { scout, poll, stream } = await openPollAndStream(url, direct);
  await parked();
  const viewer = await as(direct, "viewer:eve");
  const other = await openStream(`${url}/v1/events`, { token: viewer.token });
  expect((await api.call("DELETE", `/v1/tokens/${scout.tokenId}`)).status).toBe(204);
  await reconnect();
  const backAt = performance.now();
  expect(await poll).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
  await stream.ended();
  expect(performance.now() - backAt).toBeLessThan(withStalls(SOON_MS));
  expect(other.isOpen()).toBe(true);
  other.close();
});

test("a revocation ends polls and streams even if the first look-up after the reconnect fails", async () => {
  const { api, url, disconnected, direct, parked, reconnect } = await setup();
  const { scout, poll, stream } = await openPollAndStream(url, direct);
  await parked();
  expect((await api.call("DELETE", `/v1/tokens/${scout.tokenId}`)).status).toBe(204);
  vi.spyOn(disconnected.redis, "hget").mockRejectedValueOnce(new Error("Command timed out"));
  await reconnect();
  expect((await poll).status).toBe(401);
  await stream.ended();
});

test("a session revoked while pub/sub is down loses its held polls and streams after the reconnect", async () => {
  const { url, direct, disconnected, parked, reconnect } = await setup();
  const scout = await as(direct, "agent:scout");
  const { body: session } = await scout.call("POST", "/v1/sessions");
  const poll = request(url, "POST", "/v1/agents/scout/leases", {
    token: session.token,
    body: { wait_seconds: 15 },
  });
  const stream = await openStream(`${url}/v1/events`, { token: session.token });
  const ofToken = await openStream(`${url}/v1/events`, { token: scout.token });
  await parked();
  // As if the message of the revocation had been lost.
  await disconnected.redis.del(`{errand}:session:${session.id}`);
  await reconnect();
  expect(await poll).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
  await stream.ended();
  expect(ofToken.isOpen()).toBe(true);
  ofToken.close();
});

test("work offered while pub/sub is down reaches the parked poll after the reconnect, and so does later work", async () => {
  const withStalls = allowStalls();
  const { api, url, unheard, parked, reconnect } = await setup();
  const poll = client(url).lease("scout", { wait_seconds: 15 });
  await parked();
  const { id } = (await api.delegate("scout")).body;
  await reconnect();
  const backAt = performance.now();
  expect((await poll).body.leases).toMatchObject([{ delegation: { id } }]);
  expect(performance.now() - backAt).toBeLessThan(withStalls(SOON_MS));

  unheard.mockRestore();
  const next = client(url).lease("scout", { wait_seconds: 15 });
  await parked();
  const second = (await api.delegate("scout")).body;
  expect((await next).body.leases).toMatchObject([{ delegation: { id: second.id } }]);
});

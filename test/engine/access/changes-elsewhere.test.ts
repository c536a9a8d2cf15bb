/** A gateway notices changes of another one within a second, although it caches, and even if messages are lost. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Revocations } from "../../../src/engine/access/revocations.ts";
import { AgentStore } from "../../../src/engine/agents/store.ts";
import { Bus } from "../../../src/redis/bus.ts";
import { Shards } from "../../../src/redis/shards.ts";
import { agentRequestSchema } from "../../../src/schema/agent.ts";
import { as, client, freshDb, openRedis, request, startBroker } from "../../support/broker.ts";
import { testShards } from "../../support/on-cluster.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("a revoked token is refused at every gateway after a second, without the message of its revocation", async () => {
  const { url, another } = await startBroker();
  const other = (await another()).url;
  const { id, token } = (await client(url).call("POST", "/v1/tokens", { principal: "caller:alice" })).body;
  const kept = await as(url, "caller:bob");
  const statuses = async () => {
    const asked = [token, kept.token].map((one) => client(other, one).call("GET", "/v1/delegations"));
    return (await Promise.all(asked)).map(({ status }) => status);
  };
  expect(await statuses()).toEqual([200, 200]);
  vi.spyOn(Revocations.prototype, "endHere").mockImplementation(() => {});
  expect((await client(url).call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
  expect(await statuses()).toEqual([200, 200]);
  vi.advanceTimersByTime(1_000);
  expect(await statuses()).toEqual([401, 200]);
});

test("the streams and polls of a revoked token or session end without its message; others stay open", async () => {
  const { url, another } = await startBroker();
  // A gateway that gets no messages.
  const withoutMessages = vi.spyOn(Bus.prototype, "subscribe").mockResolvedValue();
  const { url: other, gateway } = await another();
  withoutMessages.mockRestore();
  await client(url).agent("scout");
  const scout = await as(url, "agent:scout");
  const bob = await as(url, "caller:bob");
  const open = (token: string) => openStream(`${other}/v1/events`, { token });
  const signIn = async () => (await request(url, "POST", "/v1/sessions", { token: bob.token })).body;
  const session = await signIn();
  const ended = [await open(scout.token), await open(session.token)];
  const kept = [await open(bob.token), await open((await signIn()).token)];
  const poll = client(other, scout.token).lease("scout", { wait_seconds: 30 });
  await until(() => gateway.broker.handoff.polls.count("scout") === 1);
  expect((await client(url).call("DELETE", `/v1/tokens/${scout.tokenId}`)).status).toBe(204);
  expect((await client(url).call("DELETE", `/v1/sessions/${session.id}`)).status).toBe(204);
  for (const stream of ended) await stream.ended();
  expect((await poll).status).toBe(401);
  expect(kept.map((stream) => stream.isOpen())).toEqual([true, true]);
  for (const stream of kept) stream.close();
});

test("the script that revokes a token or session also publishes it", async () => {
  const { url, db } = await startBroker();
  const listener = openRedis(db);
  onTestFinished(() => listener.disconnect());
  const published: string[] = [];
  listener.on("message", (_channel: string, id: string) => published.push(id));
  await listener.subscribe(`{errand}:revoked${db === 0 ? "" : `@${db}`}`);
  const { token, tokenId } = await as(url, "caller:bob");
  const { id } = (await request(url, "POST", "/v1/sessions", { token })).body;
  for (const path of [`/v1/sessions/${id}`, `/v1/tokens/${tokenId}`]) {
    expect((await client(url).call("DELETE", path)).status).toBe(204);
  }
  await until(() => published.length >= 2);
  expect(published).toEqual([id, tokenId]);
});

async function twoStores() {
  const redis = openRedis(await freshDb());
  onTestFinished(() => redis.disconnect());
  const store = () =>
    new AgentStore({
      redis,
      shards: new Shards(testShards()),
      clock: { offset_ms: 0 },
      retentionMs: 3_600_000,
    });
  const [here, there] = [store(), store()];
  await there.put("scout", agentRequestSchema.parse({}));
  return { redis, here, there };
}

test("every change of an agent is seen after a second", async () => {
  const { here, there } = await twoStores();
  const seen = async () => {
    vi.advanceTimersByTime(1_000);
    return here.find("scout");
  };
  expect(await seen()).toMatchObject({ version: 1, paused: false });
  await there.put("scout", agentRequestSchema.parse({ description: "new" }));
  expect((await here.find("scout"))?.version).toBe(1);
  expect(await seen()).toMatchObject({ version: 2, spec: { description: "new" } });
  await there.setPaused("scout", true);
  expect((await seen())?.paused).toBe(true);
  await there.beginDeletion("scout", false);
  expect(await seen()).not.toBeNull();
  await there.finishDeletion("scout");
  expect(await seen()).toBeNull();
  await there.put("scout", agentRequestSchema.parse({}));
  expect(await seen()).toMatchObject({ version: 1, paused: false });
});

test("unchanged agents are read from Redis once", async () => {
  const { redis, here, there } = await twoStores();
  const names = Array.from({ length: 50 }, (_, n) => `agent-${n}`);
  for (const name of names) await there.put(name, agentRequestSchema.parse({}));
  const reads = vi.spyOn(redis, "evalsha");
  const marks = vi.spyOn(redis, "get");
  for (let round = 0; round < 5; round += 1) {
    vi.advanceTimersByTime(1_000);
    for (const name of names) expect((await here.find(name))?.name).toBe(name);
  }
  expect(reads).toHaveBeenCalledTimes(names.length);
  expect(marks).toHaveBeenCalledTimes(5 * testShards());
});

import { expect, test, vi } from "vitest";
import { client, startBroker } from "../support/broker.ts";
import { ownEvents } from "../support/own-events.ts";
import { openStream } from "../support/sse.ts";
import { until } from "../support/until.ts";

const artifactOf = (artifactId: string, text: string) => ({ artifactId, parts: [{ text }] });
const supersededOf = (artifactId: string) => ({ artifactId, superseded: true });

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const work = async () => {
    const { id } = (await api.delegate("scout")).body;
    const { lease_id } = (await api.lease("scout")).body.leases[0];
    const send = (artifact: unknown, more: Record<string, unknown> = {}) =>
      api.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact, ...more });
    return { id: String(id), lease_id: String(lease_id), send };
  };
  return { ...broker, api, work };
}

type Api = Awaited<ReturnType<typeof setup>>["api"];
const ofStatus = async (api: Api, id: string, status: string) =>
  (await api.events(id)).body.events.filter((event: { status?: string }) => event.status === status);

test("events contain no bodies: a reader gets the current bodies, and for other events a mark that the body was replaced", async () => {
  const { redis, api, work } = await setup();
  const { id, send } = await work();
  const body = "b".repeat(10_000);
  await send(artifactOf("a", `${body}1`));
  await send(artifactOf("a", `${body}2`));
  await send(artifactOf("a", "3"), { append: true, last_chunk: true });
  const [first, second, third] = await ofStatus(api, id, "artifact");
  expect(first.artifact).toEqual(supersededOf("a"));
  expect(second.artifact).toEqual(artifactOf("a", `${body}2`));
  expect(third).toMatchObject({ artifact: artifactOf("a", "3"), append: true, last_chunk: true });
  const streams = ["{errand:0}:events", "{errand:0}:feed:agent:scout"];
  expect(JSON.stringify(await ownEvents(redis, id))).not.toContain("bbbb");
  for (const stream of streams) {
    expect(JSON.stringify(await redis.xrange(stream, "-", "+"))).not.toContain("bbbb");
  }
  const feed = await api.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
  const artifactEvents = feed.body.events.filter((event: { status?: string }) => event.status === "artifact");
  expect(artifactEvents.map(({ artifact }: { artifact: unknown }) => artifact)).toEqual(
    [first, second, third].map(({ artifact }) => artifact),
  );
});

test("a live subscriber gets each body as it arrives, in order", async () => {
  const { url, work } = await setup();
  const { id, send } = await work();
  const streams = [
    await openStream(`${url}/v1/delegations/${id}/events`),
    await openStream(`${url}/v1/events?target=scout`),
  ];
  for (const text of ["1", "2", "3"]) {
    await send(artifactOf("a", text));
    for (const { events } of streams) {
      await until(() => events.some(({ data }) => data.artifact?.parts?.[0]?.text === text));
    }
  }
  for (const stream of streams) stream.close();
});

test("the artifacts of a lost attempt are removed from its events, and their places are not used again", async () => {
  const { clock, gateway, api, work } = await setup();
  const { id, send } = await work();
  await send(artifactOf("a", "first attempt"));
  clock.offset_ms += 61_000;
  await gateway.sweep.tick();
  clock.offset_ms += 10_000;
  const { lease_id } = (await api.lease("scout")).body.leases[0];
  await api.call("POST", `/v1/leases/${lease_id}/artifacts`, { artifact: artifactOf("a", "second") });
  const events = await ofStatus(api, id, "artifact");
  expect(events.map(({ artifact }: { artifact: unknown }) => artifact)).toEqual([
    supersededOf("a"),
    artifactOf("a", "second"),
  ]);
  expect((await ofStatus(api, id, "leased"))[1].artifacts_dropped).toBe(true);
  expect((await api.get(id)).body.artifacts).toEqual([artifactOf("a", "second")]);
});

test("the artifacts of a question and of an A2A Task are references, too", async () => {
  const { api, work } = await setup();
  const { id, lease_id } = await work();
  const parts = [{ text: "?" }];
  const task = (state: string, ids: readonly string[]) => ({
    jsonrpc: "2.0",
    id: lease_id,
    result: {
      id: "t1",
      contextId: "c1",
      status: { state, message: { messageId: "m", role: "ROLE_AGENT", parts } },
      artifacts: ids.map((name) => artifactOf(name, name)),
    },
  });
  const reply = (body: unknown) => api.call("POST", "/v1/agents/scout/replies", body);
  expect((await reply(task("TASK_STATE_WORKING", ["a", "b"]))).status).toBe(200);
  expect((await reply(task("TASK_STATE_INPUT_REQUIRED", ["b"]))).status).toBe(200);
  expect((await ofStatus(api, id, "progress"))[0].artifacts).toEqual([
    artifactOf("a", "a"),
    supersededOf("b"),
  ]);
  expect((await ofStatus(api, id, "interrupted"))[0].artifacts).toEqual([artifactOf("b", "b")]);
});

test("a page needs one read for all its bodies, and none without bodies; many large bodies make several pages", async () => {
  const { gateway, api, work } = await setup();
  const { id, send } = await work();
  for (let n = 0; n < 20; n += 1) await send(artifactOf("a", String(n)), { append: n > 0 });
  const reads = vi.spyOn(gateway.broker.bulk, "hmget");
  expect(await ofStatus(api, id, "artifact")).toHaveLength(20);
  expect(reads).toHaveBeenCalledTimes(1);
  const plain = await work();
  await api.events(plain.id);
  expect(reads).toHaveBeenCalledTimes(1);

  const large = "x".repeat(950_000);
  const ids: string[] = [];
  for (let n = 0; n < 4; n += 1) {
    const { id: other, send: sendOther } = await work();
    ids.push(other);
    for (const name of ["a", "b", "c"]) expect((await sendOther(artifactOf(name, large))).status).toBe(200);
  }
  let after = "0";
  const seen: string[] = [];
  for (let pages = 0; ; pages += 1) {
    const page = await api.call("GET", `/v1/events?after=${after}&target=scout`, undefined, {
      accept: "application/json",
    });
    expect(JSON.stringify(page.body).length).toBeLessThan(9 * 1024 * 1024);
    for (const { status, delegation_id, artifact } of page.body.events) {
      if (status === "artifact" && ids.includes(delegation_id))
        seen.push(delegation_id + artifact.artifactId);
    }
    if (page.body.events.length === 0) break;
    expect(pages).toBeLessThan(10);
    after = page.body.cursor;
  }
  expect(seen).toEqual(ids.flatMap((one) => ["a", "b", "c"].map((name) => one + name)));
});

test("a chunk repeated with its chunk_id is stored once; the same id with another body is refused", async () => {
  const { api, work } = await setup();
  const { id, send } = await work();
  expect((await send(artifactOf("a", "1"), { chunk_id: "c1" })).body.duplicate).toBeUndefined();
  const again = await send(artifactOf("a", "1"), { chunk_id: "c1" });
  expect(again).toMatchObject({ status: 200, body: { duplicate: true, expires_at: expect.any(String) } });
  expect(await send(artifactOf("a", "2"), { chunk_id: "c1" })).toMatchObject({
    status: 409,
    body: { code: "wrong_state", delegation_id: id },
  });
  await send(artifactOf("b", "1"), { chunk_id: "c1" });
  await send(artifactOf("a", "2"), { chunk_id: "c2", append: true });
  expect((await send(artifactOf("a", "2"), { chunk_id: "c2", append: true })).body.duplicate).toBe(true);
  const events = await ofStatus(api, id, "artifact");
  expect(events.map((event: { chunk_id?: string }) => event.chunk_id)).toEqual(["c1", "c1", "c2"]);
  expect((await api.get(id)).body.artifacts[0].parts).toEqual([{ text: "1" }, { text: "2" }]);
});

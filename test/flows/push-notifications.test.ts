/** Push notifications of A2A: every event of a delegation, in order, to each of its configs, whatever fails. */
import { expect, test, vi } from "vitest";
import { toPrincipal } from "../../src/engine/access/access.ts";
import { delegate } from "../../src/engine/delegations/delegate.ts";
import {
  createPushConfig,
  deletePushConfig,
  listPushConfigs,
  pushConfigMaker,
} from "../../src/engine/outbound/push-notifications/configs.ts";
import { delegateRequestSchema } from "../../src/schema/delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { type PushConfigInput, pushConfigInputSchema } from "../../src/schema/push-config.ts";
import { as, client, startBroker } from "../support/broker.ts";
import { keysIn } from "../support/dump.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { type Received, startReceiver } from "../support/receiver.ts";
import { fieldOf } from "../support/record.ts";
import { rescueStalled, stockQueue } from "../support/stock-queue.ts";
import { until } from "../support/until.ts";

const ALICE = toPrincipal("caller:alice");
const OPERATOR = toPrincipal("operator");

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker({
    callbackAllow: ["127.0.0.1"],
    callbackRetryMs: () => 20,
    ...options,
  });
  const api = client(broker.url);
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const made = async (more = {}) => String((await alice.delegate("scout", more)).body.id);
  const lease = async () => String((await api.lease("scout")).body.leases[0].lease_id);
  const engine = broker.gateway.broker;
  const push = (id: string, input: PushConfigInput) => createPushConfig(engine, ALICE, id, input);
  return { ...broker, engine, api, alice, made, lease, push };
}

const seqOf = ({ headers }: Received) => Number(String(headers["webhook-id"]).split("_").at(-1));
const seqs = (received: readonly Received[]) => received.map(seqOf);
const stateOf = ({ body }: Received) => {
  const { statusUpdate, artifactUpdate, task = statusUpdate } = JSON.parse(body);
  return artifactUpdate ? "artifact" : task.status.state;
};

test("every event is pushed in order, in A2A's form, with an id that identifies it", async () => {
  const { api, alice, made, lease, push, log } = await setup();
  const { url, received } = await startReceiver();
  const id = await made();
  const authentication = { scheme: "Basic", credentials: "bGV0:bWVpbg" };
  const config = await push(id, { url, token: "a token", authentication });
  expect(config).toEqual({ id: expect.stringMatching(/^psh_/), url, token: "a token", authentication });

  // Each event at once, without waiting for the next one.
  const held = await lease();
  await until(() => received.length === 1);
  for (let done = 1; done <= 20; done += 1) await api.heartbeat(held, { progress: { done } });
  await until(() => received.length === 21);
  await alice.message(id, "and hurry");
  await until(() => received.length === 22);
  const artifact = { artifactId: "a", parts: [{ text: "x" }] };
  await api.call("POST", `/v1/leases/${held}/artifacts`, { artifact });
  await until(() => received.length === 23);
  const { interrupt_id } = (await api.interrupt(held, { text: "?" })).body;
  await alice.answer(id, interrupt_id, { text: "!" });
  await api.reply(await lease());

  const { events } = (await api.events(id)).body;
  await until(() => received.length === events.length - 1);
  expect(seqs(received)).toEqual(events.slice(1).map(({ seq }: { seq: number }) => seq));
  const states = received
    .map(stateOf)
    .filter((state, at, all) => state !== "artifact" && state !== all[at - 1]);
  expect(states).toEqual(
    ["WORKING", "INPUT_REQUIRED", "SUBMITTED", "WORKING", "COMPLETED"].map((name) => `TASK_STATE_${name}`),
  );
  for (const { path, headers } of received) {
    expect(path).toBe("/hook");
    expect(headers["content-type"]).toBe("application/a2a+json");
    expect(headers.authorization).toBe("Basic bGV0:bWVpbg");
    expect(headers["x-a2a-notification-token"]).toBe("a token");
  }
  const seen = log.join("\n") + JSON.stringify([events, (await api.get(id)).body]);
  for (const secret of ["a token", "bGV0:bWVpbg", "/hook"]) expect(seen).not.toContain(secret);
});

test("a config created with the delegation gets everything; one created later gets what follows; after the end, the end", async () => {
  const { engine, api, lease, push } = await setup();
  const [first, second, third] = await Promise.all([startReceiver(), startReceiver(), startReceiver()]);
  const request = delegateRequestSchema.parse({ target: "scout", task: "do it" });
  const with_it = pushConfigMaker(engine, { url: first.url }, "1.0");
  const { record } = await delegate(engine, ALICE, request, { push: with_it });
  const held = await lease();
  await until(() => first.received.length === 2);
  await push(record.id, { url: second.url });
  await api.heartbeat(held, { progress: { done: 1 } });
  await api.reply(held);
  await until(() => second.received.length === 2);
  await push(record.id, { url: third.url, id: "late" });
  await until(() => third.received.length === 1);
  await push(record.id, { url: third.url, id: "late" });
  await until(() => first.received.length === 4);
  expect(seqs(first.received)).toEqual([1, 2, 3, 4]);
  expect(seqs(second.received)).toEqual([3, 4]);
  expect(seqs(third.received)).toEqual([4]);
});

test("a failed call is retried before the next event is sent; redirects are not followed", async () => {
  const { api, made, lease, push } = await setup();
  const slow = await startReceiver((count) => [500, 302, 429, 204][count - 1] ?? 204);
  const quick = await startReceiver();
  const id = await made();
  await push(id, { url: slow.url });
  await push(id, { url: quick.url });
  const held = await lease();
  await api.heartbeat(held, { progress: { done: 1 } });
  await api.reply(held);
  await until(() => slow.received.length === 6);
  expect(seqs(slow.received)).toEqual([2, 2, 2, 2, 3, 4]);
  expect(seqs(quick.received)).toEqual([2, 3, 4]);
  expect(new Set(slow.received.map(({ path }) => path))).toEqual(new Set(["/hook"]));
});

test("410 ends the calls, and so does a day of failures; a config created again continues from then", async () => {
  const { api, made, lease, push, clock, log } = await setup();
  const gone = await startReceiver((count) => (count === 1 ? 410 : 204));
  const down = await startReceiver((count) => (count <= 2 || clock.offset_ms > 0 ? 500 : 204));
  const id = await made({ ttl_seconds: 300_000 });
  await api.agent("scout", { limits: { lease_seconds: 86_400 } });
  await push(id, { url: gone.url, id: "gone" });
  await push(id, { url: down.url });
  const held = await lease();
  await until(() => log.some((line) => line.includes("push given up")));
  await until(() => seqs(down.received).filter((seq) => seq === 2).length === 3);
  // A success resets the time of failure.
  clock.offset_ms = 3_600_000;
  await api.heartbeat(held, { progress: { done: 1 } });
  await until(() => down.received.length > 4);
  expect(log.filter((line) => line.includes("push given up"))).toHaveLength(1);
  clock.offset_ms += 86_400_000 - 60_000;
  const before = down.received.length;
  await until(() => down.received.length > before + 1);
  clock.offset_ms += 120_000;
  await until(() => log.filter((line) => line.includes("push given up")).length === 2);
  const calls = down.received.length;
  await push(id, { url: gone.url, id: "gone" });
  await api.cancel(id);
  await until(() => gone.received.length === 2);
  expect(seqs(gone.received)).toEqual([2, 4]);
  expect(down.received).toHaveLength(calls);
});

test("a deleted config gets nothing more, and can be deleted again", async () => {
  const { engine, api, made, lease, push, db } = await setup();
  const down = await startReceiver(() => 500);
  const up = await startReceiver();
  const id = await made();
  await push(id, { url: down.url, id: "a" });
  await push(id, { url: up.url, id: "b" });
  const held = await lease();
  await until(() => down.received.length > 1);
  await deletePushConfig(engine, ALICE, id, "a");
  await deletePushConfig(engine, ALICE, id, "a");
  const left = await listPushConfigs(engine, ALICE, id);
  expect(left.pushes.map((config) => config.id)).toEqual(["b"]);
  // Its job is deleted, too.
  const { queue } = await stockQueue(db);
  await until(async () => (await queue.getJobCountByTypes("wait", "delayed", "active")) === 0);
  const calls = down.received.length;
  await api.reply(held);
  await until(() => up.received.length === 2);
  expect(down.received).toHaveLength(calls);
});

test("a private address is refused when the config is created, and when it is dialled", async () => {
  const { made, push, lease, log } = await setup({
    callbackAllow: [],
    callbackLookup: (_host, _options, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]),
  });
  const { port, received } = await startReceiver();
  const id = await made();
  for (const url of [
    `http://127.0.0.1:${port}/`,
    "http://[::1]/",
    "http://169.254.169.254/",
    "http://u:p@example.com/",
  ]) {
    await expect(push(id, { url })).rejects.toMatchObject({ code: "invalid_request" });
  }
  await push(id, { url: `http://hooks.example.com:${port}/hook` });
  await lease();
  await until(() => log.some((line) => line.includes("the host has a private address")));
  expect(received).toEqual([]);
});

test.each([
  ["url", { url: "ftp://example.com/" }],
  ["url", { url: "file:///etc/passwd" }],
  ["token", { token: "a\r\nx: y" }],
  ["token", { token: " a" }],
  ["token", { token: "é" }],
  ["authentication.scheme", { authentication: { scheme: "Bear er" } }],
  ["authentication.credentials", { authentication: { scheme: "Bearer", credentials: "a\nb" } }],
  ["authentication.credentials", { authentication: { scheme: "Bearer", credentials: "a\u0000b" } }],
  ["id", { id: "a b" }],
  ["id", { id: "" }],
])("a %s that cannot be sent is refused: %j", (path, wrong) => {
  const { error } = pushConfigInputSchema.safeParse({ url: "https://example.com/", ...wrong });
  expect(error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
});

test("configs belong to the delegator: others get not found, forbidden, or configs without secrets", async () => {
  const { engine, made, push } = await setup();
  const id = await made();
  const authentication = { scheme: "Bearer", credentials: "hidden" };
  const url = "http://127.0.0.1:1/";
  await push(id, { id: "p", url, token: "hidden", authentication });
  const verbs = (principal: ReturnType<typeof toPrincipal>) => [
    createPushConfig(engine, principal, id, { id: "p", url }),
    listPushConfigs(engine, principal, id),
    deletePushConfig(engine, principal, id, "p"),
  ];
  for (const [who, code] of [
    ["caller:bob", "delegation_not_found"],
    ["agent:other", "delegation_not_found"],
    ["agent:scout", "forbidden"],
    ["viewer:vic", "forbidden"],
    ["approver:ann", "forbidden"],
  ] as const) {
    for (const call of verbs(toPrincipal(who))) await expect(call).rejects.toMatchObject({ code });
  }
  const shownTo = async (principal: typeof OPERATOR) => (await listPushConfigs(engine, principal, id)).pushes;
  expect(await shownTo(OPERATOR)).toEqual([{ id: "p", url, authentication: { scheme: "Bearer" } }]);
  expect(await shownTo(ALICE)).toEqual([{ id: "p", url, token: "hidden", authentication }]);
  const none = "dlg_0_00000000000000000000000000";
  await expect(listPushConfigs(engine, ALICE, none)).rejects.toMatchObject({ code: "delegation_not_found" });
});

test("the number of configs of a delegation is bounded; they are listed by pages; the same id replaces a config", async () => {
  const { engine, made, push } = await setup();
  const id = await made();
  const most = LIMITS.pushes.value;
  for (let n = 0; n < most; n += 1) await push(id, { id: `p${n}`, url: `http://127.0.0.1:1/${n}` });
  await expect(push(id, { url: "http://127.0.0.1:1/" })).rejects.toMatchObject({
    code: "limit_reached",
    context: { details: { limit: "pushes", maximum: most } },
  });
  await push(id, { id: "p0", url: "http://127.0.0.1:1/other" });
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listPushConfigs(engine, ALICE, id, { limit: 3, cursor });
    expect(page.pushes.length).toBeLessThanOrEqual(3);
    seen.push(...page.pushes.map(({ url }) => url));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toHaveLength(most);
  expect(seen[0]).toBe("http://127.0.0.1:1/other");
});

test("configs are deleted with their delegation", async () => {
  const { gateway, api, made, lease, push, clock, redis } = await setup();
  const { url, received } = await startReceiver();
  const id = await made();
  await push(id, { url });
  await api.reply(await lease());
  await until(() => received.length === 2);
  expect(await keysIn(redis, `*${id}:push*`)).toHaveLength(2);
  clock.offset_ms = 3_600_000 + 60_000;
  await gateway.sweep.tick();
  await until(async () => {
    await gateway.sweep.tick();
    return (await keysIn(redis, `*${id}*`)).length === 0;
  });
});

test("the sweep queues calls that a gateway died before queueing: callbacks and pushes, once each", async () => {
  const { gateway, api, made, lease, push, clock, redis } = await setup();
  const [callback, pushed] = await Promise.all([startReceiver(), startReceiver()]);
  const id = await made({ callback: { url: callback.url } });
  await push(id, { url: pushed.url });
  const held = await lease();
  await until(() => pushed.received.length === 1);
  const died = vi.spyOn(gateway.broker.outbound, "add").mockRejectedValue(new Error("died"));
  await api.reply(held);
  await until(() => died.mock.calls.length > 0);
  died.mockRestore();
  expect(await fieldOf(redis, `{errand:0}:d:${id}`, "notify_seq")).toBe("3");
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await until(() => callback.received.length === 1 && pushed.received.length === 2);
  await until(async () => (await fieldOf(redis, `{errand:0}:d:${id}`, "notified_seq")) === "3");
  const added = vi.spyOn(gateway.broker.outbound, "add");
  clock.offset_ms = 20_000;
  await gateway.sweep.tick();
  expect(added).not.toHaveBeenCalled();
  expect(seqs(pushed.received)).toEqual([2, 3]);
});

test("a config created on a finished delegation leaves its pending callback to the sweep", async () => {
  const { gateway, api, made, lease, push, clock } = await setup();
  const [callback, pushed] = await Promise.all([startReceiver(), startReceiver()]);
  const id = await made({ callback: { url: callback.url } });
  const died = vi.spyOn(gateway.broker.outbound, "add").mockRejectedValue(new Error("died"));
  await api.reply(await lease());
  await until(() => died.mock.calls.length > 0);
  died.mockRestore();
  await push(id, { url: pushed.url });
  await until(() => pushed.received.length === 1);
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await until(() => callback.received.length === 1);
});

test("killed before any command between the event and its call: the event is still pushed, and in order", async () => {
  const { gateway, another, api, alice, db, clock, push } = await setup({ sweepEveryMs: 0 });
  // Nothing takes the calls that the dying gateway queued until it is dead.
  await gateway.broker.outbound.stop(0);
  let survived = false;
  for (let n = 1; !survived; n += 1) {
    expect(n).toBeLessThan(40);
    clock.offset_ms = 0;
    const { url, received } = await startReceiver();
    const id = String((await alice.delegate("scout")).body.id);
    await push(id, { url });
    const victim = await startGatewayProcess(db, { callbackAllow: ["127.0.0.1"] });
    const doomed = client(victim.url);
    const held = String((await doomed.lease("scout")).body.leases[0].lease_id);
    await until(() => received.length === 1);
    await victim.arm(n);
    await doomed.reply(held).catch(() => null);
    // It may die a moment after its answer.
    await until(() => !victim.isAlive() || received.length === 2, { timeoutMs: 20_000 }).catch(() => null);
    survived = victim.isAlive();
    await victim.kill();
    if ((await api.get(id)).body.state === "working") {
      await api.cancel(id);
    }
    const { seq } = (await api.events(id)).body.events.at(-1);
    clock.offset_ms = 10_000;
    await gateway.sweep.tick();
    await rescueStalled(db);
    const heir = await another();
    await until(() => received.some((one) => seqOf(one) === seq), {
      what: `the end, after a death before command ${n}`,
    });
    await heir.gateway.close();
    const sent = seqs(received);
    expect(sent).toEqual([...sent].sort((a, b) => a - b));
    expect([...new Set(sent)]).toEqual(Array.from({ length: seq - 1 }, (_, at) => at + 2));
  }
}, 600_000);

test("a job whose config was replaced sends nothing", async () => {
  const { engine, api, made, lease, push, db } = await setup();
  const { url, received } = await startReceiver(() => 500);
  const id = await made();
  await push(id, { url, id: "p" });
  const held = await lease();
  await until(() => received.length > 0);
  await engine.outbound.add({ kind: "push", delegation_id: id, config: "p", job: 99 });
  const { queue } = await stockQueue(db);
  await until(async () => (await queue.getJobState(`${id}.push.99`)) === "unknown");
  expect(await engine.redis.hget(`{errand:0}:d:${id}:pushed`, "job:p")).toBe("1");
  await api.reply(held);
  await until(() => received.length > 3);
  expect(new Set(seqs(received))).toEqual(new Set([2]));
});

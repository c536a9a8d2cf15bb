import { Webhook } from "standardwebhooks";
import { expect, test, vi } from "vitest";
import { as, client, startBroker } from "../support/broker.ts";
import { onOneRedis } from "../support/on-cluster.ts";
import { startReceiver } from "../support/receiver.ts";
import { fieldOf } from "../support/record.ts";
import { rescueStalled, takeAndDie } from "../support/stock-queue.ts";
import { until } from "../support/until.ts";

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
const NEXT = `whsec_${Buffer.alloc(32, 2).toString("base64")}`;

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker({
    callbackAllow: ["127.0.0.1"],
    callbackRetryMs: () => 20,
    ...options,
  });
  const api = client(broker.url);
  await api.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const leased = async (callback: unknown) => {
    const made = await alice.delegate("scout", { callback });
    const [lease] = (await api.lease("scout")).body.leases;
    return { made: made.body, id: String(made.body.id), lease: String(lease.lease_id) };
  };
  return { ...broker, api, alice, leased };
}

test("the question and the end are called back: the events themselves, signed with every secret", async () => {
  const { api, alice, leased, log } = await setup();
  const { url, received } = await startReceiver();
  const { made, id, lease } = await leased({ url, secret: [SECRET, NEXT], token: "let-me-in" });
  for (const secret of [SECRET, NEXT, "let-me-in", "callback"])
    expect(JSON.stringify(made)).not.toContain(secret);

  await api.heartbeat(lease, { progress: { done: 1 } });
  const { interrupt_id } = (await api.interrupt(lease, { text: "?" })).body;
  await until(() => received.length === 1);
  await alice.answer(id, interrupt_id, { text: "!" });
  const [again] = (await api.lease("scout")).body.leases;
  await api.reply(again.lease_id);
  await until(() => received.length === 2);

  const { events } = (await api.events(id)).body;
  for (const [at, { headers, body }] of received.entries()) {
    expect(headers.authorization).toBe("Bearer let-me-in");
    expect(headers["content-type"]).toBe("application/json");
    const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]));
    for (const secret of [SECRET, NEXT]) {
      const event = new Webhook(secret).verify(body, signed);
      expect(event).toEqual(events[at === 0 ? 3 : events.length - 1]);
    }
    expect(() => new Webhook(SECRET).verify(`${body} `, signed)).toThrow();
    expect(headers["webhook-id"]).toBe(`evt_${id}_${JSON.parse(body).seq}`);
  }
  expect(JSON.parse(received[0]?.body ?? "")).toMatchObject({ status: "interrupted" });
  expect(JSON.parse(received[1]?.body ?? "")).toMatchObject({ type: "DELEGATION_COMPLETE" });
  for (const secret of [SECRET, NEXT, "let-me-in", "/hook"]) expect(log.join("\n")).not.toContain(secret);
});

test("a failed call is retried with the same id until it succeeds", async () => {
  const { api, leased } = await setup();
  const { url, received } = await startReceiver((count) => [500, 302, 429, 204][count - 1] ?? 204);
  const { id, lease } = await leased({ url, secret: SECRET });
  await api.reply(lease);
  await until(() => received.length === 4);
  expect(new Set(received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([`evt_${id}_3`]));
});

test("410 ends the retries; so does a day of failures", async () => {
  const { api, leased, clock, log } = await setup();
  const gone = await startReceiver(() => 410);
  const one = await leased({ url: gone.url });
  await api.reply(one.lease);
  await until(() => log.some((line) => line.includes("callback given up")));

  const down = await startReceiver(() => 500);
  const two = await leased({ url: down.url });
  await api.reply(two.lease);
  await until(() => down.received.length > 1);
  clock.offset_ms = 86_400_000 + 60_000;
  await until(() => log.filter((line) => line.includes("callback given up")).length === 2);
  const calls = down.received.length;
  await api.reply((await leased({ url: down.url })).lease);
  // A call for another delegation succeeds, while the first one is not called again.
  await until(() => down.received.length > calls);
  expect(down.received.slice(calls).some(({ body }) => body.includes(two.id))).toBe(false);
  expect(gone.received).toHaveLength(1);
});

test("a call whose event no longer exists is given up, and the log says so", async () => {
  const { api, leased, log, gateway } = await setup();
  const { redis, shards } = gateway.broker;
  const { url, received } = await startReceiver(() => 500);
  const { id, lease } = await leased({ url });
  await api.reply(lease);
  await until(() => received.length > 0);
  await redis.del(shards.ofId(id)?.delegationEvents(id) ?? "");
  await until(() => log.some((line) => line.includes("its event no longer exists")));
  await until(async () => (await fieldOf(redis, `{errand:0}:d:${id}`, "calls_at")) === undefined);
});

test.each([
  "http://127.0.0.1:1/",
  "http://[::1]:1/",
  "http://10.1.2.3/",
  "http://169.254.169.254/latest/meta-data",
  "http://2130706433/",
  "http://0x7f.1/",
  "http://0177.0.0.1/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::7f00:1]/",
  "http://[64:ff9b::7f00:1]/",
  "http://[2002:7f00:1::]/",
  "http://168.63.129.16/",
  "http://[fd00::1]/",
  "http://localhost:1/",
  "http://a.localhost/",
  "http://0.0.0.0/",
  "http://user:pass@example.com/",
  "ftp://example.com/",
  "file:///etc/passwd",
])("%s is not called back", async (url) => {
  const { alice, api } = await setup({ callbackAllow: [] });
  const refused = await alice.delegate("scout", { callback: { url } });
  expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
  expect(JSON.stringify(refused.body.details.issues)).toContain("callback");
  expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);
});

test("a name that resolves to a private address is not dialled, unless its name or the address is allowed", async () => {
  const answers = async (allow: string[]) => {
    const resolved: string[] = [];
    const broker = await setup({
      callbackAllow: allow,
      callbackLookup: (host, _options, callback) => {
        resolved.push(host);
        callback(null, [{ address: "127.0.0.1", family: 4 }]);
      },
    });
    const { port, received } = await startReceiver();
    const { lease } = await broker.leased({ url: `http://hooks.example.com:${port}/hook` });
    await broker.api.reply(lease);
    await until(() => received.length > 0 || broker.log.some((line) => line.includes("private address")));
    expect(resolved).toContain("hooks.example.com");
    // On a Cluster, the next broker has the same calls.
    await broker.gateway.broker.outbound.stop(0);
    return received.length > 0;
  };
  expect(await answers([])).toBe(false);
  expect(await answers(["hooks.example.com"])).toBe(true);
  expect(await answers(["127.0.0.0/8"])).toBe(true);
});

onOneRedis("it takes the calls of one shard")(
  "another gateway takes over a call whose gateway died",
  async () => {
    const { api, leased, gateway, another, db } = await setup();
    const { url, received } = await startReceiver();
    // Taken by a gateway that has died.
    await gateway.broker.outbound.stop(0);
    const { id, lease } = await leased({ url });
    await api.reply(lease);
    await until(async () => (await takeAndDie(db)) === `${id}.callback.3`);
    await another();
    await rescueStalled(db);
    await until(() => received.length === 1);
  },
);

test("the sweep queues a call that its gateway died before queueing, once", async () => {
  const { api, leased, gateway, clock, redis } = await setup();
  const { url, received } = await startReceiver();
  const { id, lease } = await leased({ url });
  const died = vi.spyOn(gateway.broker.outbound, "add").mockRejectedValueOnce(new Error("died"));
  await api.reply(lease);
  died.mockRestore();
  expect(received).toHaveLength(0);
  clock.offset_ms = 6_000;
  await gateway.sweep.tick();
  await until(() => received.length === 1);
  // Its answer arrived, too.
  await until(async () => (await fieldOf(redis, `{errand:0}:d:${id}`, "notified_seq")) === "3");
  const added = vi.spyOn(gateway.broker.outbound, "add");
  clock.offset_ms = 20_000;
  await gateway.sweep.tick();
  expect(added).not.toHaveBeenCalled();
});

test("a successful call changes no instant of the finished delegation, and leaves no delivery pending", async () => {
  const { api, leased, gateway, clock, redis } = await setup();
  const { url, received } = await startReceiver();
  const { id, lease } = await leased({ url });
  const { finished_at } = (await api.reply(lease)).body.delegation;
  await until(() => received.length === 1);
  const key = `{errand:0}:d:${id}`;
  await until(async () => (await fieldOf(redis, key, "notified_seq")) === "3");
  expect(await fieldOf(redis, key, "notify_seq")).toBe("3");
  clock.offset_ms = 60_000;
  await gateway.sweep.tick();
  expect((await api.get(id)).body.finished_at).toBe(finished_at);
  expect(received).toHaveLength(1);
});

test("a delegator with many silent hosts uses at most half of the concurrent calls", async () => {
  const { url, api, leased } = await setup();
  let release = () => {};
  const answered = new Promise<number>((resolve) => {
    release = () => resolve(204);
  });
  const slow = await Promise.all(Array.from({ length: 5 }, () => startReceiver(() => answered)));
  for (let n = 0; n < 30; n += 1) {
    await api.reply((await leased({ url: slow[n % 5]?.url })).lease);
  }
  const calls = () => slow.reduce((sum, { received }) => sum + received.length, 0);
  await until(() => calls() >= 10);
  const quick = await startReceiver();
  const bob = await as(url, "caller:bob");
  await bob.delegate("scout", { callback: { url: quick.url } });
  await api.reply((await api.lease("scout")).body.leases[0].lease_id);
  await until(() => quick.received.length === 1);
  expect(calls()).toBe(10);
  release();
  await until(() => calls() === 30);
}, 120_000);

test("a silent host uses only a few of the concurrent calls, and calls to other hosts continue", async () => {
  const { api, leased } = await setup();
  let release = () => {};
  const answered = new Promise<number>((resolve) => {
    release = () => resolve(204);
  });
  const slow = await startReceiver(() => answered);
  const quick = await startReceiver();
  for (let n = 0; n < 30; n += 1) {
    await api.reply((await leased({ url: slow.url })).lease);
  }
  await until(() => slow.received.length >= 5);
  await api.reply((await leased({ url: quick.url })).lease);
  await until(() => quick.received.length === 1);
  expect(slow.received).toHaveLength(5);
  release();
  await until(() => new Set(slow.received.map(({ headers }) => headers["webhook-id"])).size === 30, {
    timeoutMs: 90_000,
  });
}, 150_000);

test("a gateway whose clock is two days ahead does not give up a failed call", async () => {
  const triedFor: number[] = [];
  const { api, leased } = await setup({ callbackRetryMs: (ms) => triedFor.push(ms) * 10 });
  const { url, received } = await startReceiver((count) => (count === 1 ? 503 : 204));
  const { lease } = await leased({ url });
  const now = Date.now.bind(Date);
  const ahead = vi.spyOn(Date, "now").mockImplementation(() => now() + 2 * 86_400_000);
  try {
    await api.reply(lease);
    await until(() => received.length === 2);
  } finally {
    ahead.mockRestore();
  }
  expect(triedFor).toHaveLength(1);
  expect(triedFor[0]).toBeLessThan(3_600_000);
});

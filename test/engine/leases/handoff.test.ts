/**
 * New work that a parked poll gets from the same script that accepts it: the answers to the delegator and the poll,
 * and what happens when either goes away. interleavings.test.ts tests the orders in which this meets other wakes.
 */
import { expect, inject, test, vi } from "vitest";
import type { Gateway } from "../../../src/gateway/gateway.ts";
import type { Result } from "../../../src/lifecycle/outcome.ts";
import { type Answer, client, request, startBroker, type TestOptions } from "../../support/broker.ts";
import { deliveredBy } from "../../support/delivered.ts";
import { ownEvents } from "../../support/own-events.ts";
import { startOwnRedis } from "../../support/own-redis.ts";
import { openRedisLink } from "../../support/redis-link.ts";
import { until } from "../../support/until.ts";

async function setup(options: TestOptions = {}, spec: unknown = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout", spec);
  return { ...broker, api, park: (more?: Parking) => park(broker.gateway, broker.url, more) };
}

interface Parking {
  readonly worker_id?: string;
  readonly signal?: AbortSignal;
}

/** Parks a poll after a fetch has found the queue empty; `answer` is the poll's answer. */
async function park({ broker }: Gateway, url: string, { worker_id = "w", signal }: Parking = {}) {
  const { polls } = broker.handoff;
  const before = polls.count("scout");
  vi.spyOn(broker.writer, "take");
  const body = { wait_seconds: 15, worker_id };
  const answer = request(url, "POST", "/v1/agents/scout/leases", { body, ...(signal && { signal }) });
  // The test that awaits it sees its failure.
  answer.catch(() => {});
  await until(() => polls.count("scout") > before);
  await idle(broker);
  return { answer };
}

/** Waits until no poll of the gateway fetches: one that fetches is not matched. Needs the spy that `park` sets. */
async function idle({ writer }: Gateway["broker"]): Promise<void> {
  const fetches = vi.mocked(writer.take);
  await until(() => fetches.mock.settledResults.every(({ type }) => type !== "incomplete"));
  // The poll is idle again in the next turn.
  await new Promise(setImmediate);
}

const leasesOf = ({ status, body }: Answer) => (status === 200 ? body.leases : [{ status, body }]);

/** The statuses of a delegation's events. */
async function statuses(api: ReturnType<typeof client>, id: string) {
  const { events } = (await api.events(id)).body;
  return events.map(({ status, type }: { status?: string; type: string }) => status ?? type);
}

/** Runs a function just before the next submit, or between the submit and its answer. */
function atSubmit(
  { broker: { writer } }: Gateway,
  before: () => Promise<unknown>,
  behind: (made: Result) => Promise<unknown> = async () => {},
): void {
  const move = writer.move.bind(writer);
  const spy = vi.spyOn(writer, "move").mockImplementation(async (command, taker) => {
    if (command.move !== "submit") return move(command, taker);
    spy.mockRestore();
    expect(taker).toBeDefined();
    await before();
    const made = await move(command, taker);
    await behind(made);
    return made;
  });
}

test("a parked poll gets new work by one script; no other poll fetches, and the delegator is told that it is working", async () => {
  // A round of the sweep would be a script, too.
  const own = await startOwnRedis();
  const { api, gateway, park } = await setup({ redis: own.target, sweepEveryMs: 600_000 });
  const polls = [await park({ worker_id: "w1" }), await park({ worker_id: "w2" })];
  // Loads the scripts.
  await api.delegate("scout");
  expect(leasesOf(await Promise.race(polls.map(({ answer }) => answer)))).toHaveLength(1);
  polls.push(await park({ worker_id: "w3" }));
  await own.redis.config("RESETSTAT");
  const scripts = vi.spyOn(gateway.broker.redis, "evalsha");
  const delivered = deliveredBy(gateway.broker.feed);
  const { status, body } = await api.delegate("scout");
  const { answer } = polls[1] ?? expect.unreachable();
  const [lease] = leasesOf(await answer);
  const [newest] = await own.redis.xrevrange("{errand:0}:events", "+", "-", "COUNT", 1);
  await until(() => delivered.has(newest?.[0] ?? ""));
  const commands = await own.redis.info("commandstats");
  // Other scripts keep presence.
  expect(scripts.mock.calls.filter(([, , key]) => String(key).includes(":d:"))).toHaveLength(1);
  // The queue gets no ticket.
  expect(commands).not.toMatch(/cmdstat_zpopmin/);
  expect([status, body.state, body.version, body.lease.worker_id]).toEqual([202, "working", 2, "w2"]);
  expect(lease).toMatchObject({ attempt: 1, delegation: { id: body.id, version: 2 } });
  const { presence: _, ...told } = body;
  expect((await api.get(body.id)).body).toEqual(told);
  expect(gateway.broker.handoff.polls.count("scout")).toBe(1);
});

test("each gateway gives new work to a poll of its own; without polls it leaves the work to other gateways", async () => {
  const { url, api, gateway, park: here, another } = await setup();
  const other = await another();
  const [first, second] = [
    await here({ worker_id: "here" }),
    await park(other.gateway, other.url, { worker_id: "there" }),
  ];
  const fetches = vi.mocked(gateway.broker.writer.take).mock.calls;
  const fetchedWhenParked = fetches.length;
  const delivered = deliveredBy(gateway.broker.feed);
  const { body: there } = await client(other.url).delegate("scout");
  expect(there.lease.worker_id).toBe("there");
  expect(leasesOf(await second.answer)).toHaveLength(1);
  // The event says that a poll has the ticket, so the poll here does not fetch.
  const { cursor } = (await api.events(there.id)).body;
  await until(() => delivered.has(cursor));
  await new Promise(setImmediate);
  expect(fetches).toHaveLength(fetchedWhenParked);
  expect((await api.delegate("scout")).body.lease.worker_id).toBe("here");
  expect(leasesOf(await first.answer)).toHaveLength(1);
  const third = await park(gateway, url, { worker_id: "here" });
  const { body } = await client(other.url).delegate("scout");
  expect(body).toMatchObject({ state: "submitted", lease: null });
  expect(leasesOf(await third.answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("two requests with one key make one delegation for one of the polls; the other poll keeps waiting", async () => {
  const { api, park } = await setup();
  const polls = [await park(), await park()];
  const key = { "idempotency-key": "once" };
  const asked = await Promise.all([api.delegate("scout", {}, key), api.delegate("scout", {}, key)]);
  expect(asked.map(({ status }) => status).sort()).toEqual([200, 202]);
  expect(new Set(asked.map(({ body }) => body.id)).size).toBe(1);
  const next = (await api.delegate("scout")).body.id;
  const got = (await Promise.all(polls.map(({ answer }) => answer))).flatMap(leasesOf);
  expect(got.map(({ delegation }) => delegation.id).sort()).toEqual([asked[0]?.body.id, next].sort());
});

test("a refused submit has no effect on the poll: it keeps waiting, and gets what is accepted", async () => {
  const { api, park } = await setup({}, { limits: { max_waiting: 1 } });
  const later = (await api.delegate("scout", { delay_seconds: 60 })).body.id;
  const { answer } = await park();
  const refused = await api.delegate("scout");
  expect([refused.status, refused.body.code]).toEqual([429, "queue_full"]);
  await api.cancel(later);
  const { id } = (await api.delegate("scout")).body;
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id } }]);
});

test("a parked poll of a paused agent gets the work after the resume", async () => {
  const { api, park } = await setup();
  const { answer } = await park();
  await api.call("POST", "/v1/agents/scout/pause");
  const { body } = await api.delegate("scout");
  expect(body.state).toBe("submitted");
  await api.call("POST", "/v1/agents/scout/resume");
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("delayed work is reported as waiting, and a parked poll gets it when it is due", async () => {
  const { api, park } = await setup();
  const { answer } = await park();
  const { body } = await api.delegate("scout", { delay_seconds: 0.3 });
  expect(body.state).toBe("submitted");
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("work that was not taken is fetched although the feed was faster than the answer", async () => {
  const { api, gateway, park } = await setup();
  const { answer } = await park();
  const delivered = deliveredBy(gateway.broker.feed);
  atSubmit(
    gateway,
    async () => {},
    ({ record }) => until(() => delivered.has(record?.get("event_id") ?? "")),
  );
  const { body } = await api.delegate("scout", { delay_seconds: 0.3 });
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("if a match gets older work, a poll at another gateway gets the new work, also when the gateway of the match dies", async () => {
  const { api, gateway, redis, park: here, another } = await setup();
  const other = await another();
  const [first, second] = [await here(), await park(other.gateway, other.url)];
  // Paused and resumed without a wake, so that the older work waits in the queue.
  await redis.hset("{errand:0}:agent:scout", "paused", 1);
  const { body: older } = await api.delegate("scout");
  expect(older.state).toBe("submitted");
  await redis.hdel("{errand:0}:agent:scout", "paused");
  // As if the gateway died before it receives the script's answer.
  let die = (_: unknown) => {};
  const death = new Promise((resolve) => {
    die = resolve;
  });
  atSubmit(
    gateway,
    async () => {},
    () => death,
  );
  const submit = api.delegate("scout");
  const [{ delegation, attempt }] = leasesOf(await second.answer);
  die(null);
  const newer = (await submit).body;
  expect([delegation.id, attempt]).toEqual([newer.id, 1]);
  expect(leasesOf(await first.answer)).toMatchObject([{ attempt: 1, delegation: { id: older.id } }]);
});

test("work whose ticket the queue refused is not reported as taken, and is leased once the queue is repaired", async () => {
  const { api, park, redis } = await setup();
  const { answer } = await park();
  const prioritized = "{errand:0}:q:scout:prioritized";
  await redis.set(prioritized, "not what BullMQ keeps there");
  const { status, body } = await api.delegate("scout");
  expect([status, body.state]).toEqual([202, "submitted"]);
  await redis.del(prioritized);
  // A fetch from such a queue may have failed the poll.
  const first = await answer;
  const leases = leasesOf(first.status === 200 ? first : await api.lease("scout"));
  expect(leases).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("a lease that ends at the limit of work wakes polls at other gateways, though its own gateway sends nothing more", async () => {
  const { api, gateway, another } = await setup({}, { limits: { max_working: 1 } });
  await api.delegate("scout");
  const [held] = leasesOf(await api.lease("scout"));
  const { id } = (await api.delegate("scout")).body;
  const other = await another();
  const { answer } = await park(other.gateway, other.url);
  const send = vi.spyOn(gateway.broker.bus, "publish").mockReturnValue(new Promise(() => {}));
  expect((await api.reply(held.lease_id)).status).toBe(200);
  expect(leasesOf(await answer)).toMatchObject([{ delegation: { id } }]);
  expect(send.mock.calls.filter(([, message]) => message.includes('"ticket"'))).toEqual([]);
});

test("new work at the limit of work wakes polls at other gateways, too: they wait for the end of a lease", async () => {
  const { api, gateway, park: here, another } = await setup({}, { limits: { max_working: 1 } });
  const other = await another();
  const { answer } = await park(other.gateway, other.url);
  const taker = await here();
  // A poll at the gateway that got the work takes it, so the other gateway does not learn that the limit is reached.
  await api.delegate("scout");
  const [held] = leasesOf(await taker.answer);
  const leaver = new AbortController();
  await here({ signal: leaver.signal });
  const { id } = (await api.delegate("scout")).body;
  const takes = vi.mocked(other.gateway.broker.writer.take);
  await until(() => takes.mock.settledResults.some(({ value }) => value?.outcome.kind === "blocked"));
  // Now only the other gateway knows that polls wait.
  leaver.abort();
  await until(() => gateway.broker.handoff.polls.count("scout") === 0);
  vi.spyOn(gateway.broker.bus, "publish").mockReturnValue(new Promise(() => {}));
  await api.reply(held.lease_id);
  expect(leasesOf(await answer)).toMatchObject([{ delegation: { id } }]);
});

test("work that a match failed to take is added again, and is leased", async () => {
  const { api, gateway, redis, park } = await setup({}, { limits: { max_working: 5 } });
  const { answer } = await park();
  // Read by the take, and not by the submit.
  const working = "{errand:0}:live:scout:working";
  await redis.set(working, "no set");
  const made = new Promise<Result>((resolve) => {
    atSubmit(
      gateway,
      async () => {},
      async (result) => {
        await redis.del(working);
        resolve(result);
      },
    );
  });
  const { body } = await api.delegate("scout");
  expect((await made).outcome).toMatchObject({ kind: "ok", ticketed: false });
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("work for a poll whose client left meanwhile goes to the next, no attempt spent", async () => {
  const { api, gateway, park } = await setup();
  const leaver = new AbortController();
  const parking = vi.spyOn(gateway.broker.handoff.polls, "add");
  const { answer } = await park({ signal: leaver.signal });
  const hasLeft = () => parking.mock.calls[0]?.[1].signal.aborted;
  atSubmit(gateway, () => {
    leaver.abort();
    return until(hasLeft);
  });
  const { status, body } = await api.delegate("scout");
  expect(status).toBe(202);
  await expect(answer).rejects.toThrow();
  expect((await api.lease("scout")).body.leases).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
  expect(await statuses(api, body.id)).toEqual(["queued", "leased", "released", "leased"]);
});

test("work for a poll whose token was revoked meanwhile goes to the next, no attempt spent", async () => {
  const { api, url, gateway } = await setup();
  const { body: token } = await api.call("POST", "/v1/tokens", { principal: "agent:scout" });
  const poll = request(url, "POST", "/v1/agents/scout/leases", {
    token: token.token,
    body: { wait_seconds: 15 },
  });
  await until(() => gateway.broker.handoff.polls.count("scout") === 1);
  await until(() => {
    const match = gateway.broker.handoff.polls.match("scout");
    match?.settle(Promise.resolve(null));
    return match;
  });
  atSubmit(gateway, () => api.call("DELETE", `/v1/tokens/${token.id}`));
  const { body } = await api.delegate("scout");
  expect((await poll).status).toBe(401);
  expect((await api.lease("scout")).body.leases).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("work that is accepted while the gateway stops is accepted, and goes to the next, no attempt spent", async () => {
  const { api, gateway, park, another } = await setup();
  const other = await another();
  const { answer } = await park();
  let closed = Promise.resolve();
  atSubmit(gateway, async () => {
    closed = gateway.close();
  });
  const { status, body } = await api.delegate("scout");
  expect(status).toBe(202);
  expect(leasesOf(await answer)).toEqual([]);
  await closed;
  const next = client(other.url);
  expect((await next.lease("scout")).body.leases).toMatchObject([
    { attempt: 1, delegation: { id: body.id } },
  ]);
});

// hold: the script runs once Redis is back. swallow-answers: it runs at once, and its answer is lost.
test.each(["hold", "swallow-answers"] as const)(
  "work that was taken when the answer was lost goes back to the poll, no attempt spent, and the poll does not fail: %s",
  async (fault) => {
    const proxy = await openRedisLink(inject("redisSocket"));
    const { url, db, another } = await startBroker();
    const behind = await another({ redis: { url: `redis://127.0.0.1:${proxy.port}/${db}` } });
    const direct = client(url);
    await direct.agent("scout");
    const { answer } = await park(behind.gateway, behind.url);
    atSubmit(behind.gateway, () => proxy.fault(fault));
    expect((await client(behind.url).delegate("scout")).status).toBe(503);
    await proxy.heal();
    const [lease] = leasesOf(await answer);
    expect(lease).toMatchObject({ attempt: 1 });
    expect(await statuses(direct, lease.delegation.id)).toEqual(["queued", "leased", "released", "leased"]);
  },
);

test("a submit for which Redis has no memory has no effect on the poll, and leaves nothing in doubt", async () => {
  const own = await startOwnRedis();
  const { api, gateway, park } = await setup({ redis: own.target });
  const { answer } = await park();
  gateway.broker.memory.stop();
  await own.redis.config("SET", "maxmemory", "1");
  const refused = await api.delegate("scout");
  await own.redis.config("SET", "maxmemory", "0");
  expect([refused.status, refused.body.code]).toEqual([503, "overloaded"]);
  expect(gateway.broker.handoff.inDoubt.grants.size).toBe(0);
  const { body } = await api.delegate("scout");
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("a poll matched with a submit that Redis did not receive does not fail, and gets the next work", async () => {
  const { api, gateway, park } = await setup();
  const { answer } = await park();
  const { writer } = gateway.broker;
  vi.spyOn(writer, "move").mockRejectedValueOnce(new Error("Command timed out"));
  expect((await api.delegate("scout")).status).toBe(503);
  const { body } = await api.delegate("scout");
  expect(leasesOf(await answer)).toMatchObject([{ attempt: 1, delegation: { id: body.id } }]);
});

test("a lease whose grant failed after it was written is returned, no attempt spent", async () => {
  const { api, redis, park } = await setup();
  await api.call("POST", "/v1/agents/scout/pause");
  const { body: older } = await api.delegate("scout");
  await api.call("POST", `/v1/delegations/${older.id}/messages`, { text: "and this" });
  // Taking it writes the lease, and then cannot read the history.
  const history = `{errand:0}:d:${older.id}:history`;
  await redis.rename(history, "aside");
  await redis.set(history, "no list");
  const { answer } = await park();
  // No wake, so the poll does not fetch by itself.
  await redis.hdel("{errand:0}:agent:scout", "paused");
  const { status, body: newer } = await api.delegate("scout");
  expect([status, newer.state]).toEqual([202, "submitted"]);
  await until(async () => JSON.stringify(await ownEvents(redis, older.id)).includes("released"));
  await redis.rename("aside", history);
  const got = [...leasesOf(await answer), ...leasesOf(await api.lease("scout"))];
  expect(got.map(({ attempt, delegation }) => [attempt, delegation?.id])).toContainEqual([1, older.id]);
});

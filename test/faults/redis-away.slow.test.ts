/** Redis goes away in every way that a network allows, and returns. All on one machine. */
import { expect, inject, test, vi } from "vitest";
import type { RedisTarget } from "../../src/redis/connect.ts";
import { type Answer, as, client, request, startBroker } from "../support/broker.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { checkHistory, eventsOf } from "../support/history.ts";
import { startOwnRedis } from "../support/own-redis.ts";
import { type Fault, openRedisLink } from "../support/redis-link.ts";
import { retryUntilAnswered } from "../support/retry.ts";
import { openStream } from "../support/sse.ts";
import { allowStalls } from "../support/stalls.ts";
import { type Subscriber, subscribe } from "../support/subscriber.ts";
import { until } from "../support/until.ts";

/** How long an answer may take, and how soon after Redis' return everything must work again. */
const ANSWER_MS = 3_000;
const BACK_MS = 3_000;
const WAVE_MS = 700;
const JSON_ONLY = { accept: "application/json" };

interface Call {
  readonly what: string;
  readonly answer: Answer | null;
  readonly tookMs: number;
  /** A request that was in transit when Redis returned may have been answered by it. */
  readonly ended: boolean;
}

function checkCall({ what, answer, tookMs, ended }: Call, limitMs: number): void {
  expect([what, tookMs < limitMs]).toEqual([what, true]);
  expect([what, answer]).not.toEqual([what, null]);
  if (ended || answer === null) return;
  const { status, headers, body } = answer;
  if (what === "/healthz") expect(status).toBe(200);
  else if (what === "/readyz") expect([what, status, body.status]).toEqual([what, 503, "not_ready"]);
  else {
    const after = headers.get("retry-after");
    expect([what, status, body.code, after]).toEqual([what, 503, "redis_unavailable", "1"]);
  }
  if (what === "delegate") expect(body.details.outcome).toBe("unknown");
}

interface Trouble {
  readonly begin: () => Promise<void>;
  readonly end: () => Promise<void>;
}

/** A gateway behind a proxy, and on the same database a gateway that is never in trouble and observes. */
async function startBehindProxy() {
  const proxy = await openRedisLink(inject("redisSocket"));
  const broker = await startBroker();
  return { ...broker, proxy, target: { url: `redis://127.0.0.1:${proxy.port}/${broker.db}` } };
}

/** Calls that would wait if they reached Redis; sent first, so that they are answered before the fault ends. */
function askWaiting(url: string, own: string, lease: string) {
  const api = client(url);
  return {
    "wait for one": () => api.get(own, "?wait_seconds=60"),
    "lease with a wait": () => api.lease("idle", { wait_seconds: 60 }),
    "held heartbeat": () => api.heartbeat(lease, { wait_seconds: 60 }),
  };
}

/** Every call that needs Redis; each is answered in time, and with 503 while Redis is away. */
function ask(url: string, own: string, lease: string, token: string, key: string) {
  const api = client(url);
  const agent = client(url, token);
  const stream = async (): Promise<Answer> => {
    const { status, headers, close } = await openStream(`${url}/v1/events`);
    close();
    return { status, headers, body: { code: "redis_unavailable" } };
  };
  return {
    delegate: () => api.delegate("scout", { task: key }, { "idempotency-key": key }),
    "read one": () => api.get(own),
    "as an agent": () => agent.call("GET", "/v1/agents/scout"),
    "all agents": () => api.call("GET", "/v1/agents"),
    "change an agent": () => api.agent("idle"),
    "lease at once": () => api.lease("idle", { wait_seconds: 0 }),
    heartbeat: () => agent.heartbeat(lease),
    progress: () => agent.heartbeat(lease, { progress: { message: key } }),
    "create a token": () => api.call("POST", "/v1/tokens", { principal: "caller:bob" }),
    "events as JSON": () => api.call("GET", "/v1/events", undefined, JSON_ONLY),
    "events of one": () => api.events(own),
    stream,
    "/readyz": () => request(url, "GET", "/readyz", { token: null }),
    "/healthz": () => request(url, "GET", "/healthz", { token: null }),
  };
}

/** Every answer while Redis is away is right, and soon after its return everything works again. */
async function checkFault(redis: RedisTarget, trouble: Trouble, lastsMs: number): Promise<void> {
  const withStalls = allowStalls();
  const gateway = await startGatewayProcess(0, { redis, sweepEveryMs: 500, logLevel: "silent" });
  const { url } = gateway;
  const api = client(url);
  for (const name of ["scout", "idle", "held", "parked"]) await api.agent(name);
  const { token, lease } = await as(url, "agent:held");
  const own = (await api.delegate("held")).body.id;
  const [held] = (await lease("held")).body.leases;
  const stream = subscribe([url], token);
  await until(() => stream.events.length === 2);
  const parked = retryUntilAnswered(() => api.lease("parked", { wait_seconds: 60 }), 60_000);
  // Its failure, if any, is checked below.
  parked.catch(() => {});
  await until(async () => (await api.call("GET", "/v1/agents/parked")).body.presence.pollers === 1);

  await trouble.begin();
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let ended = false;
  const sent: Call[] = [];
  const send = async (what: string, call: () => Promise<Answer>) => {
    const sentAt = performance.now();
    const answer = await call().catch(() => null);
    sent.push({ what, answer, tookMs: performance.now() - sentAt, ended });
  };
  const waiting = Object.entries(askWaiting(url, own, held.lease_id));
  const asked = waiting.map(([what, call]) => send(what, call));
  const keys: string[] = [];
  while (elapsed() < lastsMs) {
    const key = `key-${keys.length}`;
    keys.push(key);
    const calls = Object.entries(ask(url, own, held.lease_id, token, key));
    asked.push(...calls.map(([what, call]) => send(what, call)));
    const next = Math.min(lastsMs, keys.length * WAVE_MS);
    await until(() => elapsed() >= next, { what: "the next wave" });
  }
  await trouble.end();
  ended = true;
  const endedAt = performance.now();
  await works(url, stream, parked);
  expect(performance.now() - endedAt).toBeLessThan(withStalls(BACK_MS));
  await Promise.all(asked);
  for (const one of sent) checkCall(one, withStalls(ANSWER_MS));

  for (const key of keys) {
    const idempotent = { "idempotency-key": key };
    const { status, body } = await retryUntilAnswered(() => api.delegate("scout", { task: key }, idempotent));
    expect([200, 202]).toContain(status);
    checkHistory(await eventsOf(api, body.id), "live");
  }
  // No key made two delegations, and no other submit was stored in part.
  const { leases } = (await api.lease("scout", { max: 32 })).body;
  const tasks = leases.map((one: { delegation: { task_preview: string } }) => one.delegation.task_preview);
  expect(new Set(tasks).size).toBe(tasks.length);
  // An unhandled rejection would have ended the process.
  expect(gateway.isAlive()).toBe(true);
}

/** Returns once all of these worked again: delegate, lease, reply, parked poll, live stream and readiness. */
async function works(url: string, stream: Subscriber, parked: Promise<Answer>): Promise<void> {
  const ms = 10 * BACK_MS;
  const api = client(url);
  const delegate = (target: string) =>
    retryUntilAnswered(
      () => api.delegate(target, { task: "again" }, { "idempotency-key": `again-${target}` }),
      ms,
    );
  const isReady = async () => (await request(url, "GET", "/readyz", { token: null })).status === 200;
  const loop = async () => {
    await api.agent("loop").catch(() => null);
    await retryUntilAnswered(() => api.agent("loop"), ms);
    const { id } = (await delegate("loop")).body;
    const [lease] = (await retryUntilAnswered(() => api.lease("loop"), ms)).body.leases;
    expect(lease.delegation.id).toBe(id);
    expect((await retryUntilAnswered(() => api.reply(lease.lease_id), ms)).body.outcome).toBe("matched");
    checkHistory(await eventsOf(api, id), "finished");
  };
  const wakes = async () => {
    const { id } = (await delegate("parked")).body;
    expect((await parked).body.leases[0].delegation.id).toBe(id);
  };
  const live = async () => {
    const { id } = (await delegate("held")).body;
    const hasArrived = () => stream.events.some(({ data }) => data.delegation_id === id);
    await until(hasArrived, { timeoutMs: ms, what: "the live stream" });
  };
  const ready = until(isReady, { timeoutMs: ms, what: "readiness" });
  await Promise.all([ready, loop(), wakes(), live()]);
}

async function checkProxyFault(kind: Fault, lastsMs: number): Promise<void> {
  const { target: redis, proxy } = await startBehindProxy();
  await checkFault(redis, { begin: () => proxy.fault(kind), end: proxy.heal }, lastsMs);
}

test("Redis is stopped: 503 within 3 s, and all works again within 3 s of its return", async () => {
  const own = await startOwnRedis();
  const begin = async () => own.signal("SIGSTOP");
  const end = async () => own.signal("SIGCONT");
  await checkFault(own.target, { begin, end }, 3_000);
}, 120_000);

test.each([
  ["refuse", 3_000],
  ["hold", 3_000],
] as const)(
  "Redis' connections %s for %i ms: 503 within 3 s, and all works again within 3 s",
  checkProxyFault,
  120_000,
);

test.each([
  ["swallow", 1_000],
  ["swallow", 3_500],
  ["swallow-answers", 1_000],
] as const)(
  "Redis' connections %s for %i ms: 503 within 3 s, and all works again within 3 s",
  checkProxyFault,
  120_000,
);

test("a poll parked while wakes were lost gets work from another gateway within 3 s", async () => {
  const withStalls = allowStalls();
  const { url, target: redis, proxy } = await startBehindProxy();
  const behind = await startGatewayProcess(0, { redis, logLevel: "silent" });
  const api = client(url);
  await api.agent("scout");
  const parked = client(behind.url).lease("scout", { wait_seconds: 30 });
  await until(async () => (await api.call("GET", "/v1/agents/scout")).body.presence.pollers === 1);
  await proxy.fault("swallow");
  await until(async () => (await request(behind.url, "GET", "/readyz", { token: null })).status === 503);
  await proxy.heal();
  const healedAt = performance.now();
  expect((await api.delegate("scout")).status).toBe(202);
  expect((await parked).body.leases).toHaveLength(1);
  expect(performance.now() - healedAt).toBeLessThan(withStalls(BACK_MS));
}, 120_000);

/** A gateway behind the proxy, in this process, so that Redis can go away in the middle of a request. */
async function startWithin() {
  const { proxy, target, ...broker } = await startBehindProxy();
  const { gateway, url } = await broker.another({ redis: target, sweepEveryMs: 500 });
  const { writer, tickets } = gateway.broker;
  const hold = () => proxy.fault("hold");
  await client(url).agent("scout");
  const { heal } = proxy;
  return { ...broker, direct: client(broker.url), api: client(url), writer, tickets, proxy, hold, heal };
}

/** Redis goes away just before this move is sent. */
function holdBefore(move: string, { writer, hold }: Awaited<ReturnType<typeof startWithin>>): void {
  const original = writer.move.bind(writer);
  const spy = vi.spyOn(writer, "move").mockImplementation(async (command) => {
    if (command.move === move) {
      spy.mockRestore();
      await hold();
    }
    return original(command);
  });
}

/** The next poll gets this delegation in time, as its first attempt. */
async function expectHandedOut(api: ReturnType<typeof client>, id: string): Promise<void> {
  const [lease] = (
    await retryUntilAnswered(() => api.lease("scout", { wait_seconds: BACK_MS / 1_000 }), BACK_MS)
  ).body.leases;
  expect(lease).toMatchObject({ attempt: 1, delegation: { id } });
}

test("a request that is interrupted between two commands is answered within 3 s", async () => {
  const withStalls = allowStalls();
  const { api, tickets, hold, heal } = await startWithin();
  const { id } = (await api.delegate("scout")).body;
  const discard = tickets.discard.bind(tickets);
  vi.spyOn(tickets, "discard").mockImplementationOnce(async (...args) => {
    await hold();
    return discard(...args);
  });
  const sentAt = performance.now();
  expect((await api.cancel(id)).status).toBe(200);
  const took = performance.now() - sentAt;
  await heal();
  expect(took).toBeLessThan(withStalls(ANSWER_MS));
});

test("a delegation whose acceptance was unknown is leased within 3 s of its retry", async () => {
  const within = await startWithin();
  const { api, heal } = within;
  holdBefore("submit", within);
  const idempotent = { "idempotency-key": "once" };
  expect((await api.delegate("scout", {}, idempotent)).status).toBe(503);
  await heal();
  const { status, body } = await retryUntilAnswered(() => api.delegate("scout", {}, idempotent));
  expect(status).toBe(200);
  await expectHandedOut(api, body.id);
});

// The delegator has its answer and does not retry; the sweep would make the ticket after 5 s.
test("an accepted delegation whose ticket the queue refused is leased within 3 s of the queue's repair", async () => {
  const { api, redis } = await startWithin();
  const prioritized = "{errand:0}:q:scout:prioritized";
  await redis.set(prioritized, "not what BullMQ keeps there");
  const { status, body } = await api.delegate("scout");
  expect(status).toBe(202);
  await redis.del(prioritized);
  await expectHandedOut(api, body.id);
});

// hold: the command arrives once Redis is back. swallow-answers: the lease was granted at once.
test.each(["hold", "swallow-answers"] as const)(
  "a lease whose grant got no answer is returned, no attempt spent: %s",
  async (fault) => {
    const { api, writer, proxy, heal } = await startWithin();
    const { id } = (await api.delegate("scout")).body;
    const take = writer.take.bind(writer);
    vi.spyOn(writer, "take").mockImplementationOnce(async (...args) => {
      await proxy.fault(fault);
      return take(...args);
    });
    expect((await api.lease("scout", { lease_seconds: 60 })).status).toBe(503);
    await heal();
    await expectHandedOut(api, id);
  },
);

test("a poll whose fetch failed leaves the wake to the next poll", async () => {
  const { api, direct, writer } = await startWithin();
  const polls = [api.lease("scout", { wait_seconds: 3 }), api.lease("scout", { wait_seconds: 3 })];
  await until(async () => (await direct.call("GET", "/v1/agents/scout")).body.presence.pollers === 2);
  vi.spyOn(writer, "take").mockRejectedValueOnce(new Error("Command timed out"));
  const { id } = (await direct.delegate("scout")).body;
  const leases = (await Promise.all(polls)).flatMap(({ body }) => body.leases ?? []);
  expect(leases).toMatchObject([{ delegation: { id } }]);
});

test("HEAD of a stream does not end the gateway when Redis is away", async () => {
  const { target: redis, proxy } = await startBehindProxy();
  const behind = await startGatewayProcess(0, { redis, logLevel: "silent" });
  await proxy.fault("hold");
  await request(behind.url, "HEAD", "/v1/events?after=0", { headers: { accept: "text/event-stream" } });
  // Twice as long as the read takes to fail.
  await until(async () => (await request(behind.url, "GET", "/readyz", { token: null })).status === 503);
  await until(async () => (await request(behind.url, "GET", "/readyz", { token: null })).status === 503);
  expect(behind.isAlive()).toBe(true);
});

test("SIGTERM while Redis is away ends a gateway at once if no request is in progress", async () => {
  const { target: redis, proxy } = await startBehindProxy();
  const behind = await startGatewayProcess(0, { redis, logLevel: "silent" });
  await proxy.fault("refuse");
  const notReady = async () => (await request(behind.url, "GET", "/readyz", { token: null })).status === 503;
  const startedAt = performance.now();
  await until(async () => (await notReady()) && performance.now() - startedAt > 1_000);
  behind.child.kill("SIGTERM");
  await until(() => !behind.isAlive(), { what: "its end" });
});

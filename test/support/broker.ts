/**
 * A gateway for a test: real HTTP, the run's Redis, a database of its own, a clock that the test moves. Limit: the
 * clock affects what Redis' clock decides; BullMQ's delays follow the machine's.
 */
import { Redis as OneServer } from "ioredis";
import { inject, onTestFinished } from "vitest";
import { type Gateway, type GatewayOptions, type Seams, startGateway } from "../../src/gateway/gateway.ts";
import type { Redis, RedisTarget } from "../../src/redis/connect.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { clusterClient, flushCluster, isOnCluster, testShards } from "./on-cluster.ts";

export const OPERATOR = "operator-token-for-tests";

export interface TestClock {
  offset_ms: number;
}

/** The settings and the seams of a test's gateway. */
export type TestOptions = Partial<GatewayOptions & Seams>;

export interface TestBroker {
  readonly gateway: Gateway;
  readonly url: string;
  readonly clock: TestClock;
  readonly redis: Redis;
  readonly db: number;
  /** The lines of the log. */
  readonly log: string[];
  readonly another: (options?: TestOptions) => Promise<{ gateway: Gateway; url: string }>;
}

/** A database that no other test of this run uses; on a Cluster the only one, emptied. */
export async function freshDb(): Promise<number> {
  if (isOnCluster()) {
    await flushCluster();
    return 0;
  }
  const admin = new OneServer(inject("redisSocket"));
  const db = 1 + ((await admin.incr("test:databases")) % 9_999);
  await admin.select(db);
  await admin.flushdb();
  admin.disconnect();
  return db;
}

/** Where that database is. */
export const targetOf = (db: number): RedisTarget =>
  isOnCluster() ? { url: inject("redisCluster") } : { socket: inject("redisSocket"), db };

/** A connection to that database. */
export const openRedis = (db: number): Redis =>
  isOnCluster() ? clusterClient() : new OneServer(inject("redisSocket"), { db });

export async function startBroker(options: TestOptions = {}): Promise<TestBroker> {
  const db = await freshDb();
  const clock: TestClock = { offset_ms: 0 };
  const log: string[] = [];
  const gateways: Gateway[] = [];
  const another = async (more: TestOptions = {}) => {
    const seams: Partial<Seams> = {
      clock,
      sweepEveryMs: 0,
      // A test's sweeps may be far apart; see outage.ts.
      outageMs: 60_000,
      ...options,
      ...more,
    };
    const settings: GatewayOptions = {
      redis: targetOf(db),
      host: "127.0.0.1",
      port: 0,
      operatorToken: OPERATOR,
      shards: testShards(),
      retentionMs: 3_600_000,
      maxBodyBytes: 1_048_576,
      allowedOrigins: [],
      log: createLog("debug", (line) => log.push(line)),
      ...options,
      ...more,
    };
    const gateway = await startGateway(settings, seams);
    gateways.push(gateway);
    return { gateway, url: `http://127.0.0.1:${gateway.port}` };
  };
  const first = await another();
  const redis = openRedis(db);
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close({ idleGrace: false })));
    redis.disconnect();
  });
  return { ...first, clock, redis, db, log, another };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Untyped: each test states what it expects on the wire.
  readonly body: ReturnType<typeof JSON.parse>;
}

export async function request(
  url: string,
  method: string,
  path: string,
  options: {
    body?: unknown;
    token?: string | null;
    headers?: Record<string, string>;
    signal?: AbortSignal;
  } = {},
): Promise<Answer> {
  const { body, token = OPERATOR, headers = {}, signal } = options;
  // Loaded only where it is needed: compiling the schemas takes time.
  const send = path.startsWith("/a2a/") ? (await import("./a2a-schema/check.ts")).strictFetch : fetch;
  const response = await send(`${url}${path}`, {
    method,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
}

/** The calls that most tests make, as the operator unless given another token. */
export function client(url: string, token: string | null = OPERATOR) {
  const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    request(url, method, path, { token, ...(body !== undefined && { body }), ...(headers && { headers }) });
  return {
    call,
    agent: (name: string, spec: unknown = {}) => call("PUT", `/v1/agents/${name}`, spec),
    delegate: (target: string, more: Record<string, unknown> = {}, headers?: Record<string, string>) =>
      call(
        "POST",
        "/v1/delegations",
        { target, ...("message" in more ? {} : { task: "do it" }), ...more },
        headers,
      ),
    get: (id: string, query = "") => call("GET", `/v1/delegations/${id}${query}`),
    lease: (agent: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/agents/${agent}/leases`, { wait_seconds: 5, ...more }),
    heartbeat: (lease: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/leases/${lease}/heartbeat`, more),
    release: (lease: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/leases/${lease}/release`, more),
    reply: (lease: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/leases/${lease}/reply`, { state: "completed", text: "done", ...more }),
    cancel: (id: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/delegations/${id}/cancel`, more),
    interrupt: (lease: string, more: Record<string, unknown> = {}) =>
      call("POST", `/v1/leases/${lease}/interrupt`, { kind: "input", ...more }),
    await: (lease: string, children: readonly string[], more: Record<string, unknown> = {}) =>
      call("POST", `/v1/leases/${lease}/await`, { children, ...more }),
    answer: (id: string, interrupt_id: string, more: Record<string, unknown> = {}, key?: string) =>
      call(
        "POST",
        `/v1/delegations/${id}/answer`,
        { interrupt_id, ...more },
        key === undefined ? undefined : { "idempotency-key": key },
      ),
    message: (id: string, text: string) => call("POST", `/v1/delegations/${id}/messages`, { text }),
    erase: (id: string) => call("DELETE", `/v1/delegations/${id}`),
    redrive: (id: string) => call("POST", `/v1/delegations/${id}/redrive`),
    events: (id: string, query = "?after=0") =>
      call("GET", `/v1/delegations/${id}/events${query}`, undefined, { accept: "application/json" }),
  };
}

/** A token for a principal, and the calls with that token. */
export async function as(url: string, principal: string) {
  const { body } = await request(url, "POST", "/v1/tokens", { body: { principal } });
  return { ...client(url, body.token), token: String(body.token), tokenId: String(body.id) };
}

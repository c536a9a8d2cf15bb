/**
 * Wires one gateway: connections, the writer, the queue, the feed, the sweep, the HTTP door. Limit: it is
 * given a Redis; where that comes from is serve.ts's business.
 */
import { setMaxListeners } from "node:events";
import type { LookupFunction } from "node:net";
import { CardSigner } from "./doors/a2a/cards/signing.ts";
import { renderPush } from "./doors/a2a/push/push-notification.ts";
import { createHttpApp, type HttpApp } from "./doors/http/app.ts";
import { type Arrival, type Listener, listen } from "./doors/http/listener.ts";
import type { McpTestExtension } from "./doors/mcp/server.ts";
import { type Quota, Quotas } from "./engine/access/quotas.ts";
import { Tokens } from "./engine/access/tokens.ts";
import { Turns } from "./engine/access/turns.ts";
import { inBackground, wake, warn } from "./engine/after-move.ts";
import { Presences } from "./engine/agents/presence.ts";
import { Agents } from "./engine/agents/store.ts";
import type { Broker } from "./engine/broker.ts";
import { Cascades } from "./engine/delegations/cascades.ts";
import { Awaited } from "./engine/events/wait.ts";
import { type Terms, Told, type Wakers } from "./engine/leases/handoff.ts";
import { Unheard } from "./engine/leases/in-doubt.ts";
import { Recovery } from "./engine/leases/recovery.ts";
import { deliver } from "./engine/outbound/callbacks.ts";
import { Egress } from "./engine/outbound/egress.ts";
import { HostPlaces } from "./engine/outbound/host-places.ts";
import { retryAfterMs } from "./engine/outbound/http-call.ts";
import { deliverPending } from "./engine/outbound/outbox.ts";
import { deliverPush } from "./engine/outbound/push-notifications/deliver.ts";
import { ABANDON, PUSH_AGENTS_CHANGED, PushAgentRunner } from "./engine/push-agents/runner.ts";
import { MemoryGuard } from "./engine/upkeep/memory-guard.ts";
import { metricsObserver, queueDepths } from "./engine/upkeep/metrics-observer.ts";
import { Sweep } from "./engine/upkeep/sweep.ts";
import { Bodies } from "./events/bodies.ts";
import { Feed } from "./events/feed.ts";
import { type Clock, type Observe, type Result, Writer } from "./lifecycle/writer.ts";
import { OUTBOUND_QUEUE, OutboundQueue } from "./queue/outbound-queue.ts";
import { ParkedPolls } from "./queue/parked-polls.ts";
import { Tickets } from "./queue/tickets.ts";
import { Bus } from "./redis/bus.ts";
import type { Redis, RedisTarget } from "./redis/connect.ts";
import { Connections } from "./redis/connections.ts";
import { keys } from "./redis/keys.ts";
import { randomId, Shards } from "./redis/shards.ts";
import type { SigningKey } from "./schema/signing-key.ts";
import type { Log } from "./telemetry/log.ts";
import { Metrics } from "./telemetry/metrics.ts";

export interface GatewayOptions {
  readonly redis: RedisTarget;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly operatorToken: string;
  readonly shards: number;
  readonly retentionMs: number;
  readonly maxBodyBytes: number;
  /** Percent of maxmemory that the delegations of one delegator may keep; 100: no limit. */
  readonly delegatorPercent?: number;
  readonly allowedOrigins: readonly string[];
  /** The base of links that are handed out; from host and port when absent. */
  readonly publicUrl?: string | undefined;
  /** Signs agent cards. */
  readonly cardSigningKey?: SigningKey | undefined;
  /** Instead of those of the table of limits. */
  readonly quotas?: Partial<Record<Quota, number>>;
  /** Hosts, addresses and CIDRs that callbacks may reach although they are private. */
  readonly callbackAllow?: readonly string[];
  /** More for MCP clients than the broker's own; for tests. */
  readonly mcpExtension?: McpTestExtension;
  /** How long an MCP client may take to answer a ping; for tests. */
  readonly mcpPingMs?: number;
  /** Resolves the hosts of callbacks instead of the system; for tests. */
  readonly callbackLookup?: LookupFunction;
  /** After how long a callback is tried again that has been tried for so long; for tests. */
  readonly callbackRetryMs?: (triedForMs: number) => number;
  /** How long a request may take to arrive; for tests. */
  readonly arrival?: Arrival;
  readonly log: Log;
  /** Moved by tests; Redis' own time otherwise. */
  readonly clock?: Clock;
  /** Told when the connection to Redis is lost. */
  readonly onRedisLost?: () => void;
  /** How often the sweep looks; 0 leaves it to `sweep.tick()`. */
  readonly sweepEveryMs?: number;
}

export interface Gateway {
  readonly port: number;
  readonly broker: Broker;
  readonly sweep: Sweep;
  /** The number of connections with unread bytes. */
  readonly unread: () => number;
  /** Bytes of large request bodies in progress: of one principal, or of all. */
  readonly requestBytes: (principal?: string) => number;
  /** How many requests of a principal run, and how many wait for their turn. */
  readonly inProgress: HttpApp["inProgress"];
  /** Clean end within ten seconds: polls answered, streams closed, what is in flight finished. */
  readonly close: () => Promise<void>;
}

/** Thrown when the data was laid out for another number of shards. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
}

const GRACE_MS = 5_000;
const HOOKS_GRACE_MS = 2_000;
/** Longer than the relay waits for the id of a task that is being made. */
const HOUSE_RELAY_GRACE_MS = 6_000;

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { log } = options;
  const clock = options.clock ?? { offset_ms: 0 };
  const shards = new Shards(options.shards);
  const gateway = randomId(10);
  const connections = new Connections(options.redis, gateway, log);
  let { port } = options;
  const redis = connections.open("commands");
  if (options.onRedisLost) redis.on("close", options.onRedisLost);
  try {
    await checkLayout(redis, options.shards);
    const metrics = new Metrics();
    const bus = new Bus(connections.open("subscriber"), redis);
    const tickets = new Tickets(redis, shards, log);
    const polls = new ParkedPolls<Terms, Result>({
      onError: (error) => warn(broker, error, "queue not read"),
      onWoken: (ms) => metrics.wake.observe(ms / 1000),
    });
    const feed = new Feed(connections.open("blocking"), shards, log);
    const bulk = connections.open("bulk");
    const awaited = new Awaited();
    const count = metricsObserver(metrics);
    const memory = new MemoryGuard(redis, {
      shards: options.shards,
      ...(options.delegatorPercent !== undefined && { percent: options.delegatorPercent }),
    });
    const observe: Observe = (command, outcome, record) => {
      count(command, outcome, record);
      if (record && outcome.kind === "ok") awaited.give(record);
    };
    const wakers: Wakers = {
      wake: (agent, drain) => {
        polls.wake(agent, drain);
        broker.pushAgents.wake(agent);
      },
      wakeAll: () => {
        polls.wakeAll();
        broker.pushAgents.lookAgain();
      },
    };
    const pushAgents = new PushAgentRunner(() => broker);
    const cascades = new Cascades(() => broker);
    const broker: Broker = {
      awaited,
      gateway,
      redis,
      connections,
      redisSource: options.redis.socket === undefined ? "external" : "embedded",
      bulk,
      shards,
      writer: new Writer(redis, shards, clock, options.retentionMs, observe, memory),
      tickets,
      polls,
      feed,
      bodies: new Bodies(bulk, shards),
      bus,
      agents: new Agents(redis, shards, clock, options.retentionMs),
      tokens: new Tokens(redis, bus, options.operatorToken),
      presence: new Presences(redis, shards, polls, gateway, log, (agent) => broker.pushAgents.has(agent)),
      memory,
      quotas: new Quotas(options.quotas),
      unheard: new Unheard(),
      wakers,
      told: new Told(wakers, feed, shards, (agent) => wake(broker, agent, false)),
      outbound: new OutboundQueue({
        tickets,
        deliver: (ticket, stopping) =>
          ticket.push !== undefined
            ? deliverPush(broker, ticket, ticket.push, stopping)
            : ticket.ticket === ABANDON
              ? broker.pushAgents.abandon(ticket.delegation_id, stopping)
              : deliver(broker, ticket),
        wake: () => wake(broker, OUTBOUND_QUEUE),
        onError: (error) => warn(broker, error, "callback queue not read"),
      }),
      turns: new Turns(),
      cascades,
      callbackRetryMs: options.callbackRetryMs ?? retryAfterMs,
      hosts: new HostPlaces(),
      renderPush: (entry, version, context) => renderPush(broker.publicUrl(), entry, version, context),
      egress: new Egress(options.callbackAllow ?? [], options.callbackLookup),
      pushAgents,
      deliverPending: (id, owed) => inBackground(broker, deliverPending(broker, id, owed)),
      background: new Set(),
      publicUrl: () => options.publicUrl ?? urlOf(options.host, port),
      clock,
      retentionMs: options.retentionMs,
      log,
      metrics,
    };
    metrics.onScrape(() => {
      metrics.parkedPolls.set(polls.parked());
      return queueDepths(broker);
    });
    await listenForWakes(broker);
    await broker.tokens.start();
    await broker.feed.start();
    broker.told.start();
    await broker.presence.start();
    await broker.memory.look();
    broker.memory.start();
    const sweep = new Sweep(broker, options.sweepEveryMs);
    if (options.sweepEveryMs !== 0) sweep.start();
    const recovery = new Recovery(broker);
    recovery.start();
    broker.outbound.start();
    await pushAgents.start();
    const stopping = new AbortController();
    // Every parked poll and every stream listens to it.
    setMaxListeners(0, stopping.signal);
    const door = createHttpApp({
      broker,
      host: options.host,
      maxBodyBytes: options.maxBodyBytes,
      allowedOrigins: options.allowedOrigins,
      signer: options.cardSigningKey ? new CardSigner(options.cardSigningKey) : null,
      stopping: stopping.signal,
      unready: () => unready(connections),
      mcpExtension: options.mcpExtension,
      mcpPingMs: options.mcpPingMs,
    });
    const listener = await listen(door, {
      host: options.host,
      port: options.port,
      now: () => performance.now() + clock.offset_ms,
      arrival: options.arrival,
    });
    port = listener.port;
    return {
      port: listener.port,
      unread: listener.unread,
      requestBytes: door.requestBytes,
      inProgress: door.inProgress,
      broker,
      sweep,
      close: once(() =>
        close(broker, pushAgents, cascades, listener, sweep, recovery, stopping, connections),
      ),
    };
  } catch (error) {
    connections.close();
    throw error;
  }
}

/** How a client on this machine reaches it. */
export function urlOf(host: string, port: number): string {
  const name =
    host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

async function checkLayout(redis: Redis, shards: number): Promise<void> {
  // Written only once, so that a gateway can start while Redis' memory is full.
  const known = await redis.hget(keys.layout, "shards");
  if (known === null) await redis.hsetnx(keys.layout, "shards", shards);
  const stored = known ?? (await redis.hget(keys.layout, "shards"));
  if (Number(stored) !== shards) {
    throw new LayoutError(
      `The data is laid out for ERRAND_SHARDS=${stored}, not ${shards}. Start with ${stored}; changing it needs an empty Redis.`,
    );
  }
}

async function listenForWakes(broker: Broker): Promise<void> {
  for (const shard of broker.shards.all) {
    await broker.bus.subscribe(shard.wake, (message) => {
      const [from, agent = "", drain] = message.split(" ");
      if (from === broker.gateway) return;
      if (agent === OUTBOUND_QUEUE) broker.outbound.wake();
      else if (agent === PUSH_AGENTS_CHANGED) broker.pushAgents.reload();
      else broker.wakers.wake(agent, drain !== undefined);
    });
  }
  broker.bus.onGap(() => {
    broker.wakers.wakeAll();
    broker.outbound.wake();
  });
}

/** Asks for a write: a replica, or a Redis whose disk is full, still answers a ping. */
function unready(connections: Connections): Promise<string | null> {
  return connections.wasWritable().then(
    () => null,
    (error: unknown) => `Redis refuses writes: ${error instanceof Error ? error.message : "unknown"}`,
  );
}

async function close(
  broker: Broker,
  pushAgents: PushAgentRunner,
  cascades: Cascades,
  listener: Listener,
  sweep: Sweep,
  recovery: Recovery,
  stopping: AbortController,
  connections: Connections,
): Promise<void> {
  stopping.abort();
  // Its leases go back while polls are answered.
  await Promise.all([listener.close(GRACE_MS), pushAgents.stop(HOUSE_RELAY_GRACE_MS)]);
  recovery.stop();
  cascades.stop();
  await Promise.allSettled(broker.background);
  await broker.outbound.stop(HOOKS_GRACE_MS);
  await broker.egress.close();
  await sweep.stop();
  broker.memory.stop();
  await broker.presence.stop().catch((error: unknown) => warn(broker, error, "presence not removed"));
  await broker.feed.stop();
  connections.close();
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

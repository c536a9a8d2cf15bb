/** Creates the parts of the engine, connects them, and lists the services in the order in which they start. */
import { renderPush } from "../doors/a2a/push/push-notification.ts";
import { Quotas } from "../engine/access/quotas.ts";
import { ReadLimiter } from "../engine/access/read-limiter.ts";
import { Revocations } from "../engine/access/revocations.ts";
import { Sessions } from "../engine/access/sessions.ts";
import { Tokens } from "../engine/access/tokens.ts";
import { inBackground, warn } from "../engine/after-move.ts";
import { PresenceTracker } from "../engine/agents/presence.ts";
import { AgentStore } from "../engine/agents/store.ts";
import type { Broker } from "../engine/broker.ts";
import { Cascades } from "../engine/delegations/cascades.ts";
import { FileUpkeep } from "../engine/files/upkeep.ts";
import { findGrants } from "../engine/leases/find-grants.ts";
import { Handoff } from "../engine/leases/handoff.ts";
import { HeldHeartbeats } from "../engine/leases/held-heartbeats.ts";
import { returnLease } from "../engine/leases/lease.ts";
import { formatWake, parseWake } from "../engine/leases/wake-message.ts";
import { LinkStore } from "../engine/links/store.ts";
import { deliverCallback } from "../engine/outbound/callbacks.ts";
import { Egress } from "../engine/outbound/egress.ts";
import { HostLimiter } from "../engine/outbound/host-limiter.ts";
import { retryAfterMs } from "../engine/outbound/http-call.ts";
import { deliverPending } from "../engine/outbound/outbox.ts";
import { deliverPush } from "../engine/outbound/push-notifications/deliver.ts";
import { PushAgentRunner } from "../engine/push-agents/runner.ts";
import { RuleStore } from "../engine/rules/store.ts";
import { Schedules } from "../engine/schedules/schedules.ts";
import { Counters } from "../engine/stats/counters.ts";
import { AgentFiguresCache } from "../engine/stats/read-agents.ts";
import { QueueSampler } from "../engine/stats/sampler.ts";
import { Mailer } from "../engine/subscriptions/channels/mailer.ts";
import { WebPush } from "../engine/subscriptions/channels/web-push.ts";
import { deliverNotices } from "../engine/subscriptions/deliver.ts";
import { Notifier } from "../engine/subscriptions/notifier.ts";
import { MemoryGuard } from "../engine/upkeep/memory-guard.ts";
import { metricsObserver } from "../engine/upkeep/metrics-observer.ts";
import { queueDepths } from "../engine/upkeep/queue-depths.ts";
import { Sweep } from "../engine/upkeep/sweep.ts";
import { Bodies } from "../events/bodies.ts";
import { Feed } from "../events/feed.ts";
import { type Observe, Writer } from "../lifecycle/writer.ts";
import { OUTBOUND_QUEUE, OutboundQueue } from "../queue/outbound-queue.ts";
import { ScheduleQueue } from "../queue/schedule-queue.ts";
import { Tickets } from "../queue/tickets.ts";
import { Bus } from "../redis/bus.ts";
import type { Redis } from "../redis/connect.ts";
import type { Connections } from "../redis/connections.ts";
import { keys } from "../redis/keys.ts";
import type { CheckedLayout } from "../redis/layout.ts";
import type { Shards } from "../redis/shards.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { GatewayOptions } from "./options.ts";
import type { Seams } from "./seams.ts";
import type { Service } from "./services.ts";

const OUTBOUND_GRACE_MS = 2_000;
/** Longer than the relay waits for the id of a task that is being created. */
const PUSH_AGENTS_GRACE_MS = 6_000;

interface Base {
  /** The random name of this gateway. */
  readonly gateway: string;
  readonly connections: Connections;
  readonly redis: Redis;
  readonly shards: Shards;
  readonly layout: CheckedLayout;
  readonly publicUrl: () => string;
}

export interface Engine {
  readonly broker: Broker;
  readonly sweep: Sweep;
  readonly fileUpkeep: FileUpkeep;
  readonly services: readonly Service[];
  /** Stops the push agents, once; called while the HTTP server, which stops first, waits for its requests. */
  readonly stopPushAgents: () => Promise<void>;
}

export function wireEngine(options: GatewayOptions, seams: Partial<Seams>, base: Base): Engine {
  const { gateway, connections, redis, shards, layout, publicUrl } = base;
  const { log, operatorToken, retentionMs } = options;
  const clock = seams.clock ?? { offset_ms: 0 };
  const metrics = new Metrics();
  const bus = new Bus(connections.openSubscriber(), redis);
  const bulk = connections.open("bulk");
  const readers = connections.openReaders(shards.all.map(({ events }) => events));
  const feed = new Feed(redis, readers, shards, log);
  const tickets = new Tickets(redis, shards, log);
  const memory = new MemoryGuard(redis, {
    shards: options.shards,
    ...(options.delegatorPercent !== undefined && { percent: options.delegatorPercent }),
  });
  const warnOf = (error: unknown, what: string) => warn({ connections, log }, error, what);
  const count = metricsObserver(metrics);
  const counters = new Counters({ redis, shards, log, clock, isShort: () => memory.isReached() });
  const observe: Observe = (command, outcome, record) => {
    count(command, outcome, record);
    counters.count(command, outcome, record);
  };
  const replicas = connections.openReplicas(options.waitReplicas ?? 0);
  const writer = new Writer({ redis, shards, clock, retentionMs, observe, ceiling: memory, replicas });
  const revocations = new Revocations(redis, bus, replicas);
  const sessions = new Sessions({ redis, clock, revocations, operatorToken, publicUrl });
  const agents = new AgentStore({ redis, shards, clock, retentionMs, replicas });
  // A verb needs these services, and they call verbs, so they get the broker when they first need it.
  const pushAgents = new PushAgentRunner(() => broker, seams.pushAgentWaitSeconds);
  const cascades = new Cascades(() => broker);
  const handoff = new Handoff({
    shards,
    clock,
    writer,
    tickets,
    feed,
    pushAgents,
    broadcast: (wake) => bus.publish(shards.ofAgent(wake.agent).wake, formatWake({ from: gateway, wake })),
    findGrants: (agent, grants) => findGrants({ redis, shards, clock }, agent, grants),
    returnLease: (lease) => returnLease(broker, lease),
    onReturn: () => metrics.handedBack.inc(),
    warn: warnOf,
    polls: {
      onError: (error) => warnOf(error, "queue not read"),
      onWoken: (ms) => metrics.wake.observe(ms / 1000),
      findQueued: (agents) => tickets.findQueued(agents),
    },
  });
  const { queuePrefix } = shards.ofAgent(OUTBOUND_QUEUE);
  const outbound = new OutboundQueue({
    redis,
    blocking: connections.openJobs(queuePrefix),
    prefix: queuePrefix,
    deliver(job, stopping) {
      switch (job.kind) {
        case "callback":
          return deliverCallback(broker, job);
        case "push":
          return deliverPush(broker, job, stopping);
        case "cancel":
          return pushAgents.cancelTaskOf(job.delegation_id, stopping);
        case "notify":
          return deliverNotices(broker, job, stopping);
      }
    },
    onError: (error) => warnOf(error, "the outbound queue failed"),
  });
  const rules = new RuleStore(redis, shards, clock, replicas);
  const schedules = new Schedules(
    { redis, clock },
    () => broker,
    (wake) =>
      new ScheduleQueue({
        redis,
        blocking: connections.openJobs(keys.scheduleQueuePrefix),
        prefix: keys.scheduleQueuePrefix,
        wake,
        onError: (error) => warnOf(error, "the queue of schedules failed"),
      }),
    seams.sweepEveryMs === 0 ? 0 : undefined,
  );
  const subscriptions = new Notifier(
    { redis, clock },
    () => broker,
    seams.sweepEveryMs === 0 ? 0 : undefined,
  );
  const mailer = new Mailer(options.mail ?? null);
  const broker: Broker = {
    id: layout.brokerId,
    gateway,
    siblings: options.siblings ?? null,
    startedAt: Date.now(),
    publicUrl,
    clock,
    log,
    metrics,
    counters,
    agentFigures: new AgentFiguresCache(),
    connections,
    dataDir: options.dataDir ?? null,
    redisSource: options.redis.socket === undefined ? "external" : "embedded",
    redis,
    bulk,
    bus,
    shards,
    retentionMs,
    memory,
    files: options.files ?? null,
    writer,
    feed,
    bodies: new Bodies(bulk, shards),
    cascades,
    tickets,
    handoff,
    heldHeartbeats: new HeldHeartbeats(),

    pushAgents,
    agents,
    tokens: new Tokens(redis, revocations, sessions, operatorToken, (id) => rules.revokeOfToken(id)),
    rules,
    sessions,
    presence: new PresenceTracker(redis, shards, handoff.polls, gateway, log, (agent) =>
      pushAgents.has(agent),
    ),
    quotas: new Quotas(options.quotas, options.siblings?.quotaCounts),
    readLimiter: new ReadLimiter(),
    outbound,
    schedules,
    subscriptions,
    mailer,
    links: new LinkStore(redis),
    webPush: new WebPush(redis, publicUrl),
    linkBase: options.publicUrl ?? null,
    egress: new Egress(options.callbackAllow ?? [], seams.callbackLookup, options.egressProxy),
    hostLimiter: new HostLimiter(),
    renderPush: (entry, version, context) => renderPush(publicUrl(), entry, version, context),
    callbackRetryMs: seams.callbackRetryMs ?? retryAfterMs,
    deliverPending: (id, pending) => inBackground(broker, deliverPending(broker, id, pending)),
    background: new Set(),
  };
  metrics.onRead(() => metrics.parkedPolls.set(handoff.polls.countAll()));
  metrics.onScrape(() => queueDepths({ bulk, shards, clock }));
  options.siblings?.share(metrics);
  const sampler = new QueueSampler(broker);
  const fileUpkeep = new FileUpkeep(broker, seams.sweepEveryMs === 0 ? 0 : undefined);
  const sweep = new Sweep(broker, seams.sweepEveryMs, seams.outageMs);
  let pushAgentsStopped: Promise<void> | undefined;
  const stopPushAgents = () => {
    pushAgentsStopped ??= pushAgents.stop(PUSH_AGENTS_GRACE_MS);
    return pushAgentsStopped;
  };
  const services: Service[] = [
    { name: "connections", start: nothing, stop: () => connections.close() },
    { name: "wakes", start: () => receiveWakes(broker), stop: nothing },
    {
      name: "revocations",
      start: () => revocations.start(broker.tokens, sessions),
      stop: () => revocations.stop(),
    },
    { name: "feed", start: () => feed.start(), stop: () => feed.stop() },
    { name: "presence", start: () => broker.presence.start(), stop: () => broker.presence.stop() },
    // Before anything that writes work.
    { name: "layout", start: () => layout.requireUnchanged(), stop: nothing },
    { name: "figures", start: () => counters.start(), stop: () => counters.stop() },
    { name: "queue sampler", start: () => sampler.start(), stop: () => sampler.stop() },
    {
      name: "memory guard",
      start: async () => {
        await memory.check();
        memory.start();
      },
      stop: () => memory.stop(),
    },
    { name: "sweep", start: () => seams.sweepEveryMs !== 0 && sweep.start(), stop: () => sweep.stop() },
    {
      name: "files",
      start: async () => {
        await options.files?.store.prepare();
        fileUpkeep.start();
      },
      stop: () => fileUpkeep.stop(),
    },
    {
      name: "outgoing calls",
      start: nothing,
      stop: () => Promise.all([broker.egress.close(), mailer.close()]),
    },
    { name: "outbound queue", start: () => outbound.start(), stop: () => outbound.stop(OUTBOUND_GRACE_MS) },
    { name: "background work", start: nothing, stop: () => Promise.allSettled(broker.background) },
    { name: "cascades", start: nothing, stop: () => cascades.stop() },
    { name: "hand-off", start: () => handoff.start(), stop: () => handoff.stop() },
    { name: "push agents", start: () => pushAgents.start(), stop: stopPushAgents },
    { name: "schedules", start: () => schedules.start(), stop: () => schedules.stop() },
    { name: "subscriptions", start: () => subscriptions.start(), stop: () => subscriptions.stop() },
  ];
  return { broker, sweep, fileUpkeep, services, stopPushAgents };
}

const nothing = () => {};

/** Handles wakes, and changes of push agents, that other gateways publish. */
async function receiveWakes({ gateway, bus, shards, pushAgents, handoff }: Broker): Promise<void> {
  for (const shard of shards.all) {
    await bus.subscribe(shard.wake, (message) => {
      const { from, wake } = parseWake(message) ?? {};
      if (from === gateway) return;
      switch (wake?.kind) {
        case "ticket":
          return handoff.wakeHere(wake.agent, wake.drain);
        case "kept_ticket":
          return handoff.keepForHere(wake.agent, wake.worker);
        case "push_agents":
          return pushAgents.reload();
      }
    });
  }
  bus.onGap(() => handoff.wakeAllHere());
}

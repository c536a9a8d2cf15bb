/**
 * The parts of one gateway, grouped by purpose. gateway/wiring.ts creates them; verbs have no state of their own. The
 * APIs hand the whole to a verb, and the type of its first argument says which parts the verb uses. Limit: a service that
 * imports `Broker` is declared here as an interface, because imports have no cycles.
 */
import type { Bodies } from "../events/bodies.ts";
import type { Feed } from "../events/feed.ts";
import type { Siblings } from "../gateways/siblings.ts";
import type { Clock } from "../lifecycle/command.ts";
import type { PendingEvents } from "../lifecycle/outcome.ts";
import type { ReadDelegation } from "../lifecycle/stored-delegation.ts";
import type { Writer } from "../lifecycle/writer.ts";
import type { OutboundJob, OutboundQueue } from "../queue/outbound-queue.ts";
import type { Tickets } from "../queue/tickets.ts";
import type { Bus } from "../redis/bus.ts";
import type { Redis } from "../redis/connect.ts";
import type { Connections } from "../redis/connections.ts";
import type { Shards } from "../redis/shards.ts";
import type { AgentFiguresPage } from "../schema/stats.ts";
import type { RedisStatus } from "../schema/status.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Quotas } from "./access/quotas.ts";
import type { ReadLimiter } from "./access/read-limiter.ts";
import type { Sessions } from "./access/sessions.ts";
import type { Tokens } from "./access/tokens.ts";
import type { PresenceTracker } from "./agents/presence.ts";
import type { AgentStore } from "./agents/store.ts";
import type { FileStore } from "./files/store.ts";
import type { Handoff } from "./leases/handoff.ts";
import type { HeldHeartbeats } from "./leases/held-heartbeats.ts";
import type { LinkStore } from "./links/store.ts";
import type { Egress } from "./outbound/egress.ts";
import type { HostLimiter } from "./outbound/host-limiter.ts";
import type { RenderPush } from "./outbound/push-notifications/render.ts";
import type { RuleStore } from "./rules/store.ts";
import type { ScheduleStore } from "./schedules/store.ts";
import type { StoredSchedule } from "./schedules/stored-schedule.ts";
import type { Counters } from "./stats/counters.ts";
import type { Mailer } from "./subscriptions/channels/mailer.ts";
import type { WebPush } from "./subscriptions/channels/web-push.ts";
import type { Slots } from "./subscriptions/slots.ts";
import type { SubscriptionStore } from "./subscriptions/store.ts";
import type { MemoryGuard } from "./upkeep/memory-guard.ts";

/** Keeps pages of agents' figures for some seconds, by what was asked. */
export interface AgentFiguresPages {
  of(key: string, now: number, read: () => Promise<AgentFiguresPage>): Promise<AgentFiguresPage>;
}

/** The gateway's identity, its log and its metrics. */
export interface Gateway {
  /** The id of the broker, the same at each of its gateways (redis/layout.ts). */
  readonly id: string;
  /** Random name of this process among the gateways. */
  readonly gateway: string;
  /** The other gateways on its port; null if there is no supervisor. */
  readonly siblings: Siblings | null;
  /** When it started, ms since 1970, by the clock of its machine. */
  readonly startedAt: number;
  /** The base of the links in responses; no client can influence it. */
  readonly publicUrl: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Figures for charts. */
  readonly counters: Counters;
  readonly agentFigures: AgentFiguresPages;
}

export interface Storage {
  readonly connections: Connections;

  readonly redisSource: RedisStatus["source"];
  /** The data directory of the embedded Redis; null for an external one. */
  readonly dataDir: string | null;
  /** For commands. */
  readonly redis: Redis;
  /** For lists and replays, so that large replies do not delay commands. */
  readonly bulk: Redis;
  readonly bus: Bus;
  readonly shards: Shards;
  /** How long finished delegations and their events are kept. */
  readonly retentionMs: number;
  readonly memory: MemoryGuard;
  /** The content of files, and how much of it there may be; null: this broker stores none. */
  readonly files: Files | null;
}

export interface Files {
  readonly store: FileStore;
  /** The most bytes of one file. */
  readonly maxBytes: number;
  /** The most bytes of all files and uploads of one principal. */
  readonly principalBytes: number;
}

/** Delegations: the one writer of records and events, and the readers of events. */
export interface Delegations {
  readonly writer: Writer;
  readonly feed: Feed;
  readonly bodies: Bodies;
  readonly cascades: CascadeService;
}

/** The agents' queues, and the hand-off of work to agents. */
export interface Work {
  readonly tickets: Tickets;
  readonly handoff: Handoff;
  readonly heldHeartbeats: HeldHeartbeats;

  readonly pushAgents: PushAgentService;
}

/** Agents, tokens, sessions, and the limits of each principal. */
export interface Principals {
  readonly agents: AgentStore;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  /** Standing approvals and denials. */
  readonly rules: RuleStore;
  readonly presence: PresenceTracker;
  readonly quotas: Quotas;
  readonly readLimiter: ReadLimiter;
}

/** Callbacks and push notifications. */
export interface Outbound {
  readonly outbound: OutboundQueue;
  readonly egress: Egress;
  readonly hostLimiter: HostLimiter;
  readonly renderPush: RenderPush;
  /** The retry delay of a call that has been failing for `triedForMs`. */
  readonly callbackRetryMs: (triedForMs: number) => number;
  /** Makes the pending deliveries of a move; continues in the background when the caller stops waiting. */
  readonly deliverPending: (id: string, pending: PendingDeliveries) => Promise<void>;
  /** Work that continues after the response; a stop waits for it. */
  readonly background: Set<Promise<void>>;
}

/** Schedules, which delegate again and again. */
export interface Scheduling {
  readonly schedules: ScheduleService;
}

/** Subscriptions: who is told of what, outside the console. */
export interface Notifying {
  readonly subscriptions: SubscriptionService;
  readonly mailer: Mailer;
  readonly webPush: WebPush;
  readonly links: LinkStore;
  /** The base of links that another machine can open; null: the operator named none. */
  readonly linkBase: string | null;
}

export interface Broker
  extends Gateway,
    Storage,
    Delegations,
    Work,
    Principals,
    Outbound,
    Scheduling,
    Notifying {}

/** To read a record and what is stored beside it. */
export type Records = Pick<Broker, "redis" | "shards">;
/** The same on the connection for large reads. */
export type BulkReads = Pick<Broker, "bulk" | "shards">;
/** To read a record for a principal: an agent sees nothing from before it was created. */
export type Reads = Records & Pick<Broker, "agents">;
/** To scan an index for a principal. */
export type Scans = BulkReads & Pick<Broker, "agents">;

/** The deliveries that a move requires besides the change of its record. */
export interface PendingDeliveries {
  /** The children must be canceled, in this principal's name. */
  readonly cascade?: string | undefined;
  /** Also what is under children that keep theirs, and under children that have ended. */
  readonly cascade_all?: 1 | undefined;
  /** When the sweep takes the cascade over. */
  readonly claimed_until?: number | undefined;
  /** The fence of the lease that began to wait for children, which must learn of it. */
  readonly expecting?: number | undefined;
  /** The parent that waits for its end. */
  readonly reports_to?: string | undefined;
  /** The parent to which it reports what its tree has used, and that sum as the script writes it. */
  readonly spends_to?: string | undefined;
  readonly spent?: string | undefined;
  readonly pending_events?: PendingEvents | undefined;
  /** Queued calls may have lost their jobs. The value is the instant of the sweep's next look. */
  readonly calls_at?: number | undefined;
}

/** The principal that canceled, and the claim: the instant at which the sweep takes over the cascade. */
export interface Cascade {
  readonly by: string;
  readonly claim: number;
  /** Also what is under children that keep theirs, and under children that have ended. */
  readonly all: boolean;
}

/** Cancels the descendants of a canceled delegation. */
export interface CascadeService {
  /** Resolves when all descendants are canceled, or left to the sweep. Joins a cascade that already runs here. */
  run(id: string, cascade: Cascade): Promise<void>;
}

/** Makes the ticks of schedules. */
export interface ScheduleService {
  readonly store: ScheduleStore;
  /** To be called when its calendar or its state has changed. */
  setWakes(schedule: Pick<StoredSchedule, "id" | "state" | "settings">): Promise<void>;
  removeWakes(id: string): Promise<void>;
  /** Makes everything that is due now; returns the number of schedules. */
  tick(): Promise<number>;
}

/** Puts notifications into the lanes of channels, and wakes those that are due. */
export interface SubscriptionService {
  readonly store: SubscriptionStore;
  readonly slots: Slots;
  /** Call it when subscriptions have changed. */
  changed(): Promise<void>;
  /** Does everything that is due now; returns the number of lanes that were woken. */
  tick(): Promise<number>;
}

/** Serves push agents, which do not poll, but have an A2A server. */
export interface PushAgentService {
  has(agent: string): boolean;
  /** Call it when the agent's queue may have work. */
  wake(agent: string): void;
  /** Call it when wakes may have been missed. */
  recheckAll(): void;
  /** Notifies all gateways that an agent became or stopped being a push agent, or that its server changed. */
  publishChange(agent: string): Promise<void>;
  /** Call it when another gateway published such a change. */
  reload(): void;
  /** The jobs of the cancels that are left of this delegation. */
  cancelJobs(record: ReadDelegation): readonly OutboundJob[];
  /** Queues the cancel of the task on the agent's server, because its delegation ended without a reply. */
  queueTaskCancel(agent: string, delegation_id: string): Promise<void>;
  /** Makes one attempt at a queued cancel. Resolves to null when it is done, or to the delay of the next attempt, ms. */
  cancelTaskOf(delegation_id: string, stopping: AbortSignal): Promise<number | null>;
}

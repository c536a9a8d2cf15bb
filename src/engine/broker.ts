/**
 * What the verbs work with: one broker in one process. Limit: wired by app.ts alone; verbs hold no state of
 * their own.
 */
import type { Bodies } from "../events/bodies.ts";
import type { Feed } from "../events/feed.ts";
import type { Clock, Result, Writer } from "../lifecycle/writer.ts";
import type { OutboundQueue } from "../queue/outbound-queue.ts";
import type { ParkedPolls } from "../queue/parked-polls.ts";
import type { Tickets } from "../queue/tickets.ts";
import type { Bus } from "../redis/bus.ts";
import type { Redis } from "../redis/connect.ts";
import type { Connections } from "../redis/connections.ts";
import type { Shards } from "../redis/shards.ts";
import type { RedisStatus } from "../schema/status.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Quotas } from "./access/quotas.ts";
import type { Tokens } from "./access/tokens.ts";
import type { Turns } from "./access/turns.ts";
import type { Presences } from "./agents/presence.ts";
import type { Agents } from "./agents/store.ts";
import type { Cascades } from "./delegations/cascades.ts";
import type { Awaited } from "./events/wait.ts";
import type { Told, Wakers } from "./leases/handoff.ts";
import type { Unheard } from "./leases/in-doubt.ts";
import type { Terms } from "./leases/lease.ts";
import type { Egress } from "./outbound/egress.ts";
import type { HostPlaces } from "./outbound/http-call.ts";
import type { PendingDeliveries } from "./outbound/outbox.ts";
import type { RenderPush } from "./outbound/push-notifications/deliver.ts";
import type { PushAgentRunner } from "./push-agents/runner.ts";
import type { MemoryGuard } from "./upkeep/memory-guard.ts";

export interface Broker {
  /** Random name of this process among the gateways. */
  readonly gateway: string;
  readonly redis: Redis;
  readonly connections: Connections;
  /** Where that Redis comes from: the broker's own, or one that is given. */
  readonly redisSource: RedisStatus["source"];
  /** For lists and replays: what they bring stands in nobody else's way. */
  readonly bulk: Redis;
  readonly shards: Shards;
  readonly writer: Writer;
  readonly tickets: Tickets;
  readonly polls: ParkedPolls<Terms, Result>;
  readonly feed: Feed;
  readonly bodies: Bodies;
  readonly bus: Bus;
  readonly agents: Agents;
  readonly tokens: Tokens;
  readonly presence: Presences;
  readonly memory: MemoryGuard;
  readonly quotas: Quotas;
  readonly unheard: Unheard;
  readonly wakers: Wakers;
  readonly told: Told;
  readonly awaited: Awaited;
  readonly outbound: OutboundQueue;
  readonly cascades: Cascades;
  /** For large reads. */
  readonly turns: Turns;
  readonly egress: Egress;
  readonly hosts: HostPlaces;
  readonly renderPush: RenderPush;
  readonly pushAgents: PushAgentRunner;
  /** After how long a call is tried again that has been tried for so long, ms. */
  readonly callbackRetryMs: (triedForMs: number) => number;
  /** Does what a delegation owes after its move; in the background, however long it is waited for. */
  readonly deliverPending: (id: string, owed: PendingDeliveries) => Promise<void>;
  /** What goes on behind an answer; a stop waits for it. */
  readonly background: Set<Promise<void>>;
  /** The base of links that are handed out; no client has a say in it. */
  readonly publicUrl: () => string;
  readonly clock: Clock;
  /** How long finished delegations and their events are kept. */
  readonly retentionMs: number;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The settings of one gateway. */
import type { LookupFunction } from "node:net";
import type { ArrivalTimeouts } from "../doors/http/listener.ts";
import type { McpTestExtension } from "../doors/mcp/server.ts";
import type { Quota } from "../engine/access/quotas.ts";
import type { Siblings } from "../gateways/siblings.ts";
import type { Clock } from "../lifecycle/command.ts";
import type { RedisTarget } from "../redis/connect.ts";
import type { SigningKey } from "../schema/signing-key.ts";
import type { Log } from "../telemetry/log.ts";
import type { ForwardProxy } from "../util/proxy.ts";

export interface GatewayOptions {
  readonly redis: RedisTarget;
  /** The data directory of the embedded Redis, if there is one. */
  readonly dataDir?: string | undefined;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** How long an idle connection of a client stays open. Default 65 s. */
  readonly keepAliveMs?: number;
  readonly operatorToken: string;
  readonly shards: number;
  readonly retentionMs: number;
  /** How many replicas must have a submit or a reply before it is acknowledged; default: none. */
  readonly waitReplicas?: number;
  readonly maxBodyBytes: number;
  /** Percent of maxmemory that the delegations of one delegator may keep; 100: no limit. */
  readonly delegatorPercent?: number;
  readonly allowedOrigins: readonly string[];
  /** Addresses and CIDRs of the proxies whose forwarded addresses count. */
  readonly trustedProxies?: readonly string[];
  /** The base of the links in responses; absent: from host and port. */
  readonly publicUrl?: string | undefined;
  /** Signs agent cards. */
  readonly cardSigningKey?: SigningKey | undefined;
  /** Overrides the table of limits. */
  readonly quotas?: Partial<Record<Quota, number>>;
  /** Hosts, addresses and CIDRs that callbacks may reach although they are private. */
  readonly callbackAllow?: readonly string[];
  /** The forward proxy for calls to public addresses. */
  readonly egressProxy?: ForwardProxy | undefined;
  /** An extension of the MCP server; for tests. */
  readonly mcpExtension?: McpTestExtension;
  /** How long an MCP client may take to answer a ping; for tests. */
  readonly mcpPingMs?: number;
  /** Resolves the hosts of callbacks instead of the system; for tests. */
  readonly callbackLookup?: LookupFunction;
  /** The retry delay of a callback that has been failing for `triedForMs`; for tests. */
  readonly callbackRetryMs?: (triedForMs: number) => number;
  /** How long the loop of a push agent waits for more work, s. Default 10. For tests. */
  readonly pushAgentWaitSeconds?: number | undefined;
  /** How long a request may take to arrive; for tests. */
  readonly arrival?: ArrivalTimeouts;
  /** The other gateways on this port, if a supervisor started it. */
  readonly siblings?: Siblings;
  readonly log: Log;
  /** An offset to Redis' clock; for tests. */
  readonly clock?: Clock;
  /** Called when the connection to Redis is lost. */
  readonly onRedisLost?: () => void;
  /** The interval of the sweep; 0: only on `sweep.tick()`. */
  readonly sweepEveryMs?: number;
  /** After how long without a sign of life of any gateway there was an outage; for tests. */
  readonly outageMs?: number;
}

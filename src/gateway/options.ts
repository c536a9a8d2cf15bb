/** The settings of one gateway. What only tests replace is in seams.ts. */
import type { Quota } from "../engine/access/quotas.ts";
import type { Files } from "../engine/broker.ts";
import type { MailSettings } from "../engine/subscriptions/channels/mailer.ts";
import type { Siblings } from "../gateways/siblings.ts";
import type { RedisTarget } from "../redis/connect.ts";
import type { SigningKey } from "../schema/signing-key.ts";
import type { Log } from "../telemetry/log.ts";
import type { ForwardProxy } from "../util/proxy.ts";

export interface GatewayOptions {
  /** Where Redis is. */
  readonly redis: RedisTarget;
  /** The data directory of the embedded Redis, if there is one. */
  readonly dataDir?: string | undefined;
  /** The address to listen on. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** How long an idle connection of a client stays open. Default 65 s. */
  readonly keepAliveMs?: number;
  /** The token of the operator. */
  readonly operatorToken: string;
  /** The number of shards, in which the keys of delegations and agents are. */
  readonly shards: number;
  /** How long finished delegations and their events are kept. */
  readonly retentionMs: number;
  /** How many replicas must have a submit or a reply before it is acknowledged; default: none. */
  readonly waitReplicas?: number;
  /** The most bytes of a request body. */
  readonly maxBodyBytes: number;
  /** Percent of maxmemory that the delegations of one delegator may keep; 100: no limit. */
  readonly delegatorPercent?: number;
  /** The origins, besides its own, whose pages may call the APIs. */
  readonly allowedOrigins: readonly string[];
  /** Addresses and CIDRs of the proxies whose forwarded addresses count. */
  readonly trustedProxies?: readonly string[];
  /** The base of the links in responses; absent: from host and port. */
  readonly publicUrl?: string | undefined;
  /** Signs agent cards. */
  readonly cardSigningKey?: SigningKey | undefined;
  /** Where the content of files is, and how much of it there may be; absent: there are no files. */
  readonly files?: Files | undefined;
  /** Overrides the table of limits. */
  readonly quotas?: Partial<Record<Quota, number>>;
  /** Hosts, addresses and CIDRs that callbacks may reach although they are private. */
  readonly callbackAllow?: readonly string[];
  /** The forward proxy for calls to public addresses. */
  readonly egressProxy?: ForwardProxy | undefined;
  /** The mail server for notifications; absent: there are none by mail. */
  readonly mail?: MailSettings | undefined;
  /** The other gateways on this port, if a supervisor started it. */
  readonly siblings?: Siblings;
  /** Where it writes its log. */
  readonly log: Log;
  /** Called when the connection to Redis is lost. */
  readonly onRedisLost?: () => void;
}

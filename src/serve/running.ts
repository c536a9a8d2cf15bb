/**
 * The gateways that `serve` runs: one in this process (one-gateway.ts), or several in child processes
 * (several-gateways.ts).
 */
import { resolve } from "node:path";
import type { Config } from "../config.ts";
import type { GatewayOptions } from "../gateway/options.ts";
import type { RedisTarget } from "../redis/connect.ts";
import type { Log } from "../telemetry/log.ts";
import { fileStoreOf } from "./file-store.ts";

export interface Running {
  readonly port: number;
  /** Rejects with a {@link ServeError} when nothing runs any more and a restart would fail. */
  readonly ended: Promise<never>;
  readonly signIn: () => Promise<string | undefined>;
  /** Replaces the gateways without failing a request. */
  readonly roll: () => Promise<void>;
  /** Stops cleanly within this time. `busy`: the number of connections in use. */
  readonly close: (graceMs: number) => { readonly busy: Promise<number>; readonly closed: Promise<void> };
  /** Ends everything at once, without a clean stop. */
  readonly kill: () => void;
}

export interface Parts {
  readonly config: Config;
  readonly target: RedisTarget;
  readonly operatorToken: string;
  readonly onRedisLost: () => void;
  readonly log: Log;
}

function filesOf({ config, target, log }: Pick<Parts, "config" | "target" | "log">): GatewayOptions["files"] {
  const store = fileStoreOf(config, target, log);
  if (store === null) return undefined;
  const { ERRAND_MAX_FILE_BYTES: maxBytes, ERRAND_PRINCIPAL_FILE_BYTES: principalBytes } = config;
  return { store, maxBytes, principalBytes };
}

function mailOf(config: Config): GatewayOptions["mail"] {
  const { ERRAND_SMTP_URL: url, ERRAND_MAIL_FROM: from, ERRAND_MAIL_TO: to } = config;
  if (url === undefined) return undefined;
  return { url, from: from ?? `Errand <errand@${new URL(url).hostname}>`, to };
}

export function optionsOf({ config, target, operatorToken, onRedisLost, log }: Parts): GatewayOptions {
  return {
    redis: target,
    dataDir: target.socket === undefined ? undefined : resolve(config.ERRAND_DATA_DIR ?? ".errand"),
    host: config.ERRAND_HOST,
    port: config.ERRAND_PORT,
    keepAliveMs: config.ERRAND_KEEP_ALIVE_SECONDS * 1000,
    operatorToken,
    shards: config.ERRAND_SHARDS,
    retentionMs: config.ERRAND_RETENTION_SECONDS * 1000,
    waitReplicas: config.ERRAND_REDIS_WAIT_REPLICAS,
    maxBodyBytes: config.ERRAND_MAX_BODY_BYTES,
    files: filesOf({ config, target, log }),
    delegatorPercent: config.ERRAND_DELEGATOR_PERCENT,
    callbackAllow: config.ERRAND_CALLBACK_ALLOW,
    egressProxy: config.ERRAND_EGRESS_PROXY,
    mail: mailOf(config),
    publicUrl: config.ERRAND_PUBLIC_URL,
    cardSigningKey: config.ERRAND_CARD_SIGNING_KEY,
    // Browsers behind a proxy send the public URL as the origin.
    allowedOrigins: config.ERRAND_ALLOWED_ORIGINS.concat(config.ERRAND_PUBLIC_URL ?? []),
    trustedProxies: config.ERRAND_TRUSTED_PROXIES,
    log,
    onRedisLost,
  };
}

/**
 * Starts one gateway: the engine on a given Redis, and the HTTP server in front of it. serve/serve.ts chooses the Redis.
 */
import { setMaxListeners } from "node:events";
import { CardSigner } from "../doors/a2a/cards/signing.ts";
import { createHttpApp, type HttpApp } from "../doors/http/app.ts";
import { type CloseOptions, type Listener, listen } from "../doors/http/listener.ts";
import { HANDOVER } from "../doors/http/shutdown-hooks.ts";
import { TrustedProxies } from "../doors/http/trusted-proxies.ts";
import type { Broker } from "../engine/broker.ts";
import type { FileUpkeep } from "../engine/files/upkeep.ts";
import type { Sweep } from "../engine/upkeep/sweep.ts";
import { Connections } from "../redis/connections.ts";
import { withDiskReason } from "../redis/disk-space.ts";
import { checkLayout } from "../redis/layout.ts";
import { randomId, Shards } from "../redis/shards.ts";
import { LIMITS } from "../schema/limits.ts";
import type { GatewayOptions } from "./options.ts";
import type { Seams } from "./seams.ts";
import { Services } from "./services.ts";
import { urlOf } from "./url-of.ts";
import { wireEngine } from "./wiring.ts";

export type { GatewayOptions } from "./options.ts";
export type { Seams } from "./seams.ts";

export interface Gateway {
  readonly port: number;
  readonly broker: Broker;
  readonly sweep: Sweep;
  readonly fileUpkeep: FileUpkeep;
  /** The number of connections with unread bytes. */
  readonly unread: () => number;
  /** The bytes of request headers in memory that are counted: of one principal or address, or of all. */
  readonly headerBytes: (owner?: string) => number;
  /** The number of connections with a request, a poll or a stream in progress. */
  readonly busy: () => number;
  /** Bytes of large request bodies in progress: of one principal, or of all. */
  readonly requestBytes: (principal?: string) => number;
  /** Bytes that are counted as unread: of one principal or address, or of all. */
  readonly unreadBytes: (owner?: string) => number;
  /** The number of a principal's requests that run, and of those that wait for their turn. */
  readonly inProgress: HttpApp["inProgress"];
  /**
   * Stops within ten seconds: answers polls, closes streams, finishes what is in flight. With `handover` it may take half a
   * minute, and refuses nothing meanwhile.
   */
  readonly close: (options?: CloseOptions) => Promise<void>;
}

/** How long requests in progress may take after a stop. */
const HTTP_GRACE_MS = 5_000;
/**
 * The same while other gateways keep serving. Nobody waits for this one to end, so it also serves requests that are
 * still arriving.
 */
const HANDOVER_GRACE_MS = 1_000 * (LIMITS.request_seconds.value + 5);

const UNTRUSTED =
  "ignored a forwarded address: the sender is no trusted proxy; if it is your proxy, name it in ERRAND_TRUSTED_PROXIES (docs/operations.md)";

export async function startGateway(options: GatewayOptions, seams: Partial<Seams> = {}): Promise<Gateway> {
  const gateway = randomId(10);
  const connections = new Connections(options.redis, gateway, options.log);
  try {
    return await start(options, seams, gateway, connections);
  } catch (error) {
    connections.close();
    throw error;
  }
}

async function start(
  options: GatewayOptions,
  seams: Partial<Seams>,
  gateway: string,
  connections: Connections,
): Promise<Gateway> {
  const { log, host } = options;
  let { port } = options;
  const redis = connections.open("commands");
  if (options.onRedisLost) redis.on("close", options.onRedisLost);
  const layout = await checkLayout(redis, options.shards);
  const shards = new Shards(options.shards, layout.history);
  const publicUrl = () => options.publicUrl ?? urlOf(host, port);
  const engine = wireEngine(options, seams, { gateway, connections, redis, shards, layout, publicUrl });
  const { broker, sweep, fileUpkeep } = engine;
  const stopping = new AbortController();
  // Every parked poll and every stream listens to it.
  setMaxListeners(0, stopping.signal);
  const app = createHttpApp({
    broker,
    host,
    maxBodyBytes: options.maxBodyBytes,
    allowedOrigins: options.allowedOrigins,
    signer: options.cardSigningKey ? new CardSigner(options.cardSigningKey) : null,
    stopping: stopping.signal,
    readiness: async () => withDiskReason(await connections.readiness(), options.dataDir ?? null),
    mcpExtension: seams.mcpExtension,
    mcpPingMs: seams.mcpPingMs,
  });
  let listener: Listener | undefined;
  let closeOptions: CloseOptions = {};
  const services = new Services(
    [
      ...engine.services,
      {
        name: "HTTP server",
        start: async () => {
          const now = () => performance.now() + broker.clock.offset_ms;
          const { keepAliveMs } = options;
          const { arrival } = seams;
          const proxies = new TrustedProxies(options.trustedProxies);
          const onUntrusted = (peer: string) => options.log.warn({ peer }, UNTRUSTED);
          listener = await listen(app, { host, port, now, arrival, keepAliveMs, proxies, onUntrusted });
          port = listener.port;
        },
        stop: () => {
          const { handover = false } = closeOptions;
          stopping.abort(handover ? HANDOVER : undefined);
          const graceMs = handover ? HANDOVER_GRACE_MS : HTTP_GRACE_MS;
          // At the same time, push agents return their leases.
          return Promise.all([listener?.close(graceMs, closeOptions), engine.stopPushAgents()]);
        },
      },
    ],
    (error, name) =>
      log.warn({ err: error instanceof Error ? error.message : "unknown", name }, "service not stopped"),
  );
  await services.start();
  return {
    port,
    unread: () => listener?.unread() ?? 0,
    headerBytes: (owner?: string) => listener?.headerBytes(owner) ?? 0,
    busy: () => listener?.busy() ?? 0,
    requestBytes: app.requestBytes,
    unreadBytes: app.unreadBytes,
    inProgress: app.inProgress,
    broker,
    sweep,
    fileUpkeep,
    close: (options = {}) => {
      closeOptions = options;
      return services.stop();
    },
  };
}

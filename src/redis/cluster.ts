/**
 * Redis Cluster: a client that sends each command to the master of its keys, and connections that follow a key's master
 * or stay with any node. ioredis finds the nodes and handles MOVED, ASK and TRYAGAIN. A command that ioredis would
 * resend although it may have run fails at once instead, as with one server: the caller decides. Limit: the fields of
 * ioredis that are used here are not all documented, so it is pinned.
 */
import { Cluster, Redis, Command as RedisCommand, type RedisOptions } from "ioredis";
import type { Address } from "./address.ts";
import { checkRegularly, limitSilence, UnsentCommands, whileOpen } from "./silence.ts";
import { type ClusterTarget, nameOf } from "./target.ts";

/** Finds a new master that no refused command reported, for example because the old one is only silent. */
const REFRESH_MS = 5_000;
/** While keys of one slot are on two nodes, a command for several of them is tried again, for a second. */
const TRY_AGAIN_MS = 100;
const MAX_TRIES = 11;

type Options = Omit<RedisOptions, "replyMapping">;

/** Connections to nodes of a Cluster that were opened by {@link follow}. */
const followers = new WeakSet<Redis>();

/** Whether the connection leads to a Cluster, where a slot may move while a script runs. */
export const isInCluster = (redis: Redis | Cluster): boolean =>
  redis instanceof Cluster || followers.has(redis);

class TimedCluster extends Cluster {
  readonly #unsent = new UnsentCommands();
  #hasEnded = false;

  constructor(target: ClusterTarget, options: Options, silenceMs: number) {
    const { nodes, tls, username, password } = target;
    const { retryStrategy, ...redisOptions } = options;
    super([...nodes], {
      redisOptions: {
        ...redisOptions,
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(tls && { tls: {} }),
      },
      clusterRetryStrategy: (round) => retryStrategy?.(round) ?? null,
      // Fail at once, because the command may have run.
      retryDelayOnFailover: 0,
      // Fail at once, because a fail-over takes longer than a caller waits.
      retryDelayOnClusterDown: 0,
      retryDelayOnTryAgain: TRY_AGAIN_MS,
      maxRedirections: MAX_TRIES,
      slotsRefreshInterval: REFRESH_MS,
      // Certificates name hosts, not addresses.
      dnsLookup: (host, found) => found(null, host),
    });
    this.on("+node", (node: Redis) => limitSilence(node, silenceMs));
    this.on("node error", (error: Error) => {
      if (this.listenerCount("error") > 0) this.emit("error", error);
    });
    this.once("end", () => {
      this.#hasEnded = true;
    });
    checkRegularly(this, silenceMs, () => this.#unsent.tick());
  }

  override sendCommand(...args: Parameters<Cluster["sendCommand"]>): unknown {
    if (this.#hasEnded) {
      // The driver would keep the command: the ends of its nodes make it believe that it is about to reconnect.
      args[0].reject(new Error("Connection is closed."));
      return args[0].promise;
    }
    const promise = super.sendCommand(...args);
    // Otherwise it would wait until a node answers.
    if (this.status !== "ready") this.#unsent.add(args[0]);
    return promise;
  }
}

export const connectCluster = (target: ClusterTarget, options: Options, silenceMs: number): Cluster =>
  new TimedCluster(target, options, silenceMs);

export const slotOf = (key: string): number => new RedisCommand("get", [key]).getSlot();

function toAddress(name: string): Address {
  const colon = name.lastIndexOf(":");
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) };
}

/** The master of the slot, as far as the client knows. */
export function masterOf(cluster: Cluster, slot: number): Address | undefined {
  const name = cluster.slots[slot]?.[0];
  return name === undefined ? undefined : toAddress(name);
}

/** Names of the nodes that serve slots, or only of the masters. */
function namesOfNodes(cluster: Cluster, role: "all" | "master" = "all"): ReadonlySet<string> {
  const names = new Set<string>();
  for (const nodes of cluster.slots) {
    for (const name of nodes ?? []) {
      names.add(name);
      if (role === "master") break;
    }
  }
  return names;
}

/** The maximum number of names that are tried to find a key at every master. A master with few slots may be missed. */
const MAX_NAMES = 1_000;

/** For each master, one of the keys `keyOf(0)`, `keyOf(1)`… that it serves. */
export function keysAtEachMaster(cluster: Cluster, keyOf: (n: number) => string): string[] {
  const missing = new Set(namesOfNodes(cluster, "master"));
  const found: string[] = [];
  for (let n = 0; n < MAX_NAMES && missing.size > 0; n += 1) {
    const key = keyOf(n);
    const name = cluster.slots[slotOf(key)]?.[0];
    if (name !== undefined && missing.delete(name)) found.push(key);
  }
  return found;
}

/** The node, or nodes, to which a connection belongs. */
export interface Place {
  readonly isRight: (now: Address) => boolean;
  /** The node to connect to; undefined while it is not known. `now`: the previous one, which failed or is wrong. */
  readonly next: (now: Address | undefined) => Address | undefined;
}

/** At the master that serves a key. */
export function atMasterOf(cluster: Cluster, key: string): Place {
  const slot = slotOf(key);
  const next = () => masterOf(cluster, slot);
  return {
    next,
    isRight: (now) => {
      const master = next();
      return master === undefined || nameOf(master) === nameOf(now);
    },
  };
}

/** At any node that serves slots. */
export const atAnyNode = (cluster: Cluster): Place => ({
  isRight: (now) => namesOfNodes(cluster).has(nameOf(now)),
  next: (now) => {
    const names = [...namesOfNodes(cluster)];
    const others = names.filter((name) => now === undefined || name !== nameOf(now));
    const from = others.length > 0 ? others : names;
    const name = from[Math.floor(Math.random() * from.length)];
    return name === undefined ? undefined : toAddress(name);
  },
});

/** How often a connection's node is checked. */
const CHECK_MS = 1_000;

/** A connection to one node, which moves when that node is lost or is no longer the right one. */
export function follow(
  cluster: Cluster,
  place: Place,
  options: Options,
  silenceMs: number,
  /** Whether an error reply says that the connection belongs elsewhere. */
  isElsewhere: (error: Error) => boolean,
): Redis {
  const { username, password, tls } = cluster.options.redisOptions ?? {};
  let now = place.next(undefined);
  const redis: Redis = new Redis({
    ...options,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
    ...now,
    retryStrategy: (round) => {
      cluster.refreshSlotsCache();
      now = place.next(now) ?? now;
      // The driver reads them when it connects again.
      Object.assign(redis.options, now);
      return options.retryStrategy?.(round) ?? null;
    },
    reconnectOnError: (error) => {
      if (isElsewhere(error)) cluster.refreshSlotsCache(() => connectAgain(redis));
      return false;
    },
  });
  followers.add(redis);
  limitSilence(redis, silenceMs);
  whileOpen(redis, CHECK_MS, () => {
    if (now && !place.isRight(now)) connectAgain(redis);
  });
  return redis;
}

/** During an attempt to connect, `disconnect` would end the attempts. */
export function connectAgain(redis: Redis): void {
  if (redis.status === "ready") redis.disconnect(true);
}

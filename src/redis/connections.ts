/**
 * A gateway's connections to Redis, and their health: logs the start and the end of each outage, reconnects when the
 * server is no longer the master, and checks readiness by a write to every master. Limit: health is only a hint, so
 * commands are always sent.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import type { Log } from "../telemetry/log.ts";
import { atAnyNode, atMasterOf, connectAgain, follow, keysAtEachMaster, type Place } from "./cluster.ts";
import {
  type CommandRole,
  connect,
  connectServer,
  errorText,
  optionsOf,
  pingRegularly,
  placeOf,
  type Redis,
  type RedisTarget,
  type ServerConnection,
  silenceOf,
} from "./connect.ts";
import { classify, isMovingSlot } from "./errors.ts";
import { keys } from "./keys.ts";
import { NO_REPLICAS, Replicas } from "./replicas.ts";
import { Script } from "./script.ts";

/** KEYS: a mark · ARGV: its ttl in ms · Allowed at full memory: a broker whose Redis is full is ready, because finishing work frees memory. */
const writeScript = new Script(`#!lua flags=allow-oom
redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])
return 1`);

const MARK_MS = 10_000;
const RECHECK_MS = 500;
/** A move of a slot is logged once in this time. */
const MOVE_LOG_MS = 60_000;
/** Readiness needs no token, so one write answers all requests for this long. */
const WRITTEN_MS = 250;
/** A write that has not ended by then, because a master delays writes, says nothing about the others any more. */
const SHARED_MS = 2_000;
/** How long readiness waits for the masters that it does not need, so that it can report one that is away. */
const OTHERS_MS = 100;

/** Redirects: the driver resends the command to the node that they name. */
const REDIRECT = /^(?:MOVED|ASK) /;

/** The driver gave up the command; the error of the connection has the reason. */
const LOST = /Connection is closed|Stream isn't writeable|max retries/i;

/** A connection for blocking reads, and the keys that it may read. */
export interface Reader {
  readonly redis: ServerConnection;
  readonly keys: readonly string[];
}

/** A write to every master. */
interface Write {
  readonly startedAt: number;
  readonly all: Promise<void>;
  /** Resolves earlier: when the master of the keys outside the shards and more than half of all masters accepted it. */
  readonly enough: Promise<void>;
}

/** `degraded`: most requests are served; some masters of the Cluster accept no writes. */
export type Readiness =
  | { readonly status: "ready" }
  | { readonly status: "degraded" | "not_ready"; readonly reason: string };

export class Connections {
  readonly #target: RedisTarget;
  readonly #gateway: string;
  readonly #log: Log;
  readonly #open: Redis[] = [];
  #commands: Redis | null = null;
  #replicas: Replicas = NO_REPLICAS;
  #lastError: Error | null = null;
  #wasReady = false;
  #awaySince: number | null = null;
  /** Whether the loss is logged already. */
  #isAwayLogged = false;
  #writing: Write | null = null;
  /** Why a master did not accept the last write that all masters had to accept; null if all did. */
  #refusal: Error | null = null;
  #timer: NodeJS.Timeout | null = null;
  #moveLoggedAt = Number.NEGATIVE_INFINITY;
  #reconnectedAt = Number.NEGATIVE_INFINITY;
  #wroteAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(target: RedisTarget, gateway: string, log: Log) {
    this.#target = target;
    this.#gateway = gateway;
    this.#log = log;
  }

  /** Open the one for commands first: the others find their nodes through it. */
  open(role: CommandRole): Redis {
    const redis = this.#keep(
      connect(this.#target, role, (error) => this.#onRefusal(error)),
      role,
    );
    if (role === "commands") this.#watch(redis);
    return redis;
  }

  /** For writes that wait until this many replicas confirm; 0: none wait. From now on, readiness requires them, too. */
  openReplicas(count: number): Replicas {
    if (count > 0) this.#replicas = new Replicas(this.open("confirm"), count);
    return this.#replicas;
  }

  /** For pub/sub. In a Cluster, every node passes on what is published at another one. */
  openSubscriber(): ServerConnection {
    return this.#openServer("subscriber", atAnyNode);
  }

  /** For blocking reads: one for all keys, or in a Cluster one for each, because a read does not span slots. */
  openReaders(keys: readonly string[]): Reader[] {
    if (!(this.#commands instanceof Cluster)) {
      return [{ redis: this.#openServer("blocking", atAnyNode), keys }];
    }
    return keys.map((key) => ({
      redis: this.#openServer("blocking", (cluster) => atMasterOf(cluster, key)),
      keys: [key],
    }));
  }

  /** For the wait for a job in the queue with this key. */
  openJobs(key: string): ServerConnection {
    return this.#openServer("jobs", (cluster) => atMasterOf(cluster, key));
  }

  #openServer(
    role: "blocking" | "jobs" | "subscriber",
    placeIn: (cluster: Cluster) => Place,
  ): ServerConnection {
    const cluster = this.#commands;
    if (!(cluster instanceof Cluster)) {
      return this.#keep(
        connectServer(this.#target, role, (error) => this.#onRefusal(error)),
        role,
      );
    }
    const redis = follow(
      cluster,
      placeIn(cluster),
      optionsOf(role),
      silenceOf(role),
      (error) => classify(error)?.isElsewhere === true,
    );
    if (role === "subscriber") pingRegularly(redis, () => [redis]);
    return this.#keep(redis, role);
  }

  #keep<T extends Redis>(redis: T, role: string): T {
    redis.on("error", (error: Error) => {
      this.#lastError = error;
      this.#log.debug({ role, err: error.message }, "redis connection error");
      if (this.#awaySince !== null) this.#logAway(error);
    });
    this.#open.push(redis);
    return redis;
  }

  /** Records a failed command. Returns whether the cause is that Redis is unavailable. */
  failed(error: unknown): boolean {
    if (classify(error)?.code !== "redis_unavailable") return false;
    if (isMovingSlot(error)) this.#logMove();
    else if (error instanceof Error) this.#away(LOST.test(error.message) ? this.#lastError : error);
    return true;
  }

  /** Resolves when every master accepts a write; rejects with the reason. */
  writable(): Promise<void> {
    return this.#startWrite().all;
  }

  /**
   * Whether a load balancer should send requests here. A Cluster that lost one master is degraded at every gateway, so it
   * must not count as not ready: then nobody would serve the other shards.
   */
  async readiness(): Promise<Readiness> {
    const isFresh = performance.now() - this.#wroteAt < WRITTEN_MS;
    if (isFresh && this.#awaySince === null && this.#commands?.status === "ready") return { status: "ready" };
    const write = this.#startWrite();
    try {
      await write.enough;
    } catch (error) {
      return { status: "not_ready", reason: refusalText(error) };
    }
    const others = write.all.then(
      () => null,
      (error: unknown) => error,
    );
    const refusal = await Promise.race([others, sleep(OTHERS_MS, this.#refusal, { ref: false })]);
    return refusal === null
      ? { status: "ready" }
      : { status: "degraded", reason: `a master of the Cluster: ${refusalText(refusal)}` };
  }

  close(): void {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
    for (const redis of this.#open) redis.disconnect();
  }

  #watch(commands: Redis): void {
    this.#commands = commands;
    commands.on("close", () => {
      // Without an error, the attempt to connect again finds the reason, such as ECONNREFUSED.
      if (this.#wasReady) this.#away(this.#lastError);
    });
    commands.on("ready", () => {
      this.#wasReady = true;
      this.#lastError = null;
      if (this.#awaySince !== null) this.#checkBack();
    });
  }

  /** Concurrent callers share one write. */
  #startWrite(): Write {
    const startedAt = performance.now();
    if (this.#writing && startedAt - this.#writing.startedAt < SHARED_MS) return this.#writing;
    const write = { startedAt, ...this.#write() };
    const settle = (refusal: Error | null) => {
      if (this.#writing === write) this.#writing = null;
      this.#refusal = refusal;
      if (refusal === null) this.#wroteAt = performance.now();
    };
    write.all.then(
      () => settle(null),
      (error: unknown) => settle(error instanceof Error ? error : new Error("unknown")),
    );
    write.enough.catch(() => {});
    this.#writing = write;
    return write;
  }

  #write(): Pick<Write, "all" | "enough"> {
    const commands = this.#commands;
    if (commands?.status !== "ready") {
      const why = this.#lastError
        ? errorText(this.#lastError, placeOf(this.#target))
        : `the connection is ${commands?.status ?? "not open"}`;
      const refused = Promise.reject(new Error(why));
      return { all: refused, enough: refused };
    }
    const common = keys.writable(this.#gateway);
    const others =
      commands instanceof Cluster
        ? keysAtEachMaster(commands, (n) => (n === 0 ? common : keys.writableAt(this.#gateway, n)))
        : [];
    // The common key even if no master has its slot: then its write fails.
    const writes = [...new Set([common, ...others])].map(async (key) => {
      await writeScript.run(commands, [key], [MARK_MS]);
      await this.#replicas.confirm(key);
    });
    const most = fulfilled(writes, Math.floor(writes.length / 2) + 1);
    return {
      all: Promise.allSettled(writes)
        .then(() => Promise.all(writes))
        .then(() => {}),
      enough: Promise.all([writes[0], most]).then(() => {}),
    };
  }

  #away(error: Error | null): void {
    if (this.#closed || this.#awaySince !== null) return;
    this.#awaySince = performance.now();
    this.#isAwayLogged = false;
    if (error !== null) this.#logAway(error);
    this.#checkLater();
  }

  /** It is not an outage, because the other shards work. */
  #logMove(): void {
    const now = performance.now();
    if (now - this.#moveLoggedAt < MOVE_LOG_MS) return;
    this.#moveLoggedAt = now;
    this.#log.warn("a slot of the Cluster is moving; requests for its shard are refused until it has moved");
  }

  #logAway(error: Error): void {
    if (this.#isAwayLogged) return;
    this.#isAwayLogged = true;
    const redis = placeOf(this.#target);
    this.#log.warn({ redis, err: errorText(error, redis) }, "Redis is away");
  }

  #checkLater(): void {
    if (this.#timer) clearTimeout(this.#timer);
    if (!this.#closed) this.#timer = setTimeout(() => this.#checkBack(), RECHECK_MS).unref();
  }

  #checkBack(): void {
    this.writable().then(
      () => {
        if (this.#awaySince === null) return;
        this.#logAway(new Error("the connection was closed"));
        const away_ms = Math.round(performance.now() - this.#awaySince);
        this.#awaySince = null;
        this.#log.info({ redis: placeOf(this.#target), away_ms }, "Redis is back");
      },
      () => this.#checkLater(),
    );
  }

  /**
   * Some errors call for a new connection: the address may lead to another server by now. All connections reconnect,
   * because a blocking read or a subscription would never notice that its server was replaced. In a Cluster the driver
   * itself finds the server that is responsible now.
   */
  #onRefusal(error: Error): false {
    const refusal = classify(error);
    const every = refusal?.reconnectMs ?? null;
    if (refusal?.isElsewhere && this.#commands instanceof Cluster) {
      if (!REDIRECT.test(error.message)) this.#commands.refreshSlotsCache();
      return false;
    }
    const now = performance.now();
    if (every === null || now - this.#reconnectedAt < every) return false;
    this.#reconnectedAt = now;
    this.#lastError = error;
    this.#log.debug({ err: error.message }, "Redis refuses; connecting again");
    // Later, because the driver is still handling this reply.
    setImmediate(() => {
      for (const redis of this.#open.flatMap(serversOf)) connectAgain(redis);
    });
    return false;
  }
}

/** Redis' own errors begin with a code, such as READONLY; those of a connection do not. */
const REPLY_CODE = /^[A-Z]{3,} /;

function refusalText(error: unknown): string {
  const text = error instanceof Error ? error.message : "unknown";
  return `Redis ${REPLY_CODE.test(text) ? "refuses writes" : "does not respond"}: ${text}`;
}

/** Resolves when `count` of the promises have; rejects with the last reason when so many cannot any more. */
function fulfilled(promises: readonly Promise<unknown>[], count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let [missing, spare] = [count, promises.length - count];
    for (const promise of promises) {
      promise.then(
        () => {
          missing -= 1;
          if (missing === 0) resolve();
        },
        (error: unknown) => {
          spare -= 1;
          if (spare < 0) reject(error);
        },
      );
    }
  });
}

/** The next command reconnects a closed node of a Cluster. */
const serversOf = (redis: Redis): readonly ServerConnection[] =>
  redis instanceof Cluster ? redis.nodes() : [redis];

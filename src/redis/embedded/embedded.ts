/**
 * The embedded Redis: a child process on a unix socket that dies with its parent, one per data directory. A second
 * gateway on the directory adopts it. Limit: POSIX only; the death of an adopted Redis is noticed at the next
 * `ensure()`.
 */
import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { DISK_LOW_BYTES } from "../../schema/status.ts";
import { doublingMs } from "../../util/timing.ts";
import { readDiskSpace } from "../disk-space.ts";
import { cutPartialCommand } from "./append-only-file.ts";
import type { RedisServerBinary } from "./find-server.ts";
import { type EmbeddedHome, prepareHome } from "./home.ts";
import { type Exit, LOCK_HELD, type LockedProcess, withLock } from "./locked-process.ts";
import { lastWordsOf, logSince, readLoad } from "./log.ts";
import { configOf, launch, probe, terminate } from "./server.ts";

export type EmbeddedOptions = {
  readonly dataDir: string;
  readonly fsync: "always" | "everysec";
  /** Called only when a server must be started. */
  readonly binary: () => Promise<RedisServerBinary>;
  readonly log: (level: "info" | "warn" | "error", message: string, fields?: Record<string, unknown>) => void;
  /** XDG_RUNTIME_DIR: holds the socket when its path in the data directory would be too long. */
  readonly runtimeDir?: string | undefined;
};

export type EmbeddedRedis = {
  readonly socket: string;
  readonly password: string;
  /** Whether another process owns the Redis in use; it may change with every `ensure()`. */
  readonly adopted: boolean;
  pid(): number | undefined;
  /** Resolves when Redis answers; starts or adopts one if necessary. */
  ensure(): Promise<void>;
  /** Stops Redis if this process owns it. */
  stop(): Promise<void>;
};

const LOCK_TIMEOUT_MS = 10_000;
const SILENCE_MS = 30_000;
/** If Redis ran for less than this, the pause before the next start grows. */
const STABLE_MS = 10_000;

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedRedis> {
  const supervisor = new Supervisor(options, await prepareHome(options.dataDir, options.runtimeDir));
  await supervisor.ensure();
  return supervisor;
}

class Supervisor implements EmbeddedRedis {
  readonly #options: EmbeddedOptions;
  readonly #home: EmbeddedHome;
  readonly #stopping = new AbortController();
  #child: LockedProcess | undefined;
  #pid: number | undefined;
  #attempt: Promise<void> | undefined;
  #failures = 0;
  /** Size of Redis' log when it was last started. */
  #logFrom = 0;
  #lastFailure = "";

  constructor(options: EmbeddedOptions, home: EmbeddedHome) {
    this.#options = options;
    this.#home = home;
  }

  get socket(): string {
    return this.#home.socket;
  }

  get password(): string {
    return this.#home.password;
  }

  get adopted(): boolean {
    return this.#child === undefined;
  }

  pid(): number | undefined {
    return this.#pid;
  }

  ensure(): Promise<void> {
    this.#attempt ??= this.#try().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the embedded Redis was stopped"));
    await this.#attempt?.catch(() => undefined);
    if (this.#child !== undefined) await terminate(this.#child);
  }

  async #try(): Promise<void> {
    const { signal } = this.#stopping;
    signal.throwIfAborted();
    try {
      if (await this.#waitUntilReady(this.#child)) return;
      if (this.#failures > 0) {
        await sleep(doublingMs(this.#failures - 1, 100, 2_000), undefined, { signal });
      }
      await this.#startServer();
    } catch (error) {
      this.#failures += 1;
      throw error;
    }
  }

  async #startServer(): Promise<void> {
    const { log, fsync } = this.#options;
    const { data, lock } = this.#home;
    const deadline = Date.now() + LOCK_TIMEOUT_MS;
    for (let round = 0; ; round += 1) {
      this.#logFrom = await stat(this.#home.logfile).then(
        ({ size }) => size,
        () => 0,
      );
      const binary = await this.#options.binary();
      // If another process holds the lock, nothing is cut, and the launch below finds the lock held.
      await withLock(lock, binary.env, () => cutPartialCommand(data));
      const child = await launch(binary, configOf(this.#home, fsync), lock);
      try {
        if (await this.#waitUntilReady(child)) return;
      } catch (error) {
        await terminate(child);
        throw error;
      }
      if (Date.now() > deadline) {
        throw new Error(
          `Another process holds ${lock}, but no Redis answers at ${this.#home.socket}; ` +
            "end that process or choose another ERRAND_DATA_DIR.",
        );
      }
      if (round === 0) log("info", "waiting for the Redis that another process is starting or stopping");
      await sleep(200, undefined, { signal: this.#stopping.signal });
      if (await this.#waitUntilReady(undefined)) return;
    }
  }

  /** Waits until Redis answers; false if none is running, or if another process has the lock. */
  async #waitUntilReady(child: LockedProcess | undefined): Promise<boolean> {
    const { log } = this.#options;
    let answeredAt = Date.now();
    let loggedAt = Date.now();
    for (;;) {
      const exit = child?.exit();
      const server = await probe(this.#home.socket, this.#home.password);
      if (server.state === "denied") {
        throw new Error(`The Redis at ${this.#home.socket} refuses this data directory's password.`);
      }
      // As long as our child does not have the lock, the Redis of another process may answer.
      if (server.state === "ready" && (child === undefined || server.pid === child.pid)) {
        this.#use(child, server.pid);
        return true;
      }
      if (child === undefined && server.state === "absent") return false;
      if (exit?.code === LOCK_HELD) return false;
      if (exit !== undefined) throw new Error(await this.#exitReason(exit));
      const loading = server.state === "loading";
      if (loading) answeredAt = Date.now();
      if (loading && Date.now() - loggedAt > 3_000) {
        loggedAt = Date.now();
        log("info", "Redis is loading its data", { percent: server.percent });
      }
      if (Date.now() - answeredAt > SILENCE_MS) {
        throw new Error(`The Redis at ${this.#home.socket} does not answer; see ${this.#home.logfile}.`);
      }
      await sleep(loading ? 100 : 10, undefined, { signal: this.#stopping.signal });
    }
  }

  #use(child: LockedProcess | undefined, pid: number | undefined): void {
    const { log } = this.#options;
    const known = pid === this.#pid && child === this.#child;
    this.#pid = pid;
    this.#child = child;
    if (known) return;
    if (child === undefined) {
      log("info", "adopted the Redis that already runs on this data directory", { pid });
      return;
    }
    this.#lastFailure = "";
    log("info", "Redis is ready", { pid, socket: this.socket });
    void this.#reportLoad();
    const since = Date.now();
    void child.exited.then(async ({ code, signal }) => {
      this.#child = undefined;
      this.#pid = undefined;
      if (this.#stopping.signal.aborted) return;
      this.#failures = Date.now() - since < STABLE_MS ? this.#failures + 1 : 0;
      const { logfile, data } = this.#home;
      const [text, disk] = await Promise.all([
        logSince(logfile, this.#logFrom).catch(() => ""),
        readDiskSpace(data),
      ]);
      if (this.#stopping.signal.aborted) return;
      const lastWords = lastWordsOf(text, this.password);
      const isLow = disk !== null && disk.free_bytes < DISK_LOW_BYTES;
      log("warn", "Redis ended unexpectedly and is started again", {
        ...{ pid, code, signal },
        ...(lastWords !== "" && { redis_log: lastWords }),
        // On a full disk, Redis cannot write its last words either.
        ...(isLow && { disk_free_bytes: disk.free_bytes }),
      });
      void this.#restart();
    });
  }

  async #restart(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        return await this.ensure();
      } catch (error) {
        const reason = String(error);
        // Logged once, because restarts may go on for hours.
        if (!this.#stopping.signal.aborted && reason !== this.#lastFailure) {
          this.#options.log("error", "Redis could not be started again", { reason });
        }
        this.#lastFailure = reason;
      }
    }
  }

  async #reportLoad(): Promise<void> {
    const { truncated } = readLoad(await logSince(this.#home.logfile, this.#logFrom).catch(() => ""));
    if (truncated === null) return;
    this.#options.log(
      "warn",
      "the append-only file ended in the middle of a write, which was dropped; with fsync always it was not acknowledged",
      truncated,
    );
  }

  async #exitReason(exit: Exit): Promise<string> {
    const { logfile, data } = this.#home;
    const written = await logSince(logfile, this.#logFrom).catch(() => "");
    const how = exit.code === null ? (exit.signal ?? "could not be run") : `exit code ${exit.code}`;
    const tail = written.trim().split("\n").slice(-4).join("\n");
    const last = (exit.stderr.trim() || tail).replaceAll(this.password, "…");
    const { damaged } = readLoad(written);
    const hint =
      damaged === null
        ? ""
        : `\nThe append-only file is damaged (${damaged}). Copy ${data}, then delete it and restore a backup, or run ` +
          "'redis-check-aof --fix' on the manifest in its appendonlydir, which drops everything after the damage.";
    return `Redis ended while starting (${how}); see ${logfile}.\n${last}${hint}`;
  }
}

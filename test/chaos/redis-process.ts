/** A Redis with an append-only file that can be killed, suspended and restarted on its data, on a unix socket. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { cutPartialCommand } from "../../src/redis/embedded/append-only-file.ts";
import type { LockedProcess } from "../../src/redis/embedded/locked-process.ts";
import { launch, probe } from "../../src/redis/embedded/server.ts";
import { testRedisBinary } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { type ChaosRedis, type RedisNode, scanServer } from "./chaos-redis.ts";

const TRIES = 3;

export class RedisProcess implements ChaosRedis, RedisNode {
  readonly name = "redis";
  readonly nodes = [this];
  readonly socket: string;
  readonly client: Redis;
  readonly #directory: string;
  readonly #config: string;
  #server: LockedProcess | undefined;
  #binary: ReturnType<typeof testRedisBinary> | undefined;

  constructor(directory: string, fsync: "always" | "everysec") {
    this.#directory = directory;
    this.socket = join(directory, "redis.sock");
    mkdirSync(join(directory, "redis"), { recursive: true });
    this.#config = [
      `dir ${JSON.stringify(join(directory, "redis"))}`,
      `logfile ${JSON.stringify(join(directory, "redis.log"))}`,
      "appendonly yes",
      `appendfsync ${fsync}`,
      'save ""',
      "maxmemory 1gb",
      "maxmemory-policy noeviction",
      `unixsocket ${JSON.stringify(this.socket)}`,
      "",
    ].join("\n");
    this.client = new Redis({ path: this.socket, lazyConnect: true, maxRetriesPerRequest: null });
    this.client.on("error", () => undefined);
  }

  get url(): string {
    return `unix://${this.socket}`;
  }

  scan(pattern: string): Promise<Set<string>> {
    return scanServer(this.client, pattern);
  }

  async start(): Promise<void> {
    // Searched once, because the search runs the binary and is slow on a busy machine.
    this.#binary ??= testRedisBinary();
    const binary = await this.#binary;
    await cutPartialCommand(join(this.#directory, "redis"));
    for (let tries = 1; ; tries += 1) {
      const server = await launch(binary, this.#config, join(this.#directory, "lock"));
      this.#server = server;
      const isReady = async () => (await probe(this.socket, "none")).state === "ready";
      await until(async () => server.exit() !== undefined || isReady(), {
        what: "Redis",
        timeoutMs: 120_000,
      });
      const exit = server.exit();
      if (exit === undefined) return;
      if (tries === TRIES) throw new Error(`Redis ended (${exit.code}): ${exit.stderr}`);
    }
  }

  get isRunning(): boolean {
    return this.#server !== undefined && this.#server.exit() === undefined;
  }

  signal(signal: NodeJS.Signals): void {
    this.#server?.kill(signal);
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#server?.kill("SIGCONT");
    this.#server?.kill(signal);
    await this.#server?.exited;
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.end("SIGKILL");
  }
}

/**
 * All parts of a run: Redis, gateways behind a bad link each, and the processes that use them. On one machine, over
 * loopback and unix sockets.
 */
import { randomBytes, randomInt } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Admin } from "../../src/client/admin.ts";
import { type BadLink, openBadLink } from "../support/bad-link.ts";
import { bundle } from "./bundle.ts";
import type { ChaosRedis } from "./chaos-redis.ts";
import { Child } from "./child.ts";
import { DEFECTS, isDefect, spoiled } from "./defects.ts";
import type { Options } from "./options.ts";
import { Recorder } from "./recorder.ts";
import { RedisClusterProcesses } from "./redis-cluster-processes.ts";
import { RedisProcess } from "./redis-process.ts";
import {
  A2A_AGENT,
  COUNCIL,
  LIBRARY_AGENT,
  MCP_AGENT,
  PUSH_AGENT,
  type Role,
  type Setup,
  SHELF,
} from "./setup.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const POLL_AGENTS = ["alpha", "beta", "gamma"];
const PEOPLE = ["approver:ann", "approver:ben", "approver:cyd"];
/** Of so many rules of one principal, none is dropped to make room. */
const MOST_RULES = 70;
/** Of a conversation, they work on one delegation at a time. */
const isSerial = (name: string): boolean => name === SHELF || POLL_AGENTS.includes(name);

export interface GatewayPlace {
  readonly name: string;
  readonly url: string;
  readonly child: Child;
  /** Null with a Cluster. */
  readonly link: BadLink | null;
}

export interface Worker {
  readonly role: Role;
  readonly child: Child;
}

export class Stage {
  readonly options: Options;
  readonly directory: string;
  readonly redis: ChaosRedis;
  /** The same, if it is a Cluster. */
  readonly cluster: RedisClusterProcesses | null;
  readonly recorder: Recorder;
  readonly operatorToken = `chaos_${randomBytes(16).toString("hex")}`;
  readonly gateways: GatewayPlace[] = [];
  readonly workers: Worker[] = [];
  readonly tokens: Record<string, string> = {};
  /** Processes that did not return after a fault. */
  readonly troubles: string[] = [];
  readonly secret = `whsec_${randomBytes(32).toString("base64")}`;

  private constructor(options: Options, directory: string) {
    this.options = options;
    this.directory = directory;
    for (const name of ["history", "logs", "setups"]) mkdirSync(join(directory, name));
    this.cluster = options.cluster ? new RedisClusterProcesses(directory, options.fsync) : null;
    this.redis = this.cluster ?? new RedisProcess(directory, options.fsync);
    this.recorder = new Recorder(this.historyOf("nemesis"), "nemesis");
  }

  static async open(options: Options): Promise<Stage> {
    const stage = new Stage(options, await mkdtemp(join(tmpdir(), "errand-chaos-")));
    try {
      await stage.#start();
      return stage;
    } catch (error) {
      await stage.close(false);
      throw error;
    }
  }

  historyOf(name: string): string {
    return join(this.directory, "history", `${name}.jsonl`);
  }

  logOf(name: string): string {
    return join(this.directory, "logs", `${name}.log`);
  }

  get secrets(): string[] {
    return [this.operatorToken, this.secret, ...Object.values(this.tokens)];
  }

  async #start(): Promise<void> {
    const [bundles] = await Promise.all([bundle(this.directory), this.redis.start()]);
    const main = this.#build();
    for (let n = 0; n < this.options.gateways; n += 1)
      await this.#gateway(`gateway-${n}`, main, bundles.preload);
    await Promise.all(this.gateways.map(({ child }) => child.ready()));
    await this.#people();
    await this.#workers(bundles.role);
  }

  /** The program, or a copy of the build with a defect: that runs unbundled, because defects change single modules. */
  #build(): string {
    const { defect } = this.options;
    if (defect === null) return join(ROOT, "dist/errand.js");
    if (!isDefect(defect))
      throw new Error(`${defect} is no defect; known are ${Object.keys(DEFECTS).join(", ")}.`);
    const copy = join(this.directory, "broken");
    mkdirSync(copy);
    cpSync(join(ROOT, "build"), join(copy, "build"), { recursive: true });
    copyFileSync(join(ROOT, "package.json"), join(copy, "package.json"));
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    for (const [path, text] of spoiled(join(copy, "build"), defect)) writeFileSync(path, text);
    return join(copy, "build/main.js");
  }

  async #gateway(name: string, main: string, preload: string): Promise<void> {
    const { socket } = this.redis;
    const link = socket === null ? null : await openBadLink(socket);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      ERRAND_PORT: String(port),
      ERRAND_DATA_DIR: join(this.directory, name),
      ERRAND_REDIS_URL: link === null ? this.redis.url : `redis://127.0.0.1:${link.port}`,
      ERRAND_OPERATOR_TOKEN: this.operatorToken,
      ERRAND_SHARDS: String(this.options.shards),
      ERRAND_WORKERS: String(this.options.workers),
      ERRAND_CALLBACK_ALLOW: "127.0.0.1",
      // Without it notifications have no links.
      ERRAND_PUBLIC_URL: url,
      ERRAND_RETENTION_SECONDS: String(this.options.retentionSeconds),
    };
    const child = new Child(name, this.logOf(name), () => ({
      args: ["--import", preload, main, "serve"],
      env,
    }));
    child.isReady = async () => (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) })).ok;
    this.gateways.push({ name, url, child, link });
    child.start();
  }

  async #people(): Promise<void> {
    const admin = new Admin({ url: this.gateways[0]?.url, token: this.operatorToken });
    const agents = [...POLL_AGENTS, SHELF, LIBRARY_AGENT, MCP_AGENT, A2A_AGENT, COUNCIL];
    const limits = { lease_seconds: this.options.leaseSeconds, max_attempts: 4 };
    const backoff = { initial_ms: 200, factor: 2, max_ms: 2_000, jitter: 0.2 };
    const delegator_weights = { "caller:delegator-0-a": 3 };
    for (const name of agents)
      await admin.putAgent(name, {
        ...{ limits, backoff, delegator_weights },
        ...(isSerial(name) && { serial_by: "context" }),
        ...(name === POLL_AGENTS[0] && { sticky_seconds: 1 }),
        ...(name === COUNCIL && { votes: { needed: 2, not_by_delegator: true } }),
      });
    for (const name of agents)
      this.tokens[`agent:${name}`] = (await admin.createToken(`agent:${name}`)).token;
    for (let n = 0; n < this.options.delegators; n += 1) {
      for (const who of ["a", "b"]) {
        const caller = `caller:delegator-${n}-${who}`;
        this.tokens[caller] = (await admin.createToken(caller)).token;
      }
    }
    for (const caller of ["caller:mcp", "caller:a2a", "caller:agui", ...PEOPLE])
      this.tokens[caller] = (await admin.createToken(caller)).token;
  }

  async #workers(bundle: string): Promise<void> {
    const { options } = this;
    const receiverPort = await freePort();
    const serverPort = await freePort();
    const receiver = {
      url: `http://127.0.0.1:${receiverPort}/hook`,
      noticeUrl: `http://127.0.0.1:${receiverPort}/notice`,
      port: receiverPort,
      secret: this.secret,
    };
    const admin = new Admin({ url: this.gateways[0]?.url, token: this.operatorToken });
    await admin.putAgent(PUSH_AGENT, {
      delivery: { mode: "push", url: `http://127.0.0.1:${serverPort}` },
      limits: { max_attempts: 4, lease_seconds: 10 },
      backoff: { initial_ms: 200, factor: 2, max_ms: 2_000, jitter: 0.2 },
    });
    const own = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, this.tokens[name] ?? ""]));
    const agentTokens = own([...POLL_AGENTS, SHELF, COUNCIL].map((name) => `agent:${name}`));
    const add = (role: Role, count: number, tokens: (n: number) => Record<string, string>) => {
      for (let n = 0; n < count; n += 1) {
        const proc = `${role}-${n}`;
        const setup: Omit<Setup, "life"> = {
          ...{ proc, role, seed: options.seed, keyed: !options.soak },
          history: options.soak ? "/dev/null" : this.historyOf(proc),
          gateways: this.gateways.map(({ url }) => url),
          tokens: tokens(n),
          agents: POLL_AGENTS,
          rate:
            role === "delegator"
              ? options.rate / options.delegators
              : Math.min(2, Math.max(0.5, options.rate / 12)),
          ruleSeconds: Math.max(0.6, (options.minutes * 60) / MOST_RULES),
          leaseSeconds: options.leaseSeconds,
          slots: options.soak ? 120 : 12,
          pollSeconds: options.soak ? 20 : 3,
          behavior: options.behavior,
          receiver,
          serverPort,
        };
        const child = new Child(proc, this.logOf(proc), (life) => {
          const path = join(this.directory, "setups", `${proc}.json`);
          writeFileSync(path, JSON.stringify({ ...setup, life }), { mode: 0o600 });
          return { args: [bundle, path], env: { PATH: process.env.PATH ?? "" } };
        });
        this.workers.push({ role, child });
        child.start();
      }
    };
    add("receiver", 1, () => ({}));
    add("server", 1, () => ({}));
    add("agent", options.agents, () => agentTokens);
    add("library", 1, () => own([`agent:${LIBRARY_AGENT}`]));
    add("subscriber", options.subscribers, (n) => ({
      ...own([`caller:delegator-${n % options.delegators}-a`]),
      ...(n === 0 && { operator: this.operatorToken }),
    }));
    add("mcp", 1, () => own([`agent:${MCP_AGENT}`, "caller:mcp"]));
    add("a2a", 1, () => own([`agent:${A2A_AGENT}`, "caller:a2a"]));
    add("agui", 1, () => own(["caller:agui"]));
    // Their rules would only grow.
    if (!options.soak)
      add("person", 1, () => ({
        ...own([...PEOPLE, "caller:delegator-0-a", "caller:delegator-0-b"]),
        operator: this.operatorToken,
      }));
    add("delegator", options.delegators, (n) => own([`caller:delegator-${n}-a`, `caller:delegator-${n}-b`]));
  }

  of(role: Role): Child[] {
    return this.workers.filter((worker) => worker.role === role).map(({ child }) => child);
  }

  /** The processes under the supervisor of that gateway; none if it does not answer. */
  async processesOf({ url }: GatewayPlace): Promise<number[]> {
    const admin = new Admin({ url, token: this.operatorToken, failFast: true, retryForMs: 0 });
    const status = await admin.status().catch(() => null);
    return status?.gateways?.map(({ pid }) => pid) ?? [];
  }

  async pause(ms: number): Promise<void> {
    await sleep(ms);
  }

  /** Removes all faults and waits until everything works again. */
  async heal(): Promise<void> {
    for (const node of this.redis.nodes) {
      node.signal("SIGCONT");
      if (!node.isRunning) await node.start();
    }
    for (const { link, child } of this.gateways) {
      await link?.heal();
      child.signal("SIGCONT");
      child.send("clock 0");
    }
    for (const { child } of this.workers) child.signal("SIGCONT");
    await Promise.all(this.gateways.map(({ child }) => child.ready()));
  }

  async close(keep: boolean): Promise<void> {
    await Promise.all(this.workers.map(({ child }) => child.stop("kill")));
    for (const { link } of this.gateways) await link?.heal();
    await Promise.all(this.gateways.map(({ child }) => child.stop("kill")));
    for (const { link } of this.gateways) link?.close();
    await this.redis.close();
    this.recorder.close();
    if (!keep) await rm(this.directory, { recursive: true, force: true });
  }
}

/** Below the range from which systems assign ports, because nobody else may get a gateway's port while it is down. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

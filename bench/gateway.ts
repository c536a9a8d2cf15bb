/** The gateway under test, from outside: its address, agents, tokens and resource use. Limit: one shard. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { LIMITS } from "../src/schema/limits.ts";
import { Remote } from "./remote.ts";
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";

export const usageSchema = z.object({
  /** Since its start, user and system time. */
  cpu_us: z.number(),
  rss: z.number(),
  heap: z.number(),
  /** Parked polls. */
  parked: z.number(),
  /** Open event streams. */
  streams: z.number(),
  /** Lost tickets that the sweep replaced since its start; anything but 0 is a defect. */
  remade: z.number(),
});
export type Usage = z.infer<typeof usageSchema>;

export interface Poll {
  readonly agent: string;
  readonly token: string;
}

/** The broker's limit, less some for callers. */
const MAX_TOKENS = LIMITS.tokens.value - 100;
const AT_ONCE = 50;

/** What a load needs of the gateways under test: one, or several on a port (served.ts). */
export abstract class Target {
  readonly url: string;
  /** The operator's token. */
  readonly operator: string;
  /** Made by {@link token}. */
  #tokens = 0;

  protected constructor(url: string, operator: string) {
    this.url = url;
    this.operator = operator;
  }

  abstract usage(options?: { readonly gc: boolean }): Promise<Usage>;
  abstract stop(): Promise<void>;

  /** Resolves once this many polls of the worker are parked. */
  async parked(polls: number, worker: Remote): Promise<void> {
    await until(async () => {
      const failure = await worker.ask("failure", z.string().nullable());
      if (failure !== null) throw new Error(failure);
      return (await this.usage()).parked === polls;
    }, `${polls} parked polls`);
  }

  async streams(): Promise<number> {
    return (await this.usage()).streams;
  }

  async token(principal: string): Promise<string> {
    this.#tokens += 1;
    const { token } = z
      .object({ token: z.string() })
      .parse(await this.call("POST", "/v1/tokens", { principal }));
    return token;
  }

  /** Creates agents, numbered from `first`, each with its own token. Those beyond MAX_TOKENS use the operator's. */
  async agents(count: number, prefix: string, first = 0): Promise<Poll[]> {
    const polls: Poll[] = [];
    const names = Array.from({ length: count }, (_, index) => `${prefix}-${first + index}`);
    for (let at = 0; at < count; at += AT_ONCE) {
      polls.push(
        ...(await Promise.all(
          names.slice(at, at + AT_ONCE).map(async (agent) => {
            await this.call("PUT", `/v1/agents/${agent}`, {});
            const token = this.#tokens < MAX_TOKENS ? await this.token(`agent:${agent}`) : this.operator;
            return { agent, token };
          }),
        )),
      );
    }
    return polls;
  }

  read(id: string): Promise<unknown> {
    return this.call("GET", `/v1/delegations/${id}`);
  }

  /** As the operator, unless given another token. */
  async call(method: string, path: string, body?: unknown, token = this.operator): Promise<unknown> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json",
        "content-type": "application/json",
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
}

/** Where a gateway stores files, and how many bytes one principal may have. */
export interface FilePlace {
  readonly folder: string;
  readonly principalBytes: number;
}

export class Gateway extends Target {
  readonly #remote: Remote;

  private constructor(remote: Remote, url: string, operator: string) {
    super(url, operator);
    this.#remote = remote;
  }

  /** With `before`, at the same address and with the same token: restarts a killed gateway. */
  static async start(stage: Stage, before?: Gateway, files?: FilePlace): Promise<Gateway> {
    const remote = new Remote("gateway");
    const operatorToken = before ? before.operator : `bench_${randomBytes(16).toString("hex")}`;
    const { socket, password } = stage;
    const settings = {
      socket,
      password,
      db: 0,
      operatorToken,
      port: before ? Number(new URL(before.url).port) : 0,
      ...(files && { files }),
    };
    const port = await remote.ask("start", z.number(), settings);
    return new Gateway(remote, `http://127.0.0.1:${port}`, operatorToken);
  }

  usage(options: { readonly gc: boolean } = { gc: false }): Promise<Usage> {
    return this.#remote.ask("usage", usageSchema, options);
  }

  /** Since its start, the time in which its event loop was busy, ms. */
  busyMs(): Promise<number> {
    return this.#remote.ask("busyMs", z.number(), {});
  }

  profile(): Promise<void> {
    return this.#remote.tell("profile");
  }

  /** Writes the profile that {@link profile} started to a file. */
  profiled(file: string): Promise<void> {
    return this.#remote.tell("profiled", file);
  }

  async stop(): Promise<void> {
    await this.#remote.tell("stop").catch(() => {});
    await this.#remote.end();
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#remote.kill();
  }
}

/**
 * A load: a submitting process, a working process, and one window of time over both, the gateway and Redis.
 * Limit: the counters of the four are read within a few milliseconds of each other, not at one instant.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ClientName, openClient } from "./clients.ts";
import type { Poll, Target } from "./gateway.ts";
import { taskFiller, taskJson, WAIT } from "./payload.ts";
import { Remote } from "./remote.ts";
import type { RedisUsage, Stage } from "./stage.ts";
import { type Tally, tallySchema } from "./tally.ts";

export interface Times {
  /** The length of the window, and of the warm-up before it. */
  readonly seconds: number;
  readonly warmup: number;
}

export interface Window {
  /** On the submitting side: from the request to the answer that it waits for. */
  readonly asked: Tally;
  /** On the working side: from the request to the received work. */
  readonly worked: Tally;
  readonly redis: RedisUsage;
  /** 0 without a gateway. */
  readonly gateway_cpu_us: number;
}

export interface Shape {
  readonly lanes: number;
  readonly bytes: number;
  /** A second; null: as fast as the lanes can. */
  readonly rate: number | null;
}

/** Runs one window while `asking` and `working` run; throws their errors. */
async function watch(
  [asking, working]: readonly [Remote, Remote],
  stage: Stage,
  gateway: Target | null,
  { seconds, warmup }: Times,
  during: () => Promise<void> = async () => {},
): Promise<Window> {
  await sleep(warmup * 1000);
  const [redis, before] = await Promise.all([
    stage.mark(),
    gateway?.usage(),
    asking.tell("mark"),
    working.tell("mark"),
  ]);
  await during();
  await sleep(seconds * 1000);
  const [after, used, asked, worked] = await Promise.all([
    stage.usage(),
    gateway?.usage(),
    asking.ask("take", tallySchema),
    working.ask("take", tallySchema),
  ]);
  const remade = (used?.remade ?? 0) - (before?.remade ?? 0);
  if (remade > 0) process.stderr.write(`the sweep had to make ${remade} tickets again\n`);
  const failure = asked.failure ?? worked.failure;
  if (failure !== null) throw new Error(failure);
  if (asked.count === 0) throw new Error("nothing came back within the window");
  return {
    asked,
    worked,
    redis: { ...after, cpu_us: after.cpu_us - redis.cpu_us },
    gateway_cpu_us: (used?.cpu_us ?? 0) - (before?.cpu_us ?? 0),
  };
}

/** Callers and agents of a gateway. Its two processes run until {@link end}, its connections for one window. */
export class ErrandLoad {
  readonly #submitter = new Remote("submitter");
  readonly #worker = new Remote("worker");
  readonly #stage: Stage;
  readonly #gateway: Target;
  readonly #callers: readonly string[];
  readonly #polls: readonly Poll[];

  private constructor(stage: Stage, gateway: Target, callers: readonly string[], polls: readonly Poll[]) {
    this.#stage = stage;
    this.#gateway = gateway;
    this.#callers = callers;
    this.#polls = polls;
  }

  /** `polls`: one long-poll for each; the delegations go to their agents. `delegators`: of the delegations. */
  static async start(
    stage: Stage,
    gateway: Target,
    polls: readonly Poll[],
    delegators = 1,
  ): Promise<ErrandLoad> {
    const names = Array.from({ length: delegators }, (_, n) =>
      n === 0 ? "caller:bench" : `caller:bench-${n}`,
    );
    const callers: string[] = [];
    for (const name of names) callers.push(await gateway.token(name));
    return new ErrandLoad(stage, gateway, callers, polls);
  }

  /**
   * `wait`: callers wait for the reply, not only for the 202. `client` is `bare` by default. `during` is called within
   * the window.
   */
  async window(
    shape: Shape & { readonly wait: boolean; readonly client?: ClientName },
    times: Times,
    during?: () => Promise<void>,
  ): Promise<Window> {
    const { url } = this.#gateway;
    const agents = [...new Set(this.#polls.map(({ agent }) => agent))];
    const { client = "bare", bytes } = shape;
    await this.#worker.tell("start", { client, url, polls: this.#polls, bytes });
    await this.#gateway.parked(this.#polls.length, this.#worker);
    await this.#submitter.tell("start", { client, url, tokens: this.#callers, agents, ...shape });
    const window = await watch([this.#submitter, this.#worker], this.#stage, this.#gateway, times, during);
    await this.#submitter.tell("stop");
    await this.#gateway.parked(this.#polls.length, this.#worker);
    await this.#worker.tell("stop");
    await this.#gateway.parked(0, this.#worker);
    return window;
  }

  /** One delegation, from submit to end: its caller's answer. */
  async one(bytes: number): Promise<string> {
    const { url } = this.#gateway;
    const [poll] = this.#polls;
    if (!poll) throw new Error("there is no agent");
    await this.#worker.tell("start", { client: "bare", url, polls: [poll], bytes });
    const lane = openClient("bare", url, this.#callers[0] ?? "");
    const { body } = await lane.post("/v1/delegations", taskJson(poll.agent, taskFiller(bytes)), WAIT);
    lane.close();
    await this.#gateway.parked(1, this.#worker);
    await this.#worker.tell("stop");
    await this.#gateway.parked(0, this.#worker);
    return body;
  }

  async end(): Promise<void> {
    await Promise.all([this.#submitter.end(), this.#worker.end()]);
  }
}

/** The comparison: the same load on BullMQ itself, in another database of the same Redis. */
export class BullLoad {
  readonly #submitter = new Remote("bull-submitter");
  readonly #worker = new Remote("bull-worker");
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** `working`: jobs in progress at a time; absent: as many as lanes. */
  async window(shape: Shape & { readonly working?: number }, times: Times): Promise<Window> {
    const load = { path: this.#stage.socket, password: this.#stage.password, db: 1, ...shape };
    await this.#worker.tell("start", load);
    await this.#submitter.tell("start", load);
    const window = await watch([this.#submitter, this.#worker], this.#stage, null, times);
    await this.#submitter.tell("stop");
    await this.#worker.tell("stop");
    return window;
  }

  async end(): Promise<void> {
    await Promise.all([this.#submitter.end(), this.#worker.end()]);
  }
}

export const perSecond = ({ asked }: Window): number => asked.count / asked.seconds;

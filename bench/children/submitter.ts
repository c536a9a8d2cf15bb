/**
 * Delegates over a number of lanes, each waiting for its answer (or only for the 202), as fast as possible or at a rate.
 * Limit: one load at a time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { CLIENTS, openClient } from "../clients.ts";
import type { LoadClient } from "../lane.ts";
import { taskFiller, taskJson, WAIT } from "../payload.ts";
import { serve } from "../remote.ts";
import { clock, Tallier } from "../tally.ts";

const loadSchema = z.object({
  client: z.enum(CLIENTS),
  url: z.string(),
  /** Of its callers; each lane has one. */
  tokens: z.array(z.string()),
  /** Each delegation goes to a random one. */
  agents: z.array(z.string()),
  lanes: z.number(),
  bytes: z.number(),
  /** Wait for the end, or only for the 202. */
  wait: z.boolean(),
  /** A second, over all lanes; null: each lane sends the next as soon as it has its answer. */
  rate: z.number().nullable(),
});
type Load = z.infer<typeof loadSchema>;

const tallier = new Tallier();
let stopping = false;
let running: Promise<unknown> = Promise.resolve();

class Submitter {
  readonly #load: Load;
  readonly #filler: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #free: LoadClient[] = [];

  constructor(load: Load) {
    this.#load = load;
    this.#filler = taskFiller(load.bytes);
    this.#headers = load.wait ? WAIT : {};
    for (let i = 0; i < load.lanes; i += 1) {
      const token = load.tokens[i % load.tokens.length] ?? "";
      this.#free.push(openClient(load.client, load.url, token));
    }
  }

  async run(): Promise<void> {
    const lanes = [...this.#free];
    try {
      if (this.#load.rate === null) await Promise.all(lanes.map((lane) => this.#loop(lane)));
      else await this.#paced(this.#load.rate, lanes.length);
    } catch (error) {
      tallier.fail(error);
    } finally {
      for (const lane of lanes) lane.close();
    }
  }

  async #loop(lane: LoadClient): Promise<void> {
    while (!stopping) await this.#one(lane, clock());
  }

  async #one(lane: LoadClient, since: number): Promise<void> {
    const { agents, wait } = this.#load;
    const agent = agents[agents.length === 1 ? 0 : Math.floor(Math.random() * agents.length)] ?? "";
    const { status, body } = await lane.post("/v1/delegations", taskJson(agent, this.#filler), this.#headers);
    if (wait ? status !== 200 || !body.includes('"state":"completed"') : status !== 202) {
      throw new Error(`a delegation was answered ${status}: ${body.slice(0, 300)}`);
    }
    tallier.add(clock() - since);
  }

  /**
   * Evenly, but not in step with other timers. A delegation that finds no free lane waits for one, and the wait
   * counts.
   */
  async #paced(rate: number, lanes: number): Promise<void> {
    const waiting: number[] = [];
    let next = clock();
    while (!stopping) {
      await sleep(Math.max(0, next - clock()));
      next += ((0.5 + Math.random()) * 1000) / rate;
      waiting.push(clock());
      this.#dispatch(waiting);
    }
    while (this.#free.length < lanes) await sleep(1);
  }

  #dispatch(waiting: number[]): void {
    for (let since = waiting[0]; since !== undefined; since = waiting[0]) {
      const lane = this.#free.pop();
      if (!lane) return;
      waiting.shift();
      this.#one(lane, since)
        .catch((error: unknown) => tallier.fail(error))
        .finally(() => {
          this.#free.push(lane);
          this.#dispatch(waiting);
        });
    }
  }
}

serve({
  start(args) {
    stopping = false;
    running = new Submitter(loadSchema.parse(args)).run();
  },
  mark: () => tallier.mark(),
  take: () => tallier.take(),
  async stop() {
    stopping = true;
    await running;
  },
});

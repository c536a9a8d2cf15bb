/**
 * What one process of the load counts in a window of time: the number, the latencies, and its own CPU.
 * Limit: every sample is kept until the window ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { quantile } from "./numbers.ts";

export const tallySchema = z.object({
  count: z.number(),
  seconds: z.number(),
  p50_ms: z.number(),
  p99_ms: z.number(),
  /** Of this process, user and system time. */
  cpu_us: z.number(),
  /** The first failure since the load started; null if there was none. */
  failure: z.string().nullable(),
});
export type Tally = z.infer<typeof tallySchema>;

/** Milliseconds of a clock that all processes of a machine share. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6;

const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const PATIENCE_MS = 30_000;

export class Tallier {
  #samples: number[] = [];
  #since = clock();
  #cpu = cpu();
  #failure: string | null = null;

  add(ms: number): void {
    this.#samples.push(ms);
  }

  fail(why: unknown): void {
    this.#failure ??= why instanceof Error ? why.message : String(why);
  }

  get failure(): string | null {
    return this.#failure;
  }

  /** Starts a window. */
  mark(): void {
    this.#samples = [];
    this.#since = clock();
    this.#cpu = cpu();
  }

  /** Ends it once there is at least one result: on a busy machine the window is longer. */
  async take(): Promise<Tally> {
    const deadline = clock() + PATIENCE_MS;
    while (this.#samples.length === 0 && this.#failure === null && clock() < deadline) await sleep(5);
    const seconds = (clock() - this.#since) / 1000;
    const samples = this.#samples.sort((a, b) => a - b);
    const tally = {
      count: samples.length,
      seconds,
      p50_ms: quantile(samples, 0.5),
      p99_ms: quantile(samples, 0.99),
      cpu_us: cpu() - this.#cpu,
      failure: this.#failure,
    };
    this.mark();
    return tally;
  }
}

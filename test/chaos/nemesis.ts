/**
 * Injects faults, at times and in ways that the seed decides, and records them. Every fault is removed before the
 * end. Limit: when exactly a fault takes effect depends on the machine.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { FAULT_NAMES, FAULTS, type FaultName } from "./faults.ts";
import { Random } from "./random.ts";
import type { Stage } from "./stage.ts";

export class Nemesis {
  readonly #stage: Stage;
  readonly #random: Random;
  readonly #names: readonly FaultName[];
  readonly #stop = new AbortController();
  readonly #running = new Map<string, Promise<void>>();
  readonly #broken = new Set<string>();
  readonly counts = new Map<FaultName, number>();

  constructor(stage: Stage) {
    const { seed, faults } = stage.options;
    this.#stage = stage;
    this.#random = new Random(seed, "nemesis");
    const isPossible = (name: FaultName) => FAULTS[name].targets(stage).length > 0;
    this.#names = FAULT_NAMES.filter(
      (name) => isPossible(name) && (faults.length === 0 || faults.includes(name)),
    );
  }

  /** The faults that are active now. */
  get now(): string {
    const broken = [...this.#broken].join(", ");
    return broken === "" ? "" : `; now ${broken}`;
  }

  /** Runs until the signal aborts, then removes all faults. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = () => this.#stop.abort();
    signal.addEventListener("abort", stop, { once: true });
    const weights = Object.fromEntries(this.#names.map((name) => [name, FAULTS[name].weight]));
    const { every } = this.#stage.options;
    while (!signal.aborted && this.#names.length > 0) {
      await this.#last(this.#random.between(every * 0.4, every * 1.6));
      const drawn = this.#random.weighted(weights);
      const name = this.#names.find((one) => one === drawn);
      if (signal.aborted || name === undefined) break;
      const [low, high] = FAULTS[name].lasts;
      const target = this.#random.pick(FAULTS[name].targets(this.#stage));
      const seconds = this.#random.between(low, high);
      // At most two at once, and never two on the same target.
      if (this.#running.size >= 2 || this.#isTaken(target)) continue;
      this.#running.set(target, this.#one(name, target, seconds));
    }
    await Promise.all(this.#running.values());
    signal.removeEventListener("abort", stop);
  }

  #isTaken(target: string): boolean {
    if (isOfRedis(target) && [...this.#running.keys()].some(isOfRedis)) return true;
    const all = "all gateways";
    if (target === all)
      return [...this.#running.keys()].some((name) => name === all || name.startsWith("gateway"));
    return this.#running.has(target) || (target.startsWith("gateway") && this.#running.has(all));
  }

  async #one(fault: FaultName, on: string, seconds: number): Promise<void> {
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    this.#stage.recorder.note({ row: "fault", fault, on, phase: "begin" });
    this.#broken.add(`${fault} on ${on}`);
    try {
      await FAULTS[fault].run(this.#stage, on, () => this.#last(seconds));
    } catch (error) {
      this.#stage.troubles.push(
        `${fault} on ${on}: ${error instanceof Error ? error.message : String(error)}`,
      );
    } finally {
      this.#stage.recorder.note({ row: "fault", fault, on, phase: "end" });
      this.#broken.delete(`${fault} on ${on}`);
      this.#running.delete(on);
    }
  }

  async #last(seconds: number): Promise<void> {
    await sleep(seconds * 1000, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
}

/** Only one at a time: a Cluster moves its slots and roles only while all its nodes answer. */
const isOfRedis = (target: string): boolean => /^(?:redis|shard-)/.test(target);

/**
 * A process that the nemesis may kill, suspend and end, and that is restarted when it is gone. Its stderr goes to a
 * file; it ends with the supervisor.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export interface Command {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Delay before a restart. A gateway that starts while Redis is away exits, and is started again. */
const AGAIN_MS = 250;
/** A start takes seconds if nothing is broken; a busy machine takes longer. */
const BACK_MS = 180_000;
/** A stop takes at most 10 s. */
const STOP_MS = 10_500;

export class Child {
  readonly name: string;
  readonly #command: (life: number) => Command;
  readonly #log: string;
  #child: ChildProcess | undefined;
  #lives = 0;
  #wanted = false;
  /** Whether the end was requested. */
  #expected = false;
  /** The ends that were not requested, or not clean. */
  readonly deaths: string[] = [];
  /** Whether the process works; an end before that counts as a failed start. */
  isReady: () => Promise<boolean> = async () => true;
  #ready = false;
  #idle = false;

  constructor(name: string, log: string, command: (life: number) => Command) {
    this.name = name;
    this.#log = log;
    this.#command = command;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether it reported that no request of it is open any more. */
  get isIdle(): boolean {
    return this.#idle;
  }

  isGone(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** From here on it may end by itself. */
  dismiss(): void {
    this.#wanted = false;
    this.#expected = true;
  }

  /** Starts it, and restarts it whenever it ends. */
  start(): void {
    this.#wanted = true;
    this.#spawn();
  }

  #spawn(): void {
    const { args, env } = this.#command(this.#lives);
    this.#lives += 1;
    this.#expected = false;
    this.#ready = false;
    this.#idle = false;
    const log = openSync(this.#log, "a");
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", log, log, "ipc"] });
    closeSync(log);
    this.#child = child;
    child.on("message", (message) => {
      if (message === "idle") this.#idle = true;
    });
    // An order sent to a process that has just died is lost.
    child.on("error", () => undefined);
    child.once("exit", (code, signal) => void this.#ended(child, code, signal));
  }

  async #ended(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    if (this.#ready && !this.#expected) this.deaths.push(`${this.name} ended by itself (${code ?? signal})`);
    if (!this.#wanted || child !== this.#child) return;
    await sleep(this.#expected ? 0 : AGAIN_MS);
    if (this.#wanted && child === this.#child) this.#spawn();
  }

  /** Resolves when it works again. */
  async ready(timeoutMs = BACK_MS): Promise<void> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const child = this.#child;
      if (await this.isReady().catch(() => false)) {
        if (child === this.#child) this.#ready = true;
        return;
      }
      if (performance.now() > end) {
        const said = readFileSync(this.#log, "utf8").slice(-2_000);
        throw new Error(`${this.name} is not ready after ${timeoutMs} ms. Its log ends with: ${said}`);
      }
      await sleep(50);
    }
  }

  send(order: string): void {
    if (this.#child?.connected) this.#child.send(order, () => undefined);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Kills it; the next one is started at once. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || this.isGone()) return;
    this.#expected = true;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Asks it to end; it has ten seconds. */
  async terminate(): Promise<void> {
    const child = this.#child;
    if (!child || this.isGone()) return;
    const wasReady = this.#ready;
    this.#expected = true;
    const exited = once(child, "exit");
    child.kill("SIGCONT");
    child.kill("SIGTERM");
    const waited = new AbortController();
    const late = sleep(STOP_MS, "late", { signal: waited.signal }).catch(() => "");
    if ((await Promise.race([exited, late])) === "late") {
      this.deaths.push(`${this.name} did not end within 10 s of SIGTERM`);
      child.kill("SIGKILL");
      await exited;
    } else if (wasReady && child.exitCode !== 0) {
      this.deaths.push(`${this.name} ended by SIGTERM with ${child.exitCode ?? child.signalCode}`);
    }
    waited.abort();
  }

  /** Ends it without a restart. */
  async stop(how: "kill" | "terminate"): Promise<void> {
    this.#wanted = false;
    this.signal("SIGCONT");
    await this[how]();
  }
}

/**
 * The gateways under test as users start them: `errand serve` with ERRAND_WORKERS and ERRAND_SHARDS, on the stage's Redis. Their use of
 * resources is what their metrics say, the supervisor's included. Limit: no memory of the heap, and no profile.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Target, type Usage } from "./gateway.ts";
import type { Stage } from "./stage.ts";

const MAIN = fileURLToPath(new URL("../dist/errand.js", import.meta.url));

export class ServedGateways extends Target {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string, operator: string) {
    super(url, operator);
    this.#child = child;
  }

  static async start(
    stage: Stage,
    { workers, shards }: { readonly workers: number; readonly shards: number },
  ): Promise<ServedGateways> {
    const operator = `bench_${randomBytes(16).toString("hex")}`;
    const child = spawn(process.execPath, ["--max-semi-space-size=32", MAIN, "serve"], {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        ERRAND_PORT: "0",
        ERRAND_DATA_DIR: stage.directory,
        ERRAND_WORKERS: String(workers),
        ERRAND_SHARDS: String(shards),
        ERRAND_OPERATOR_TOKEN: operator,
        ERRAND_LOG_LEVEL: "warn",
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    // Also when the benchmark is interrupted.
    const end = () => child.kill("SIGTERM");
    process.once("exit", end);
    child.once("exit", () => process.off("exit", end));
    let said = "";
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr?.on("data", (chunk) => {
        said += chunk;
        const [, ready] = /errand is ready at (\S+)/.exec(said) ?? [];
        if (ready !== undefined) resolve(ready);
      });
      child.once("exit", () => reject(new Error(`the gateways did not start: ${said}`)));
    });
    return new ServedGateways(child, url, operator);
  }

  override async usage(): Promise<Usage> {
    const response = await fetch(`${this.url}/metrics`, {
      headers: { authorization: `Bearer ${this.operator}` },
    });
    const text = await response.text();
    const value = (name: string): number => Number(text.split(`\n${name} `)[1]?.split("\n")[0] ?? 0);
    return {
      cpu_us: 1e6 * value("process_cpu_seconds_total"),
      rss: value("process_resident_memory_bytes"),
      heap: 0,
      parked: value("errand_parked_polls"),
      streams: value("errand_event_streams"),
      remade: value("errand_tickets_remade_total"),
    };
  }

  override async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGTERM");
    await once(this.#child, "exit");
  }
}

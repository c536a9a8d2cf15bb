/**
 * A process that the demo starts and stops. Limit: POSIX; each child is a process group of its own, so that Ctrl-C
 * reaches only the demo, which stops its children in order.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildOptions {
  readonly cwd: string;
  /**
   * Variables that it gets in addition to our own environment, which is passed without ERRAND_ variables except the
   * Redis binary's.
   */
  readonly env: Readonly<Record<string, string>>;
  readonly onLine: (line: string) => void;
}

const running = new Set<ChildProcess>();

// The last resort, if the demo itself exits unexpectedly.
process.on("exit", () => {
  for (const child of running) killGroup(child);
});

export class Child {
  readonly exited: Promise<Exit>;
  readonly #process: ChildProcess;

  /** Runs Node with these arguments. */
  constructor(args: readonly string[], { cwd, env, onLine }: ChildOptions) {
    const own = Object.entries(process.env).filter(
      ([name]) => !name.startsWith("ERRAND_") || name === "ERRAND_REDIS_BIN",
    );
    const child = spawn(process.execPath, args, {
      cwd,
      env: { ...Object.fromEntries(own), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    running.add(child);
    for (const stream of [child.stdout, child.stderr]) createInterface(stream).on("line", onLine);
    this.#process = child;
    this.exited = new Promise((resolve) => {
      const done = (code: number | null, signal: NodeJS.Signals | null) => {
        running.delete(child);
        resolve({ code, signal });
      };
      child.once("close", done);
      child.once("error", (error) => {
        onLine(error.message);
        if (child.pid === undefined) done(null, null);
      });
    });
  }

  /** Asks it to end, and makes it end if that takes too long. */
  async stop(withinMs: number): Promise<Exit> {
    this.#process.kill("SIGTERM");
    const timer = setTimeout(() => killGroup(this.#process), withinMs);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

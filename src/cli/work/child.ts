/**
 * Runs one command per delegation in its own process group, with the task on stdin, and captures its output.
 * Limit: processes that leave the group (daemons) are not stopped.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { kill, platform } from "node:process";
import { Head, LatestLine, Tail } from "./capture.ts";

export interface CommandRun {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: string;
  /** Stops the group: SIGTERM, then SIGKILL after 5 s. */
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}

export interface CommandResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Head;
  readonly stderr: string;
}

const STDOUT_MAX = 1024 * 1024;
const STDERR_MAX = 4096;
const LINE_MAX = 4096;
const KILL_AFTER_MS = 5000;
/** How long a process that the command left behind may keep the output open. */
const LINGER_MS = 2000;

export class ChildProcesses {
  readonly #running = new Set<ChildProcessWithoutNullStreams>();

  /** Rejects when the command cannot be started, or with the signal's reason once the child is dead. */
  run({ command: [file, ...args], env, input, signal, onLine }: CommandRun): Promise<CommandResult> {
    return new Promise((resolve, reject) => {
      // In its own group, so that a shell's children end with it, and Ctrl-C reaches only this process.
      const child = spawn(file, args, {
        env,
        detached: platform !== "win32",
        stdio: "pipe",
        windowsHide: true,
      });
      const stdout = new Head(STDOUT_MAX);
      const stderr = new Tail(STDERR_MAX);
      let timer: ReturnType<typeof setTimeout> | undefined;
      this.#running.add(child);

      const onAbort = () => {
        signalGroup(child, "SIGTERM");
        timer = setTimeout(() => signalGroup(child, "SIGKILL"), KILL_AFTER_MS);
      };
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#running.delete(child);
      };

      child.once("error", (error) => {
        if (child.pid !== undefined) return;
        done();
        reject(error);
      });
      child.once("exit", () => {
        const linger = setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, LINGER_MS);
        child.once("close", () => clearTimeout(linger));
      });
      child.once("close", (exitCode, endedBy) => {
        done();
        if (!signal.aborted) {
          resolve({ exitCode, signal: endedBy, stdout, stderr: stderr.text() });
          return;
        }
        // Processes that the command started may have survived SIGTERM.
        signalGroup(child, "SIGKILL");
        reject(signal.reason);
      });
      listen(child, onLine, stdout, stderr);
      if (child.pid !== undefined && signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      child.stdin.end(input);
    });
  }

  /** Kills all commands at once. */
  killAll(): void {
    for (const child of this.#running) signalGroup(child, "SIGKILL");
  }
}

function listen(
  child: ChildProcessWithoutNullStreams,
  onLine: CommandRun["onLine"],
  stdout: Head,
  stderr: Tail,
): void {
  // A command may leave its stdin unread.
  child.stdin.on("error", () => undefined);
  const lines = { stdout: new LatestLine(LINE_MAX), stderr: new LatestLine(LINE_MAX) };
  child.stdout.on("data", (chunk: Buffer) => {
    stdout.add(chunk);
    const line = lines.stdout.add(chunk);
    if (line !== undefined) onLine(line);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr.add(chunk);
    const line = lines.stderr.add(chunk);
    if (line !== undefined) onLine(line);
  });
}

function signalGroup(child: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (platform === "win32") child.kill(signal);
    else kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

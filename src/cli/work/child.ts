/**
 * Runs a command in its own process group, usually one per delegation with the task on stdin, and captures its output.
 * The whole group ends with the command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { platform } from "node:process";
import { Readable, type Writable } from "node:stream";
import { plainText } from "../show/output.ts";
import { Head, LatestLine, Tail } from "./capture.ts";
import { isProgressLine } from "./command-progress.ts";
import { endProcessesWith, processesWith, signalAll } from "./left-behind.ts";
import { endGroup, signalGroup } from "./process-group.ts";

export interface CommandRun {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default: the folder of this process. */
  readonly cwd?: string | undefined;
  /** All of stdin; or a function that gets the open stdin, for a command that is given more while it runs. */
  readonly input: string | ((stdin: Writable) => void);
  /** Stops the group: SIGTERM, then SIGKILL after 5 s. */
  readonly signal: AbortSignal;
  /** The group's number. */
  readonly onStart?: ((group: number) => void) | undefined;
  /** The latest line of a piece of output. */
  readonly onLine: (line: string, from: Source) => void;
  /** All of stdout and stderr, as they come. */
  readonly onStdout?: ((chunk: Buffer) => void) | undefined;
  readonly onStderr?: ((chunk: Buffer) => void) | undefined;
  /** How much of stdout the result has. Default: as much as a delegation may. */
  readonly keepStdout?: number | undefined;
  readonly limits: RunLimits;
}

export interface RunLimits {
  /** Stops the command after this time. */
  readonly timeoutMs?: number | undefined;
  /** Stops the command after this time without output. */
  readonly idleTimeoutMs?: number | undefined;
  /** 3 to 9: opens this file descriptor for the command's progress. */
  readonly progressFd?: number | undefined;
}

export type Source = "stdout" | "stderr" | "progress";

export interface CommandResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Head;
  /** Its last lines. */
  readonly stderr: string;
  /** The last lines of stdout, if they are text. */
  readonly stdoutEnd: string;
  /** The limit that stopped it. */
  readonly stoppedBy?: "timeout" | "idle-timeout" | undefined;
}

/** The broker's limit of a delegation. */
export const STDOUT_MAX = 3 * 1024 * 1024;
const TAIL_MAX = 4096;
const LINE_MAX = 16 * 1024;
const KILL_AFTER_MS = 5000;
/** How long background processes may run after their command has ended. */
const LINGER_MS = 2000;

export class ChildProcesses {
  /** With the marker in the environment of all its processes. */
  readonly #running = new Map<ChildProcess, string | undefined>();

  /** Rejects when the command cannot be started, or with the signal's reason once the child that it stopped is dead. */
  run(given: CommandRun): Promise<CommandResult> {
    const { input, signal, limits } = given;
    return new Promise((resolve, reject) => {
      const child = start(given);
      this.#running.set(child, markerOf(given));
      if (child.pid !== undefined) given.onStart?.(child.pid);
      let killTimer: ReturnType<typeof setTimeout> | undefined;
      let stoppedBy: CommandResult["stoppedBy"];
      let endedByItself = false;

      const stop = () => {
        signalGroup(child, "SIGTERM");
        killTimer ??= setTimeout(() => signalGroup(child, "SIGKILL"), KILL_AFTER_MS);
      };
      const stopFor = (limit: "timeout" | "idle-timeout", ms: number | undefined) => {
        if (ms === undefined) return undefined;
        return setTimeout(() => {
          stoppedBy ??= limit;
          stop();
        }, ms);
      };
      const timeout = stopFor("timeout", limits.timeoutMs);
      const idle = stopFor("idle-timeout", limits.idleTimeoutMs);
      const done = () => {
        for (const timer of [killTimer, timeout, idle]) clearTimeout(timer);
        signal.removeEventListener("abort", stop);
      };

      child.once("error", (error) => {
        if (child.pid !== undefined) return;
        done();
        this.#running.delete(child);
        reject(error);
      });
      child.once("exit", () => {
        endedByItself = !signal.aborted;
        clearTimeout(timeout);
        clearTimeout(idle);
        const linger = setTimeout(() => {
          for (const stream of child.stdio) stream?.destroy();
        }, LINGER_MS);
        child.once("close", () => clearTimeout(linger));
      });
      const output = listen(child, given, () => idle?.refresh());
      child.once("close", (exitCode, endedBy) => {
        done();
        // Processes that the command started may have survived SIGTERM.
        const wasStopped = signal.aborted || stoppedBy !== undefined;
        if (wasStopped) signalGroup(child, "SIGKILL");
        void this.#endAll(child, given).then(() => {
          this.#running.delete(child);
          if (signal.aborted && !endedByItself) reject(signal.reason);
          else resolve({ exitCode, signal: endedBy, ...output(), stoppedBy });
        });
      });
      if (child.pid !== undefined && signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
      if (typeof input === "string") child.stdin?.end(input);
      else if (child.stdin) input(child.stdin);
    });
  }

  /** Also what has left the group. */
  async #endAll(child: ChildProcess, given: CommandRun): Promise<void> {
    await endGroup(child, LINGER_MS);
    const marker = markerOf(given);
    if (marker !== undefined) await endProcessesWith(marker, LINGER_MS);
  }

  /** Kills all commands at once. */
  killAll(): void {
    for (const [child, marker] of this.#running) {
      signalGroup(child, "SIGKILL");
      if (marker !== undefined) signalAll(processesWith(marker), "SIGKILL");
    }
  }
}

/** Variables whose value is of this command alone: the folder, or the id, is random. */
const MARKERS = ["ERRAND_MESSAGES_FILE", "ERRAND_AGENT_PROCESS"];
function markerOf({ env }: CommandRun): string | undefined {
  const name = MARKERS.find((one) => env[one] !== undefined);
  return name === undefined ? undefined : `${name}=${env[name]}`;
}

/** In its own group, so that a shell's children end with it, and Ctrl-C reaches only this process. */
function start({ command: [file, ...args], env, cwd, limits: { progressFd = 2 } }: CommandRun): ChildProcess {
  const unused = Array.from({ length: Math.max(0, progressFd - 3) }, () => "ignore" as const);
  return spawn(file, args, {
    env,
    cwd,
    detached: platform !== "win32",
    stdio: ["pipe", "pipe", "pipe", ...unused, ...(progressFd > 2 ? ["pipe" as const] : [])],
    windowsHide: true,
  });
}

/** Returns a function that returns the captured output. */
function listen(
  child: ChildProcess,
  { onLine, onStdout, onStderr, keepStdout = STDOUT_MAX, limits }: CommandRun,
  onOutput: () => void,
) {
  const stdout = new Head(keepStdout);
  const stdoutEnd = new Tail(TAIL_MAX);
  const stderr = new Tail(TAIL_MAX);
  // A command may leave its stdin unread.
  child.stdin?.on("error", () => undefined);
  const read = (stream: unknown, from: Source, keep: (chunk: Buffer) => void) => {
    if (!(stream instanceof Readable)) return;
    const lines = new LatestLine(LINE_MAX);
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      onOutput();
      keep(chunk);
      const line = lines.add(chunk);
      if (line !== undefined) onLine(line, from);
    });
  };
  read(child.stdout, "stdout", (chunk) => {
    stdout.add(chunk);
    stdoutEnd.add(chunk);
    onStdout?.(chunk);
  });
  read(child.stderr, "stderr", (chunk) => {
    stderr.add(chunk);
    onStderr?.(chunk);
  });
  if (limits.progressFd !== undefined && limits.progressFd > 2)
    read(child.stdio[limits.progressFd], "progress", () => undefined);
  return () => ({
    stdout,
    stdoutEnd: textOrNothing(stdoutEnd.text()),
    stderr: plainText(withoutProgress(stderr.text())),
  });
}

function withoutProgress(text: string): string {
  const lines = text.split("\n");
  return lines
    .filter((line) => !isProgressLine(line))
    .join("\n")
    .trim();
}

/** Binary output explains nothing. The end of a text may begin within a character. */
function textOrNothing(text: string): string {
  return text.includes("\0") || text.slice(1).includes("\uFFFD") ? "" : plainText(text);
}

/**
 * Processes that a command started in sessions of their own, so that its group does not contain them. They are recognized
 * by a variable of the command in their environment. Limit: Linux only, and only processes of the same user that kept the variable.
 */
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { getuid, kill, pid as ownPid, platform } from "node:process";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;
/** A process that starts others while it is ended gets this many rounds. */
const ROUNDS = 5;
/** As much of an environment as is read. `errand work` adds the variable behind those that it inherits. */
const ENVIRONMENT_BYTES = 1024 * 1024;
const buffer = Buffer.allocUnsafeSlow(ENVIRONMENT_BYTES);

/** `marker`: `NAME=value`. */
export const processesWith = (marker: string, proc = "/proc"): number[] =>
  platform === "linux" ? withMarker(ownProcesses(proc), marker, proc) : [];

/** Those of them that live: a process that nobody has waited for has no environment any more. */
function withMarker(pids: readonly number[], marker: string, proc = "/proc"): number[] {
  const first = Buffer.from(`${marker}\0`);
  const later = Buffer.from(`\0${marker}\0`);
  return pids.filter((pid) => {
    const environment = environmentOf(`${proc}/${pid}/environ`);
    return environment.subarray(0, first.length).equals(first) || environment.includes(later);
  });
}

function ownProcesses(proc: string): number[] {
  const user = getuid?.();
  try {
    return readdirSync(proc)
      .filter((name) => /^\d+$/.test(name) && isOf(user, `${proc}/${name}`))
      .map(Number)
      .filter((pid) => pid !== ownPid && pid !== 1);
  } catch {
    return [];
  }
}

function isOf(user: number | undefined, path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.uid === user;
}

/** Into one buffer for all. Empty for a process that has ended, or may not be read. */
function environmentOf(path: string): Buffer {
  let file: number | undefined;
  let length = 0;
  try {
    file = openSync(path, "r");
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(file, buffer, length, buffer.length - length, null);
  } catch {
    // It has ended meanwhile.
  } finally {
    if (file !== undefined) closeSync(file);
  }
  return buffer.subarray(0, length);
}

export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** SIGTERM, and SIGKILL after the grace. Resolves when they have ended. */
export async function endProcessesWith(marker: string, graceMs: number): Promise<void> {
  const until = performance.now() + graceMs;
  for (let round = 0; round < ROUNDS; round += 1) {
    const found = processesWith(marker);
    if (found.length === 0) return;
    signalAll(found, "SIGTERM");
    while (withMarker(found, marker).length > 0 && performance.now() < until) await delay(POLL_MS);
    signalAll(withMarker(found, marker), "SIGKILL");
  }
}

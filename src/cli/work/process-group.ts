/** Ends a command with all processes that it started. Limit: processes that leave its group (daemons) are for left-behind.ts. */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { kill, platform } from "node:process";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;

/** Sends the signal to the command's group. Returns whether the group has a process. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (child.pid === undefined) return false;
  try {
    return platform === "win32" ? child.kill(signal) : kill(-child.pid, signal);
  } catch {
    // It has ended already.
    return false;
  }
}

/** SIGTERM to what is left of the group, then SIGKILL after the grace. Resolves when the group has ended. */
export async function endGroup(child: ChildProcess, graceMs: number): Promise<void> {
  if (platform === "win32" || !signalGroup(child, "SIGTERM")) return;
  const until = performance.now() + graceMs;
  while (signalGroup(child, 0) && hasLiving(child.pid)) {
    if (performance.now() > until) {
      signalGroup(child, "SIGKILL");
      return;
    }
    await delay(POLL_MS);
  }
}

/** A signal also reaches processes that have ended and that nobody has waited for: on Linux, they do not count. */
function hasLiving(group: number | undefined, proc = "/proc"): boolean {
  if (platform !== "linux") return true;
  try {
    const states = readdirSync(proc)
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => stateIn(group, `${proc}/${pid}/stat`));
    return states.some((state) => state !== undefined && !"ZX".includes(state));
  } catch {
    return true;
  }
}

/** The state of a process, if it is in the group. Its name, in parentheses, may contain anything. */
function stateIn(group: number | undefined, file: string): string | undefined {
  try {
    const stat = readFileSync(file, "latin1");
    const [state, , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === group ? state : undefined;
  } catch {
    // It has been waited for meanwhile.
    return undefined;
  }
}

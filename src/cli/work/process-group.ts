/** Ends a command with all processes that it started. Limit: processes that leave its group (daemons) are for left-behind.ts. */
import type { ChildProcess } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { kill, platform } from "node:process";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;
/** The states of all processes of the machine are read rarely: there may be thousands. */
const FIRST_LOOK_MS = 100;
const MOST_MS = 1_000;

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
export async function endGroup(child: ChildProcess, graceMs: number, living = hasLiving): Promise<void> {
  if (platform === "win32" || !signalGroup(child, "SIGTERM")) return;
  const startedAt = performance.now();
  let pause = FIRST_LOOK_MS;
  let lookAt = startedAt + pause;
  while (signalGroup(child, 0)) {
    const now = performance.now();
    if (now - startedAt > graceMs) {
      signalGroup(child, "SIGKILL");
      return;
    }
    if (now >= lookAt) {
      if (!(await living(child.pid))) return;
      pause = Math.min(2 * pause, MOST_MS);
      lookAt = performance.now() + pause;
    }
    await delay(POLL_MS);
  }
}

/** A signal also reaches processes that have ended and that nobody has waited for: on Linux, they do not count. */
export async function hasLiving(group: number | undefined, proc = "/proc"): Promise<boolean> {
  if (platform !== "linux") return true;
  try {
    // One after the other, so that other work of this process runs between two.
    for (const pid of await readdir(proc))
      if (/^\d+$/.test(pid) && (await isLivingIn(group, `${proc}/${pid}`))) return true;
    return false;
  } catch {
    return true;
  }
}

/** A process whose first thread has ended lives on in the others. */
async function isLivingIn(group: number | undefined, folder: string): Promise<boolean> {
  const first = await statOf(folder);
  if (first === undefined || first.group !== group) return false;
  if (!first.hasEnded) return true;
  const threads = await readdir(`${folder}/task`).catch(() => []);
  const stats = await Promise.all(threads.map((thread) => statOf(`${folder}/task/${thread}`)));
  return stats.some((thread) => thread?.hasEnded === false);
}

/** Undefined if it has been waited for meanwhile. Its name, in parentheses, may contain anything. */
async function statOf(folder: string): Promise<{ hasEnded: boolean; group: number } | undefined> {
  const stat = await readFile(`${folder}/stat`, "latin1").catch(() => undefined);
  if (stat === undefined) return undefined;
  const [state = "", , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { hasEnded: "ZX".includes(state), group: Number(group) };
}

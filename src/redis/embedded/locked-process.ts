/**
 * A process that holds a lock while it runs and ends when this process ends. Limit: without util-linux, a stale lock is
 * recognized by its pid, so a reused pid keeps it locked.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { Writable } from "node:stream";

export type Exit = { readonly code: number | null; readonly signal: string | null; readonly stderr: string };

export type LockedProcess = {
  readonly stdin: ChildProcess["stdin"];
  readonly stdout: ChildProcess["stdout"];
  readonly pid: number | undefined;
  readonly exited: Promise<Exit>;
  exit(): Exit | undefined;
  kill(signal: NodeJS.Signals): void;
};

/** The exit code if another process holds the lock. */
export const LOCK_HELD = 75;

/**
 * Replaces setpriv and flock where they are missing (macOS, busybox): a shell claims a lock file with its pid, starts a
 * watcher that reads fd 3 until the parent's death closes it, and then executes the program in its own place.
 */
const PORTABLE = `
umask 077
lock=$1.pid mine=$1.$$; shift
alive() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
take() { ln "$mine" "$lock" 2>/dev/null; }
echo $$ >"$mine" || exit 74
if ! take; then
  held=$(cat "$lock" 2>/dev/null)
  if ! alive "$held" && mv "$lock" "$mine.old" 2>/dev/null; then
    # Another start may have put its own lock there in between: put it back.
    [ "$(cat "$mine.old")" = "$held" ] || ln "$mine.old" "$lock"
  fi
  take || { rm -f "$mine" "$mine.old"; exit ${LOCK_HELD}; }
fi
rm -f "$mine" "$mine.old"
( (read -r _ <&3 || kill -TERM $$) </dev/null >/dev/null 2>&1 & )
exec "$@" 3<&-
`;

/** Starts the program so that it holds the lock while it runs, and ends when this process ends. */
export async function startLocked(
  lock: string,
  program: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<LockedProcess> {
  const native = ["--pdeathsig", "TERM", "flock", "-n", "-F", "-E", String(LOCK_HELD)];
  const [command, args] = (await runs("setpriv", [...native, "/dev/null", "true"], env))
    ? ["setpriv", [...native, lock, ...program]]
    : ["sh", ["-c", PORTABLE, "sh", lock, ...program]];
  // Detached: Ctrl-C must not stop Redis before the gateway has drained.
  const child = spawn(command, args, { env, detached: true, stdio: ["pipe", "pipe", "pipe", "pipe"] });

  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = `${stderr}${chunk}`.slice(-4_000);
  });
  // The program may exit before it has read its input.
  child.stdin?.on("error", () => undefined);
  const lifeline = child.stdio[3];
  lifeline?.on("error", () => undefined);

  let exit: Exit | undefined;
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => {
      exit = { code, signal, stderr };
      // Ends the watcher before the pid can be reused.
      if (lifeline instanceof Writable) lifeline.end("done\n");
      resolve(exit);
    });
    child.once("error", (error) => {
      exit ??= { code: null, signal: null, stderr: error.message };
      resolve(exit);
    });
  });
  const { pid, stdin, stdout } = child;
  return { pid, stdin, stdout, exited, exit: () => exit, kill: (signal) => child.kill(signal) };
}

/** Does the work while this process holds the lock; false if another process holds it. */
export async function withLock(
  lock: string,
  env: Readonly<Record<string, string>>,
  work: () => Promise<void>,
): Promise<boolean> {
  const holder = await startLocked(lock, ["sh", "-c", "echo locked; exec cat"], env);
  const isLocked = holder.stdout !== null && once(holder.stdout, "data").then(() => true);
  try {
    if (!(await Promise.race([isLocked, holder.exited.then(() => false)]))) return false;
    await work();
    return true;
  } finally {
    holder.stdin?.end();
    await holder.exited;
  }
}

function runs(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(command, args, { env, timeout: 5_000 }, (error) =>
      // Every user may lock /dev/null, so this tests that the tools work.
      resolve(error === null || error.code === LOCK_HELD),
    );
  });
}

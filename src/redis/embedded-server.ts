/**
 * One Redis process: its configuration, its start (with a lock, and tied to the life of its parent), its stop, and a
 * probe. Limit: without util-linux, a stale lock is recognized by its pid, so a reused pid keeps it locked.
 */
import { execFile, spawn } from "node:child_process";
import { createConnection } from "node:net";
import { totalmem } from "node:os";
import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { EmbeddedHome } from "./embedded-home.ts";
import type { RedisServerBinary } from "./find-server.ts";

export type Exit = { readonly code: number | null; readonly signal: string | null; readonly stderr: string };

export type Launched = {
  readonly pid: number | undefined;
  readonly exited: Promise<Exit>;
  exit(): Exit | undefined;
  kill(signal: NodeJS.Signals): void;
};

/** The exit code of a start that found the lock held. */
export const LOCK_HELD = 75;
const STOP_MS = 10_000;
const PROBE_MS = 2_000;

export function configOf(home: EmbeddedHome, fsync: "always" | "everysec"): string {
  // A container may have less memory than the machine.
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return [
    `dir ${JSON.stringify(home.data)}`,
    `logfile ${JSON.stringify(home.logfile)}`,
    `requirepass ${home.password}`,
    "appendonly yes",
    `appendfsync ${fsync}`,
    "aof-load-truncated yes",
    'save ""',
    `maxmemory ${Math.floor(memory / 4)}`,
    "maxmemory-policy noeviction",
    "enable-debug-command no",
    "enable-module-command no",
    "enable-protected-configs no",
    "shutdown-timeout 10",
    "unixsocketperm 700",
    // The last line, so that a configuration that was cut off has no address to listen on, and Redis exits.
    `unixsocket ${JSON.stringify(home.socket)}`,
    "",
  ].join("\n");
}

/**
 * Replaces setpriv and flock where they are missing (macOS, busybox): a shell claims a lock file with its pid, starts a
 * watcher that reads fd 3 until the parent's death closes it, and then executes Redis in its own place.
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

/** Starts Redis so that it holds the lock while it runs, and ends when this process ends. */
export async function launch(binary: RedisServerBinary, config: string, lock: string): Promise<Launched> {
  const { env } = binary;
  // The configuration goes through stdin, because other users may read a command line or an environment.
  const redis = [binary.command, "--port", "0", "-"];
  const native = ["--pdeathsig", "TERM", "flock", "-n", "-F", "-E", String(LOCK_HELD)];
  const [command, args] = (await runs("setpriv", [...native, "/dev/null", "true"], env))
    ? ["setpriv", [...native, lock, ...redis]]
    : ["sh", ["-c", PORTABLE, "sh", lock, ...redis]];
  // Detached: Ctrl-C must not stop Redis before the gateway has drained.
  const child = spawn(command, args, { env, detached: true, stdio: ["pipe", "ignore", "pipe", "pipe"] });

  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = `${stderr}${chunk}`.slice(-4_000);
  });
  // Redis may exit before it has read its configuration.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(config);
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
  return { pid: child.pid, exited, exit: () => exit, kill: (signal) => child.kill(signal) };
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

export async function terminate(child: Launched): Promise<void> {
  child.kill("SIGTERM");
  const exited = new AbortController();
  const timeout = sleep(STOP_MS, "late" as const, { signal: exited.signal }).catch(() => undefined);
  if ((await Promise.race([child.exited, timeout])) === "late") child.kill("SIGKILL");
  exited.abort();
  await child.exited;
}

export type Probe =
  | { readonly state: "absent" | "denied"; readonly pid?: undefined }
  | {
      readonly state: "loading" | "ready";
      readonly pid: number | undefined;
      readonly percent?: string | undefined;
    };

/** Asks for the state of the server at the socket. No answer counts as absent: a silent server still holds the lock. */
export function probe(socket: string, password: string): Promise<Probe> {
  return new Promise((resolve) => {
    const link = createConnection(socket);
    let received = "";
    const done = () => {
      link.destroy();
      resolve(read(received));
    };
    link.setEncoding("utf8");
    link.setTimeout(PROBE_MS, done);
    link.on("error", done);
    link.on("close", done);
    link.on("data", (chunk) => {
      received += chunk;
    });
    // QUIT makes the server close, which marks the end of its answers.
    link.write(`AUTH ${password}\r\nINFO server persistence\r\nPING\r\nQUIT\r\n`);
  });
}

function read(answers: string): Probe {
  if (/^-(WRONGPASS|NOAUTH)/m.test(answers)) return { state: "denied" };
  // Redis runs if it answered all commands up to QUIT; PING may have failed.
  if (!/\+OK\r\n$/.test(answers)) return { state: "absent" };
  const pid = /^process_id:(\d+)/m.exec(answers)?.[1];
  const percent = /^loading_loaded_perc:([\d.]+)/m.exec(answers)?.[1];
  const state = /^-LOADING/m.test(answers) ? "loading" : "ready";
  return { state, pid: pid === undefined ? undefined : Number(pid), percent };
}

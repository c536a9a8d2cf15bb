/** One Redis process: its configuration, its start, its stop, and a probe. */
import { createConnection } from "node:net";
import { totalmem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisServerBinary } from "./find-server.ts";
import type { EmbeddedHome } from "./home.ts";
import { type LockedProcess, startLocked } from "./locked-process.ts";

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
    // 'errand backup' is the only replica, and need not wait for others.
    "repl-diskless-sync yes",
    "repl-diskless-sync-delay 0",
    "unixsocketperm 700",
    // The last line, so that a configuration that was cut off has no address to listen on, and Redis exits.
    `unixsocket ${JSON.stringify(home.socket)}`,
    "",
  ].join("\n");
}

/** Starts Redis so that it holds the lock while it runs, and ends when this process ends. */
export async function launch(
  { command, env }: RedisServerBinary,
  config: string,
  lock: string,
): Promise<LockedProcess> {
  const redis = await startLocked(lock, [command, "--port", "0", "-"], env);
  // The configuration goes through stdin, because other users may read a command line or an environment.
  redis.stdin?.end(config);
  // Redis writes to its log file; an unread pipe would block it.
  redis.stdout?.resume();
  return redis;
}

export async function terminate(child: LockedProcess): Promise<void> {
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

/** The embedded Redis, with the real server. Limit: checks that read /proc run on Linux only. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFile,
  chown,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type EmbeddedOptions,
  type EmbeddedRedis,
  startEmbedded,
} from "../../../src/redis/embedded/embedded.ts";
import type { RedisServerBinary } from "../../../src/redis/embedded/find-server.ts";
import { LOCK_HELD } from "../../../src/redis/embedded/locked-process.ts";
import { launch, probe, terminate } from "../../../src/redis/embedded/server.ts";
import { testRedisBinary } from "../../support/redis-server.ts";
import { until } from "../../support/until.ts";

const onLinux = process.platform === "linux";
let installed: RedisServerBinary;
let toolbox: string;
let root: string;
let logged: string[];
let open: (() => unknown)[];

beforeAll(async () => {
  installed = await testRedisBinary();
  toolbox = await mkdtemp(join(tmpdir(), "errand-tools-"));
  for (const tool of ["sh", "cat", "grep", "ln", "mv", "rm"]) {
    for (const directory of ["/usr/bin", "/bin"]) {
      await symlink(join(directory, tool), join(toolbox, tool)).catch(() => undefined);
    }
  }
  return () => rm(toolbox, { recursive: true });
});

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "errand-embedded-"));
  logged = [];
  open = [];
});

afterEach(async () => {
  for (const close of open.reverse()) await close();
  await rm(root, { recursive: true, force: true });
});

/** As on macOS and busybox, there is no setpriv and no flock on this PATH. */
const SETTINGS = { "util-linux": () => installed.env.PATH ?? "", "a plain shell": () => toolbox };

function binaryFor(path: string): RedisServerBinary {
  return { ...installed, env: { ...installed.env, PATH: path } };
}

async function start(more: Partial<EmbeddedOptions> = {}): Promise<EmbeddedRedis> {
  const redis = await startEmbedded({
    dataDir: join(root, "data"),
    fsync: "always",
    binary: async () => installed,
    log: (level, message, fields) => logged.push(JSON.stringify([level, message, fields])),
    ...more,
  });
  open.push(() => redis.stop());
  return redis;
}

function client(redis: EmbeddedRedis): Redis {
  const connected = new Redis({ path: redis.socket, password: redis.password });
  connected.on("error", () => undefined);
  open.push(() => connected.disconnect());
  return connected;
}

function pidOf(redis: EmbeddedRedis): number {
  const pid = redis.pid();
  if (pid === undefined) throw new Error("no Redis");
  return pid;
}

/** A zombie that nobody reaps counts as dead, too. */
async function dead(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  return (
    onLinux && /^State:\tZ/m.test(await readFile(`/proc/${pid}/status`, "utf8").catch(() => "State:\tZ"))
  );
}

describe.each(Object.keys(SETTINGS))("with %s", (setting) => {
  let binary: () => Promise<RedisServerBinary>;

  beforeEach(() => {
    const path = setting === "util-linux" ? SETTINGS["util-linux"]() : SETTINGS["a plain shell"]();
    binary = async () => binaryFor(path);
  });

  it("of many starts at once, one owns Redis and the others adopt it", async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => start({ binary })));
    expect(all.filter((redis) => !redis.adopted)).toHaveLength(1);
    expect(new Set(all.map((redis) => redis.pid())).size).toBe(1);
    expect(new Set(all.map((redis) => redis.password)).size).toBe(1);
    const files = await readdir(join(root, "data"));
    if (setting === "a plain shell") expect(files).toContain("lock.pid");
    expect(files.filter((name) => /\.\d+/.test(name))).toEqual([]);
  });

  it("a second server on the same lock exits before it changes anything", async () => {
    const redis = await start({ binary });
    const second = await launch(await binary(), "", join(root, "data", "lock"));
    expect((await second.exited).code).toBe(LOCK_HELD);
    expect((await probe(redis.socket, redis.password)).pid).toBe(redis.pid());
  });

  it("a stopped server frees the lock and keeps its data", async () => {
    const first = await start({ binary });
    await client(first).set("kept", "yes");
    const pid = pidOf(first);
    await first.stop();
    expect(await dead(pid)).toBe(true);
    const second = await start({ binary });
    expect(second.adopted).toBe(false);
    expect(await client(second).get("kept")).toBe("yes");
  });

  it("kill -9 of Redis: it is restarted with everything acknowledged", async () => {
    const redis = await start({ binary });
    const before = pidOf(redis);
    const connection = client(redis);
    await Promise.all(Array.from({ length: 100 }, (_, index) => connection.rpush("list", index)));
    process.kill(before, "SIGKILL");
    await until(() => redis.pid() !== undefined && redis.pid() !== before, { what: "another Redis" });
    await redis.ensure();
    expect(await client(redis).llen("list")).toBe(100);
    const ended = logged.find((line) => line.includes("ended unexpectedly"));
    // Its last words.
    expect(ended).toMatch(/"redis_log":"[^"]*ready to accept connections/i);
  });

  it("kill -9 of the parent ends Redis within a second", async () => {
    const server = await binary();
    const script = `
      const { startEmbedded } = await import(${JSON.stringify(new URL("../../../src/redis/embedded/embedded.ts", import.meta.url))});
      const redis = await startEmbedded({
        dataDir: ${JSON.stringify(join(root, "data"))}, fsync: "always",
        binary: async () => (${JSON.stringify(server)}), log: () => {},
      });
      console.log(redis.pid());
    `;
    const parent = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    open.push(() => parent.kill("SIGKILL"));
    const [line] = await once(parent.stdout, "data");
    const pid = Number(String(line));
    expect(await dead(pid)).toBe(false);
    parent.kill("SIGKILL");
    await until(() => dead(pid), { what: "the end of Redis" });
    // The next start is not blocked by its remains.
    expect((await start({ binary })).adopted).toBe(false);
  });
});

it("keeps its directory, password and socket private and its data on disk", async () => {
  const redis = await start({ fsync: "everysec" });
  const data = join(root, "data");
  const mode = async (path: string) => ((await lstat(path)).mode & 0o777).toString(8);
  expect(await mode(data)).toBe("700");
  expect(await mode(join(data, "redis-password"))).toBe("600");
  expect(await mode(redis.socket)).toBe("700");
  expect(await readFile(join(data, ".gitignore"), "utf8")).toBe("*\n");
  expect((await readdir(data)).sort()).toEqual([
    ".gitignore",
    "lock",
    "redis",
    "redis-password",
    "redis.sock",
  ]);

  const connection = client(redis);
  const settings = {
    port: "0",
    appendonly: "yes",
    appendfsync: "everysec",
    save: "",
    "maxmemory-policy": "noeviction",
    "enable-debug-command": "no",
    "enable-module-command": "no",
  };
  for (const [name, value] of Object.entries(settings)) {
    expect(await connection.config("GET", name)).toEqual([name, value]);
  }
  const [, maxmemory] = z.array(z.string()).parse(await connection.config("GET", "maxmemory"));
  expect(Number(maxmemory)).toBeGreaterThan(0);
  expect((await probe(redis.socket, "wrong")).state).toBe("denied");
});

it.runIf(onLinux)("shows its password to no other process and listens on no TCP port", async () => {
  const redis = await start();
  const proc = `/proc/${redis.pid()}`;
  for (const file of ["cmdline", "environ"]) {
    expect(await readFile(join(proc, file), "utf8")).not.toContain(redis.password);
  }
  expect(await readFile(join(proc, "environ"), "utf8")).not.toContain("VITEST");
  expect(logged.join()).not.toContain(redis.password);

  const sockets = new Set<string>();
  for (const fd of await readdir(join(proc, "fd"))) {
    const inode = /^socket:\[(\d+)\]$/.exec(await readlink(join(proc, "fd", fd)).catch(() => ""))?.[1];
    if (inode !== undefined) sockets.add(inode);
  }
  expect(sockets.size).toBeGreaterThan(0);
  for (const table of ["tcp", "tcp6"]) {
    const lines = (await readFile(join(proc, "net", table), "utf8").catch(() => "")).split("\n").slice(1);
    expect(lines.filter((line) => sockets.has(line.trim().split(/\s+/)[9] ?? ""))).toEqual([]);
  }
});

it("an adopted Redis is not stopped by stop(), and is taken over once its owner is gone", async () => {
  const owner = await start();
  const guest = await start();
  expect(guest.adopted).toBe(true);
  const other = await start();
  await other.stop();
  expect((await probe(owner.socket, owner.password)).state).toBe("ready");

  await client(owner).set("kept", "yes");
  await owner.stop();
  await Promise.all([guest.ensure(), guest.ensure(), guest.ensure()]);
  expect(guest.adopted).toBe(false);
  expect(guest.pid()).not.toBe(owner.pid());
  expect(await client(guest).get("kept")).toBe("yes");
});

it("stop is final", async () => {
  const redis = await start();
  await Promise.all([redis.stop(), redis.stop()]);
  await expect(redis.ensure()).rejects.toThrow("stopped");
  expect(redis.pid()).toBeUndefined();
});

it("puts the socket of a long path into a private directory", async () => {
  const dataDir = join(root, "d".repeat(120));
  const [one, two] = [await start({ dataDir, runtimeDir: root }), await start({ dataDir, runtimeDir: root })];
  expect(two.adopted).toBe(true);
  expect(one.socket.startsWith(join(root, "errand-"))).toBe(true);
  expect(((await lstat(join(one.socket, ".."))).mode & 0o777).toString(8)).toBe("700");
  await expect(client(one).ping()).resolves.toBe("PONG");
});

it("loads an append-only file that a power cut shortened, and says of a damaged one why it cannot be loaded", async () => {
  const first = await start();
  await client(first).set("kept", "yes");
  await first.stop();
  const directory = join(root, "data", "redis", "appendonlydir");
  const tail = (await readdir(directory)).find((name) => name.endsWith(".incr.aof")) ?? "";
  await appendFile(join(directory, tail), "*3\r\n$3\r\nSET\r\n$4\r\nha");
  const second = await start();
  expect(await client(second).get("kept")).toBe("yes");
  await second.stop();

  await writeFile(join(directory, tail), "this is no AOF\r\n");
  await expect(start()).rejects.toThrow(/ended while starting \(exit code 1\).*redis\.log.*Bad file format/s);
});

it("refuses a directory that belongs to another user", async () => {
  const root0 = process.getuid?.() === 0;
  if (root0) await chown(root, 65_534, 65_534);
  await expect(start({ dataDir: root0 ? root : "/" })).rejects.toThrow("belongs to another user");
});

it("ends the server when its parent asks for it", async () => {
  const child = await launch(installed, `unixsocket ${join(root, "s")}\nsave ""\n`, join(root, "lock"));
  await until(async () => (await probe(join(root, "s"), "none")).state === "ready");
  await terminate(child);
  expect(child.exit()).toMatchObject({ code: 0 });
});

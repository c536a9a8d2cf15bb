/** The search for a server, against real binaries. Limit: the Debian step needs apt-get and a reachable mirror. */
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type FindOptions,
  findRedisServer,
  type RedisServerBinary,
} from "../../../src/redis/embedded/find-server.ts";
import { testRedisBinary } from "../../support/redis-server.ts";

let root: string;
let real: RedisServerBinary;
let announced: string[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "errand-find-"));
  real = await testRedisBinary();
  announced = [];
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

function options(more: Partial<FindOptions> = {}): FindOptions {
  return {
    path: "",
    cacheDir: join(root, "cache"),
    install: false,
    announce: (line) => announced.push(line),
    ...more,
  };
}

/** A directory for the PATH with one command in it. */
async function command(directory: string, name: string, script: string): Promise<string> {
  const path = join(root, directory);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(path, name), 0o755);
  return path;
}

function realServer(): string {
  const libraries = real.env.LD_LIBRARY_PATH ?? "";
  return `LD_LIBRARY_PATH='${libraries}' exec '${real.command}' "$@"`;
}

describe("a configured server", () => {
  it("is used, by path or by name, before any other", async () => {
    const directory = await command("bin", "my-redis", realServer());
    const other = await command("other", "redis-server", realServer());
    const byPath = await findRedisServer(options({ configured: join(directory, "my-redis"), path: other }));
    expect(byPath.command).toBe(join(directory, "my-redis"));
    expect(byPath.version).toBe(real.version);
    const byName = await findRedisServer(options({ configured: "my-redis", path: `${other}:${directory}` }));
    expect(byName.command).toBe(join(directory, "my-redis"));
  });

  it.each([
    ["no such file", "/nowhere/redis-server"],
    ["its --version names no Redis or Valkey server", process.execPath],
    ["not executable", tmpdir()],
  ])("that does not work is an error with the reason: %s", async (reason, configured) => {
    const good = await command("bin", "redis-server", realServer());
    const attempt = findRedisServer(options({ configured, path: good }));
    await expect(attempt).rejects.toThrow(`ERRAND_REDIS_BIN: ${configured}: ${reason}`);
    await expect(attempt).rejects.toThrow("ERRAND_REDIS_URL");
  });
});

describe("the PATH", () => {
  it("is searched for redis-server, then for valkey-server", async () => {
    const valkey = await command("first", "valkey-server", "echo 'Valkey server v=8.0.1 sha=0:0'");
    const redis = await command("second", "redis-server", realServer());
    const both = await findRedisServer(options({ path: `${valkey}:${redis}` }));
    expect(both.command).toBe(join(redis, "redis-server"));
    const one = await findRedisServer(options({ path: valkey }));
    expect(one).toMatchObject({ version: "8.0.1", flavor: "valkey" });
  });

  it("may contain servers that are too old or broken: they are skipped", async () => {
    const old = await command("old", "redis-server", "echo 'Redis server v=6.2.14 sha=0:0'");
    const broken = await command("broken", "redis-server", "echo 'no libfoo' >&2; exit 127");
    const good = await command("good", "redis-server", realServer());
    const found = await findRedisServer(options({ path: `${old}:${broken}:relative::${good}` }));
    expect(found.command).toBe(join(good, "redis-server"));

    const attempt = findRedisServer(options({ path: `${old}:${broken}` }));
    await expect(attempt).rejects.toThrow("Redis 6.2.14 is too old");
    await expect(attempt).rejects.toThrow("no libfoo");
  });
});

it("without a server: the error names what was tried and what helps", async () => {
  const attempt = findRedisServer(options({ install: true }));
  const tried = [
    "redis-server: not on the PATH",
    "valkey-server: not on",
    "cache/redis: not there",
    "apt-get",
  ];
  for (const text of [...tried, "ERRAND_REDIS_BIN", "ERRAND_REDIS_URL"]) {
    await expect(attempt).rejects.toThrow(text);
  }
  expect(announced).toEqual([]);
});

it("the error names how to install one on this platform", async () => {
  const failed = (platform: NodeJS.Platform) => expect(findRedisServer(options({ platform }))).rejects;
  await failed("linux").toThrow("Install redis-server (7.0 or newer)");
  await failed("darwin").toThrow("Run 'brew install redis'");
});

const apt = ["/usr/bin/apt-get", "/usr/bin/dpkg"];
const missing = apt.filter((tool) => {
  try {
    execFileSync(tool, ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return true;
  }
});

describe.skipIf(missing.length > 0)(`Debian's package (skipped where missing: ${apt.join(", ")})`, () => {
  /** A PATH with apt-get, but without any Redis that may be installed. */
  async function aptOnly(): Promise<string> {
    const path = join(root, "apt");
    await mkdir(path);
    for (const tool of apt) await symlink(tool, join(path, tool.slice("/usr/bin/".length)));
    return path;
  }

  it("is unpacked into the cache once, even by two starts at once", { timeout: 600_000 }, async () => {
    const where = options({ path: await aptOnly(), install: true });
    const [one, two] = await Promise.all([findRedisServer(where), findRedisServer(where)]);
    expect(one).toEqual(two);
    expect(one.command).toBe(join(root, "cache", "redis", "redis-server"));
    expect(one.flavor).toBe("redis");
    expect(announced[0]).toContain(join(root, "cache", "redis"));
    expect(await readdir(join(root, "cache"))).toEqual(["redis"]);

    announced = [];
    expect(await findRedisServer({ ...where, install: false })).toEqual(one);
    expect(announced).toEqual([]);

    // A cached server that no longer runs is replaced.
    await rm(join(root, "cache", "redis", "usr"), { recursive: true });
    expect(await findRedisServer(where)).toEqual(one);
    expect(await readdir(join(root, "cache"))).toEqual(["redis"]);
  });

  it("leaves nothing behind if it is unavailable, and the error says why", async () => {
    const path = await command(
      "no-net",
      "apt-get",
      "echo 'E: Could not resolve http://me:secret@mirror' >&2; exit 100",
    );
    await symlink("/usr/bin/dpkg", join(path, "dpkg"));
    const attempt = findRedisServer(options({ path, install: true }));
    await expect(attempt).rejects.toThrow("apt-get update: E: Could not resolve http://mirror");
    expect(await readdir(join(root, "cache"))).toEqual([]);
  });
});

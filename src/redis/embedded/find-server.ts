/**
 * Finds a Redis or Valkey server for the embedded Redis. If the machine has none, it unpacks Debian's package into the
 * cache and leaves the system unchanged. Limit: a cached server is never updated; to update it, delete the cache.
 */
import { execFile } from "node:child_process";
import {
  access,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { makeFolder } from "./make-folder.ts";

export type RedisServerBinary = {
  readonly command: string;
  /** The server's whole environment; it inherits nothing from the gateway, whose environment may have tokens. */
  readonly env: Readonly<Record<string, string>>;
  readonly version: string;
  readonly flavor: "redis" | "valkey";
};

export type FindOptions = {
  readonly configured?: string | undefined;
  /** The PATH to search. */
  readonly path: string;
  readonly cacheDir: string;
  readonly announce: (line: string) => void;
  /** Whether Debian's package may be downloaded; default: yes. */
  readonly install?: boolean;
  /** Default: that of this process. */
  readonly platform?: NodeJS.Platform;
};

const remedies = (platform: NodeJS.Platform = process.platform): string =>
  `${platform === "darwin" ? "Run 'brew install redis'" : "Install redis-server (7.0 or newer) or valkey-server (7.2 or newer)"}, ` +
  "or name such a binary in ERRAND_REDIS_BIN, or use a Redis that runs elsewhere through ERRAND_REDIS_URL.";

/** ERRAND_REDIS_BIN names no usable server: a mistake in the configuration. */
export class RedisBinaryError extends Error {
  override readonly name = "RedisBinaryError";
}

export async function findRedisServer(options: FindOptions): Promise<RedisServerBinary> {
  const env = { PATH: options.path };
  if (options.configured !== undefined) {
    const [command = resolve(options.configured)] = options.configured.includes("/")
      ? []
      : await onPath(options.configured, options.path);
    const found = await verify(command, env);
    if (typeof found !== "string") return found;
    throw new RedisBinaryError(`ERRAND_REDIS_BIN: ${command}: ${found}. ${remedies(options.platform)}`);
  }

  const tried: string[] = [];
  for (const name of ["redis-server", "valkey-server"]) {
    const commands = await onPath(name, options.path);
    if (commands.length === 0) tried.push(`${name}: not on the PATH`);
    for (const command of commands) {
      const found = await verify(command, env);
      if (typeof found !== "string") return found;
      tried.push(`${command}: ${found}`);
    }
  }

  const cached = await verifyCached(options);
  if (typeof cached !== "string") return cached;
  tried.push(`${cachedRoot(options)}: ${cached}`);

  const unpacked =
    options.install === false ? "not downloaded; the caller does not allow it" : await unpackDebian(options);
  if (typeof unpacked !== "string") return unpacked;
  tried.push(`Debian's package: ${unpacked}`);
  throw new Error(
    `No usable Redis server.\n${tried.map((line) => `  ${line}\n`).join("")}${remedies(options.platform)}`,
  );
}

/** The server that the command starts, or the reason why it cannot be used. */
async function verify(command: string, env: Record<string, string>): Promise<RedisServerBinary | string> {
  const ran = await run(command, ["--version"], 5_000, env);
  if (ran.problem !== undefined) return ran.problem;
  const match = /^(Redis|Valkey) server v=((\d+)\.(\d+)\.\d+)/.exec(ran.output);
  const [, name, version, major, minor] = match ?? [];
  if (name === undefined || version === undefined) return "its --version names no Redis or Valkey server";
  const flavor = name === "Redis" ? "redis" : "valkey";
  // The scripts need `#!lua flags=allow-oom`, new in Redis 7.0. Valkey's first version is 7.2.
  const minimum = flavor === "redis" ? 700 : 702;
  if (Number(major) * 100 + Number(minor) < minimum) return `${name} ${version} is too old`;
  return { command, env, version, flavor };
}

async function onPath(name: string, path: string): Promise<string[]> {
  const found: string[] = [];
  for (const directory of path.split(delimiter)) {
    // An empty or relative entry depends on the working directory; a server from there could be anything.
    if (!isAbsolute(directory)) continue;
    const command = join(directory, name);
    const runnable = await access(command, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runnable) found.push(command);
  }
  return found;
}

function cachedRoot(options: FindOptions): string {
  return join(options.cacheDir, "redis");
}

async function verifyCached(options: FindOptions): Promise<RedisServerBinary | string> {
  const root = cachedRoot(options);
  const owner = await stat(root).then(
    (stats) => stats.uid,
    () => undefined,
  );
  if (owner === undefined) return "not there";
  if (owner !== process.getuid?.()) return "belongs to another user";
  return verifyUnpacked(root, options.path);
}

async function verifyUnpacked(root: string, path: string): Promise<RedisServerBinary | string> {
  const libraries = new Set<string>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (/\.so(\.|$)/.test(entry.name)) libraries.add(entry.parentPath);
  }
  return verify(join(root, "redis-server"), {
    PATH: path,
    LD_LIBRARY_PATH: [...libraries].join(delimiter),
  });
}

/**
 * Unpacks into a temporary directory and renames it, so that a killed start, or two at once, leave no incomplete cache.
 */
async function unpackDebian(options: FindOptions): Promise<RedisServerBinary | string> {
  const [aptGet] = await onPath("apt-get", options.path);
  const [dpkg] = await onPath("dpkg", options.path);
  if (aptGet === undefined || dpkg === undefined) return "apt-get and dpkg are not on the PATH";

  const root = cachedRoot(options);
  options.announce(`No Redis server here: fetching Debian's, once, into ${root} (some seconds) ...`);
  await makeFolder(options.cacheDir, 0o700);
  await removeLeftovers(options.cacheDir);
  const work = await mkdtemp(join(options.cacheDir, "unpack-"));
  try {
    const problem = await download(aptGet, work);
    if (problem !== undefined) return problem;
    const fresh = join(work, "root");
    const archives = join(work, "cache", "archives");
    for (const file of await readdir(archives)) {
      if (!file.endsWith(".deb")) continue;
      const unpacked = await run(dpkg, ["-x", join(archives, file), fresh], 60_000);
      if (unpacked.problem !== undefined) return `${file}: ${unpacked.problem}`;
    }
    // Debian's redis-check-rdb is the server, too: the name under which it is started decides what it does.
    await symlink("usr/bin/redis-check-rdb", join(fresh, "redis-server"));
    const verdict = await verifyUnpacked(fresh, options.path);
    if (typeof verdict === "string") return verdict;
    if (!(await moved(fresh, root))) {
      // Another start was faster, or the cached server no longer runs, in which case it is replaced.
      const theirs = await verifyCached(options);
      if (typeof theirs !== "string") return theirs;
      await rename(root, join(work, "broken"));
      await moved(fresh, root);
    }
    return await verifyCached(options);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Runs apt with lists and a cache of its own, without locks or a change of user, so that it works for every user. */
async function download(aptGet: string, work: string): Promise<string | undefined> {
  const lists = join(work, "lists");
  const cache = join(work, "cache");
  await mkdir(join(lists, "partial"), { recursive: true });
  await mkdir(join(cache, "archives", "partial"), { recursive: true });
  const config = join(work, "apt.conf");
  // Removes the system's hooks, which clean its caches and wake its daemons. Only a file can: -o cannot clear a list.
  const hooks = ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"];
  await writeFile(config, hooks.map((hook) => `#clear APT::Update::${hook};\n`).join(""));
  const settings = [
    `Dir::State::lists=${lists}`,
    `Dir::Cache=${cache}`,
    "Debug::NoLocking=1",
    "APT::Sandbox::User=",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
  ];
  const common = ["-c", config, ...settings.flatMap((setting) => ["-o", setting])];
  const updated = await run(aptGet, [...common, "update"], 180_000);
  if (updated.problem !== undefined) return `apt-get update: ${updated.problem}`;
  // --reinstall: if redis-tools is installed, apt would download nothing.
  const wanted = "install --download-only --reinstall --no-install-recommends -y redis-tools".split(" ");
  const fetched = await run(aptGet, [...common, ...wanted], 180_000);
  return fetched.problem === undefined ? undefined : `apt-get install: ${fetched.problem}`;
}

/** Deletes the directories of killed starts: those older than an hour, because no start takes that long. */
async function removeLeftovers(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const path = join(cacheDir, name);
    if (!name.startsWith("unpack-")) continue;
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > 3_600_000) await rm(path, { recursive: true, force: true });
  }
}

async function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    () => false,
  );
}

type ProcessResult = { readonly output: string; readonly problem?: string };

function run(
  command: string,
  args: readonly string[],
  timeout: number,
  env?: Record<string, string>,
): Promise<ProcessResult> {
  return new Promise((done) => {
    execFile(command, args, { timeout, ...(env && { env }) }, (error, stdout, stderr) => {
      done(error === null ? { output: stdout } : { output: stdout, problem: explain(error, stderr) });
    });
  });
}

function explain(error: { code?: unknown; killed?: boolean }, stderr: string): string {
  if (error.killed) return "took too long";
  if (error.code === "ENOENT") return "no such file";
  if (error.code === "EACCES") return "not executable";
  // A mirror's URL may contain a password.
  const lines = stderr.replaceAll(/\/\/[^/\s@]*@/g, "//").split("\n");
  const line = lines.find((text) => text.startsWith("E:")) ?? lines.find((text) => text.trim() !== "");
  return line?.trim() ?? `exits with ${error.code}`;
}

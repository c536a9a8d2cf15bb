/**
 * The files of the embedded Redis: a private directory, the password, the paths of socket and lock.
 * Limit: one user per directory; a directory of another user is refused.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  access,
  chmod,
  constants,
  link,
  lstat,
  mkdir,
  open,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeFolder } from "./make-folder.ts";

/** The errors of a path that cannot be the data directory. */
const BAD_PATH = "EACCES EPERM EROFS EEXIST ENOENT ENOTDIR ELOOP ENAMETOOLONG EINVAL".split(" ");

export type EmbeddedHome = {
  readonly data: string;
  readonly lock: string;
  readonly logfile: string;
  readonly socket: string;
  readonly password: string;
};

/** The data directory cannot be used as it is: a mistake in the configuration. */
export class DataDirError extends Error {
  override readonly name = "DataDirError";

  constructor(problem: string) {
    super(`the data directory ${problem}; choose another with --data-dir or ERRAND_DATA_DIR`);
  }
}

/** Makes the data directory private to this user, because it holds the operator's token. Returns its real path. */
export async function secureDataDir(dataDir: string): Promise<string> {
  try {
    await makeFolder(dataDir, 0o700);
    const root = await realpath(dataDir);
    const stats = await stat(root);
    if (!stats.isDirectory()) throw new DataDirError(`${dataDir} is not a folder`);
    if (stats.uid !== process.getuid?.()) throw new DataDirError(`${root} belongs to another user`);
    if ((stats.mode & 0o077) !== 0) await chmod(root, 0o700);
    await access(root, constants.W_OK | constants.X_OK);
    await writeFile(join(root, ".gitignore"), "*\n", { flag: "wx" }).catch(() => undefined);
    return root;
  } catch (error) {
    throw (await explained(error, dataDir)) ?? error;
  }
}

/**
 * The problem with the path that caused an error of the file system. Undefined for other causes, such as a full disk,
 * and for our own errors.
 */
async function explained(error: unknown, dataDir: string): Promise<DataDirError | undefined> {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!BAD_PATH.includes(code)) return undefined;
  for (let path = dataDir; ; path = dirname(path)) {
    const found = await lstat(path).catch(() => null);
    if (found !== null) {
      const isFolder = await stat(path).then(
        (target) => target.isDirectory(),
        () => null,
      );
      if (isFolder === null && found.isSymbolicLink())
        return new DataDirError(`${path} is a symbolic link to a folder that does not exist`);
      if (isFolder === false) return new DataDirError(`${path} is not a folder`);
      if (path === dataDir) return new DataDirError(`${path} is not writable (${code})`);
      break;
    }
    if (dirname(path) === path) break;
  }
  return new DataDirError(`${dataDir} cannot be created (${code})`);
}

export const logfileIn = (dataDir: string): string => join(dataDir, "redis", "redis.log");

export async function prepareHome(dataDir: string, runtimeDir: string | undefined): Promise<EmbeddedHome> {
  const root = await secureDataDir(dataDir);
  const data = join(root, "redis");
  await makeFolder(data, 0o700);
  return {
    data,
    lock: join(root, "lock"),
    logfile: logfileIn(root),
    socket: await socketPath(root, runtimeDir),
    password: await passwordOf(join(root, "redis-password")),
  };
}

/** Where the Redis of this data directory listens while it runs. Creates nothing; null if there is no data. */
export async function existingHome(
  dataDir: string,
  runtimeDir: string | undefined,
): Promise<Pick<EmbeddedHome, "socket" | "password"> | null> {
  const root = await realpath(dataDir).catch(() => null);
  if (root === null || !(await exists(join(root, "redis", "appendonlydir")))) return null;
  const password = await readFile(join(root, "redis-password"), "utf8").catch(missing);
  return password === null ? null : { socket: await socketPath(root, runtimeDir), password };
}

function missing(error: unknown): null {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
  throw error;
}

/** Written to a temporary file and linked, so that two concurrent starts read the same complete password. */
async function passwordOf(path: string): Promise<string> {
  const mine = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(mine, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(32).toString("hex"));
    await file.sync();
    await link(mine, path).catch(async (error: unknown) => {
      if (!(await exists(path))) throw error;
    });
  } finally {
    await file.close();
    await rm(mine, { force: true });
  }
  const password = await readFile(path, "utf8");
  if (!/^[0-9a-f]{64}$/.test(password)) throw new Error(`${path} is damaged; remove it while no Redis runs.`);
  return password;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** A path that is too long for a socket address is replaced by one in a private directory elsewhere. */
async function socketPath(root: string, runtimeDir: string | undefined): Promise<string> {
  const longest = process.platform === "linux" ? 107 : 103;
  const near = join(root, "redis.sock");
  if (Buffer.byteLength(near) <= longest) return near;
  const name = `errand-${process.getuid?.()}-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`;
  for (const base of [runtimeDir, tmpdir(), "/tmp"]) {
    if (base === undefined || Buffer.byteLength(join(base, name, "redis.sock")) > longest) continue;
    const directory = join(base, name);
    await mkdir(directory, { mode: 0o700 }).catch(() => undefined);
    const stats = await lstat(directory);
    // Any user may have created it in /tmp before us.
    if (!stats.isDirectory() || stats.uid !== process.getuid?.() || (stats.mode & 0o077) !== 0) {
      throw new Error(`${directory} is not a private directory of this user; remove it.`);
    }
    return join(directory, "redis.sock");
  }
  throw new Error(`${near} is too long for the path of a socket; choose a shorter ERRAND_DATA_DIR.`);
}

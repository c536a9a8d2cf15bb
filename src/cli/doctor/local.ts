/** The checks of `errand doctor` on this machine. Limit: file permissions are not checked on Windows. */
import { constants } from "node:fs";
import { access, lstat, stat } from "node:fs/promises";
import { join } from "node:path";
import { platform, versions } from "node:process";
import { DISK_LOW_BYTES } from "../../schema/status.ts";
import type { Found } from "../discover.ts";
import type { LastLoad, Preflight } from "../host.ts";
import { sizeText } from "../show/size.ts";
import type { Check } from "./check.ts";

/** As in package.json's `engines`. */
const NODE_MIN = [20, 19] as const;
/** Redis cannot be expected to write any more. */
const DISK_FULL_BYTES = 16 * 1024 * 1024;
/** Anyone who can read these files can act as the operator. */
const SECRETS = ["operator-token", "redis-password", "gateway.json"];

export function nodeCheck(version = versions.node): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isRecent = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  if (isRecent) return { check: "node", status: "ok", detail: version };
  return {
    check: "node",
    status: "fail",
    detail: `${version} is too old`,
    remedy: `Use Node ${NODE_MIN.join(".")} or newer.`,
    category: "CONFIG",
  };
}

export function settingsCheck(problems: readonly string[]): Check {
  if (problems.length === 0)
    return { check: "settings", status: "ok", detail: "the ERRAND_* variables are valid" };
  return {
    check: "settings",
    status: "fail",
    detail: problems.join("; "),
    remedy: "Correct or unset these variables; a broker would not start with them.",
    category: "CONFIG",
  };
}

export async function dataDirCheck({ local, url }: Found, dataDir: string): Promise<Check> {
  const check = "data_dir";
  if (!local) {
    if (url !== undefined) return { check, status: "skip", detail: "not needed: the broker's URL is given" };
    if (await lstat(dataDir).catch(() => null)) {
      const remedy = "Set ERRAND_DATA_DIR to another directory.";
      return { check, status: "fail", detail: `${dataDir} is not a folder`, remedy, category: "CONFIG" };
    }
    return { check, status: "ok", detail: `${dataDir} does not exist yet; 'errand serve' creates it` };
  }
  const { folder } = local;
  const writable = await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!writable) {
    const remedy = "Run as the directory's owner, or set ERRAND_DATA_DIR to another directory.";
    return { check, status: "fail", detail: `${folder} is not writable`, remedy, category: "CONFIG" };
  }
  const open = platform === "win32" ? [] : await readableByOthers(folder);
  if (open.length === 0) return { check, status: "ok", detail: `${folder}, private` };
  return {
    check,
    status: "fail",
    detail: `other users can read ${open.join(", ")}`,
    remedy: `Run 'chmod go= ${open.join(" ")}'. If others use this machine, replace the operator token: stop the broker, delete the file, start the broker.`,
    category: "CONFIG",
  };
}

/** Files in a private directory are private, whatever their own permissions. */
async function readableByOthers(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of [folder, ...SECRETS.map((name) => join(folder, name))]) {
    const { mode } = await stat(path).catch(() => ({ mode: 0 }));
    if ((mode & 0o077) !== 0) found.push(path);
    else if (path === folder) return [];
  }
  return found;
}

/** How the embedded Redis in this data directory last loaded its append-only file. */
export function appendOnlyCheck({ truncated, damaged }: LastLoad, dataDir: string): Check {
  const check = "append_only";
  if (damaged !== null) {
    const remedy = `Copy ${join(dataDir, "redis")} first. Then delete it and restore a backup, or run 'redis-check-aof --fix' on the manifest in its appendonlydir, which drops everything after the damage.`;
    return {
      check,
      status: "fail",
      detail: `the append-only file is damaged: ${damaged}`,
      remedy,
      category: "CONFIG",
    };
  }
  if (truncated === null)
    return { check, status: "ok", detail: "the last start loaded the complete append-only file" };
  const { file, offset } = truncated;
  return {
    check,
    status: "warn",
    detail: `the last start dropped an incomplete write at byte ${offset} of ${file}`,
    remedy:
      "With ERRAND_REDIS_FSYNC=always, it was never acknowledged. With everysec, check the delegations from just before the crash.",
  };
}

/** The Redis that a broker on this machine would use. */
export function* redisHereChecks(found: Awaited<ReturnType<Preflight["redis"]>>): Generator<Check> {
  const { detail, refused, warnings, isAway = false } = found;
  const [why] = [refused, warnings].find((list) => list.length > 0) ?? [];
  if (why === undefined) {
    yield { check: "redis", status: "ok", detail: `a broker here would use ${detail}` };
    return;
  }
  const problems = [...refused, ...warnings].join("; ");
  const isOwn = detail.startsWith("embedded");
  const remedy = isOwn
    ? "Install redis-server (7.0 or newer) or valkey-server (7.2 or newer), or set ERRAND_REDIS_BIN or ERRAND_REDIS_URL."
    : isAway
      ? "Start that Redis, or correct or unset ERRAND_REDIS_URL."
      : "Configure that Redis (appendonly yes, maxmemory-policy noeviction), or correct or unset ERRAND_REDIS_URL.";
  yield {
    check: "redis",
    status: refused.length > 0 ? "fail" : "warn",
    detail: `${detail}: ${problems}`,
    remedy,
    ...(refused.length > 0 && { category: isAway ? ("TRANSPORT" as const) : ("CONFIG" as const) }),
  };
}

/** Only where space is short: the numbers change all the time. */
/** Without `total`, uploads are refused; otherwise it is the disk of Redis. */
export function* diskCheck(what: string, free: number, total?: number): Generator<Check> {
  if (free >= DISK_LOW_BYTES) return;
  yield {
    check: "disk",
    status: free < DISK_FULL_BYTES ? "fail" : "warn",
    detail: `the disk of ${what} is nearly full: ${sizeText(free)}${total === undefined ? "" : ` of ${sizeText(total)}`} are free`,
    remedy:
      total === undefined
        ? "Make room there. Until then, uploads are refused."
        : "Make room there. On a full disk Redis ends, and nothing is accepted until there is room again.",
    ...(free < DISK_FULL_BYTES && { category: "TRANSPORT" as const }),
  };
}

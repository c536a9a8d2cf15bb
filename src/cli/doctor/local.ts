/** What `errand doctor` finds on this machine. Limit: rights are POSIX; elsewhere they are not looked at. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { join } from "node:path";
import { platform, versions } from "node:process";
import type { Found } from "../discover.ts";
import type { LastLoad, Preflight } from "../host.ts";
import type { Check } from "./check.ts";

/** As package.json's `engines`. */
const NODE_MIN = [20, 19] as const;
/** Whoever reads these is the operator. */
const SECRETS = ["operator-token", "redis-password", "gateway.json"];

export function nodeCheck(version = versions.node): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  if (enough) return { check: "node", status: "ok", detail: version };
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
    if (url !== undefined) return { check, status: "skip", detail: "the broker is given by its URL" };
    return { check, status: "ok", detail: `there is none at ${dataDir} yet; 'errand serve' makes it` };
  }
  const { folder } = local;
  const writable = await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!writable) {
    const remedy = `Run as the folder's owner, or give another one in ERRAND_DATA_DIR.`;
    return { check, status: "fail", detail: `${folder} is not writable`, remedy, category: "CONFIG" };
  }
  const open = platform === "win32" ? [] : await readableByOthers(folder);
  if (open.length === 0) return { check, status: "ok", detail: `${folder}, yours alone` };
  return {
    check,
    status: "fail",
    detail: `others may read ${open.join(", ")}`,
    remedy: `chmod go= ${open.join(" ")}; if others use this machine, have a new operator's token made: stop the broker, delete the file, start it.`,
    category: "CONFIG",
  };
}

/** What is in a closed folder is closed, whatever its own rights. */
async function readableByOthers(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of [folder, ...SECRETS.map((name) => join(folder, name))]) {
    const { mode } = await stat(path).catch(() => ({ mode: 0 }));
    if ((mode & 0o077) !== 0) found.push(path);
    else if (path === folder) return [];
  }
  return found;
}

/** How the private Redis in this data directory last loaded its file. An external Redis has a log of its own. */
export function appendOnlyCheck({ truncated, damaged }: LastLoad, dataDir: string): Check {
  const check = "append_only";
  if (damaged !== null) {
    const remedy = `Copy ${join(dataDir, "redis")}, then restore a backup, or run 'redis-check-aof --fix' on the manifest in its appendonlydir, which drops everything after the damage.`;
    return {
      check,
      status: "fail",
      detail: `the append-only file is damaged: ${damaged}`,
      remedy,
      category: "CONFIG",
    };
  }
  if (truncated === null)
    return { check, status: "ok", detail: "the last start loaded the append-only file whole" };
  const { file, offset } = truncated;
  return {
    check,
    status: "warn",
    detail: `the last start dropped a write that was cut off, at byte ${offset} of ${file}`,
    remedy:
      "With fsync always it was not acknowledged. With everysec, check for delegations from just before the crash.",
  };
}

/** No broker to ask: what one would find here. */
export function* redisHereChecks(found: Awaited<ReturnType<Preflight["redis"]>>): Generator<Check> {
  const { detail, refused, warnings } = found;
  const [why] = [refused, warnings].find((list) => list.length > 0) ?? [];
  if (why === undefined) {
    yield { check: "redis", status: "ok", detail: `a broker here would use ${detail}` };
    return;
  }
  const said = [...refused, ...warnings].join("; ");
  const isOwn = detail.startsWith("embedded");
  const remedy = isOwn
    ? "Install redis-server (7.0 or newer) or valkey-server (7.2 or newer), or set ERRAND_REDIS_BIN or ERRAND_REDIS_URL."
    : "Mend it there (appendonly yes, maxmemory-policy noeviction), or correct or unset ERRAND_REDIS_URL.";
  yield {
    check: "redis",
    status: refused.length > 0 ? "fail" : "warn",
    detail: `${detail}: ${said}`,
    remedy,
    ...(refused.length > 0 && { category: "CONFIG" as const }),
  };
}

/** The checks of `errand doctor` on the broker. Limit: one attempt each. */
import * as z from "zod";
import { ErrandApiError } from "../../client/errors.ts";
import { type ConnectionOptions, Http } from "../../client/http.ts";
import { durationText } from "../../client/words.ts";
import { type GatewayStatus, type RedisStatus, type Status, statusSchema } from "../../schema/status.ts";
import { type Found, GET_TOKEN, START } from "../discover.ts";
import { recoveryFor } from "../recovery.ts";
import { degradedBy, withStorageReason } from "../storage-reason.ts";
import type { Check } from "./check.ts";
import { diskCheck } from "./local.ts";
import { reachChecks } from "./reach.ts";

/** A smaller skew needs no warning. */
const SKEW_MS = 2000;
const ANSWER_MS = 5000;
/** The share of maxmemory at which the broker refuses new work. */
const FULL = 0.75;

export async function* brokerChecks(found: Found, ownVersion: string): AsyncGenerator<Check> {
  const { url, urlFrom, token, tokenFrom } = found;
  if (url === undefined) {
    const detail = found.local ? `not running on ${found.local.folder}` : "not found";
    yield { check: "broker", status: "fail", detail, remedy: START, category: "TRANSPORT" };
    yield* skipped("no broker", "token", "version", "clock");
    return;
  }
  const connection = { url, token, failFast: true, retryForMs: 0 };
  const failure = await failureOf(() =>
    new Http(connection).request(z.object({ status: z.string() }), {
      path: "/healthz",
      timeoutMs: ANSWER_MS,
    }),
  );
  if (failure) {
    yield failed("broker", failure);
    yield* skipped("the broker does not respond", "token", "version", "clock");
    return;
  }
  yield { check: "broker", status: "ok", detail: `${url} (from ${urlFrom}) responds` };
  // The other checks see it only if their own requests meet the part that is away.
  const degraded = await degradedBy(url);
  if (degraded !== undefined) {
    const remedy = "Check the masters of the Redis Cluster; until all respond, some requests fail.";
    yield { check: "readiness", status: "warn", detail: `the broker is degraded: ${degraded}`, remedy };
  }
  if (token === undefined) {
    const remedy = GET_TOKEN;
    yield { check: "token", status: "fail", detail: `no token for ${url}`, remedy, category: "AUTH" };
    yield* skipped("needs a token", "version", "clock", "redis");
    return;
  }
  yield* statusChecks(connection, `from ${tokenFrom}`, ownVersion);
}

async function* statusChecks(
  connection: ConnectionOptions,
  from: string,
  ownVersion: string,
): AsyncGenerator<Check> {
  const askedAt = Date.now();
  let status: Status;
  try {
    status = await new Http(connection).request(statusSchema, { path: "/v1/status", timeoutMs: ANSWER_MS });
  } catch (error) {
    if (!(error instanceof ErrandApiError)) throw error;
    const isToken = error.category === "AUTH";
    if (isToken) yield failed("token", error);
    const why = "the broker did not return its status";
    yield* skipped(why, ...(isToken ? [] : ["token" as const]), "version", "clock");
    if (isToken) yield* skipped(why, "redis");
    else yield failed("redis", await withStorageReason(error, connection.url));
    return;
  }
  const tookMs = Date.now() - askedAt;
  yield { check: "token", status: "ok", detail: `${from}, for ${status.principal}` };
  yield versionCheck(ownVersion, status.version);
  yield clockCheck(Date.parse(status.now) - (askedAt + tookMs / 2), tookMs / 2);
  if (status.gateways) yield gatewaysCheck(status.gateways);
  yield* reachChecks(new Http(connection).url, status);
  const { files } = status;
  if (files && files.free_bytes !== null) yield* diskCheck("the files", files.free_bytes);
  if (status.redis === null) yield* skipped("shown only to the operator and viewers", "redis");
  else yield* redisChecks(status.redis);
}

export function versionCheck(own: string, broker: string): Check {
  if (own === broker) return { check: "version", status: "ok", detail: `${own}, same as the broker` };
  const detail = `this program is ${own}, the broker ${broker}`;
  return { check: "version", status: "warn", detail, remedy: "Use the same version on both sides." };
}

/** `aheadMs`: how far the broker's clock is ahead of this machine's. `errorMs`: how much the round trip may hide. */
export function clockCheck(aheadMs: number, errorMs: number): Check {
  const off = Math.abs(aheadMs);
  const skew = `${durationText(off)} ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  if (off - errorMs <= SKEW_MS)
    return { check: "clock", status: "ok", detail: "the broker's clock agrees with this machine's" };
  const remedy =
    "Synchronize both by NTP; until then, times that you pass or read (deadlines, events) are off by this much.";
  return { check: "clock", status: "warn", detail: `the broker's clock is ${skew}`, remedy };
}

function gatewaysCheck(gateways: readonly GatewayStatus[]): Check {
  const check = "gateways";
  const ready = gateways.filter(({ state }) => state === "ready").length;
  const restarts = gateways.reduce((sum, one) => sum + one.restarts, 0);
  const ended = restarts === 0 ? "" : `; ended unexpectedly: ${restarts}`;
  const detail = `${ready} of ${gateways.length} on this port are ready${ended}`;
  // A gateway that is stopping is being replaced, so it needs no warning.
  const isComplete = gateways.every(({ state }) => state !== "starting") && restarts === 0;
  if (isComplete) return { check, status: "ok", detail };
  const remedy = "Read the broker's log: it has the exit code or signal of each gateway that ended.";
  return { check, status: "warn", detail, remedy };
}

export function* redisChecks(redis: RedisStatus): Generator<Check> {
  const { source, product, version, maxmemory_policy: policy, appendonly, appendfsync } = redis;
  const own = source === "embedded";
  yield { check: "redis", status: "ok", detail: `${source}: ${product} ${version}` };
  if (policy === "noeviction" || policy === null) {
    yield { check: "redis_eviction", status: "ok", detail: policy ?? "not reported by the provider" };
  } else {
    yield {
      check: "redis_eviction",
      status: "fail",
      detail: `maxmemory-policy is ${policy}: accepted work can vanish`,
      remedy: "Set maxmemory-policy to noeviction.",
      category: "CONFIG",
    };
  }
  yield durabilityCheck(own, appendonly, appendfsync);
  yield memoryCheck(redis);
  const { disk_free_bytes: free, disk_total_bytes: total = 0 } = redis;
  if (free !== undefined) yield* diskCheck("the broker's data directory", free, total);
}

function durabilityCheck(own: boolean, appendonly: boolean, fsync: string | null): Check {
  const check = "redis_durability";
  if (appendonly && fsync === "always") {
    return { check, status: "ok", detail: "appendonly, fsync always: accepted work is on disk" };
  }
  if (!appendonly) {
    const detail = "appendonly is off: a restart of Redis may lose accepted work";
    return { check, status: "warn", detail, remedy: "Set appendonly to yes, and appendfsync to always." };
  }
  const detail = `appendfsync is ${fsync ?? "unknown"}: a power failure or a crash of Redis may lose the last seconds`;
  const remedy = own
    ? "Set ERRAND_REDIS_FSYNC=always, unless this is intended."
    : "Set appendfsync to always, unless this is intended.";
  return { check, status: "warn", detail, remedy };
}

function memoryCheck({ used_memory_bytes: used, maxmemory_bytes: max }: RedisStatus): Check {
  const check = "redis_memory";
  const mib = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;
  if (max === 0) {
    const remedy =
      "Set maxmemory below the machine's memory, so that new work is refused before Redis is killed.";
    return { check, status: "warn", detail: `${mib(used)} used, no limit`, remedy };
  }
  const detail = `${mib(used)} of ${mib(max)} used`;
  if (used < max * FULL) return { check, status: "ok", detail };
  const remedy = "Raise maxmemory, or lower ERRAND_RETENTION_SECONDS; until then, new work is refused.";
  return { check, status: "fail", detail, remedy, category: "TRANSPORT" };
}

/** Remedies in place of recoveries that say to run doctor, or that name an HTTP header. */
const REMEDIES: Readonly<Record<string, string>> = {
  unreachable:
    "Start a broker with 'npm start' in Errand's folder or 'errand serve', or correct --url or ERRAND_URL.",
  connection_lost: "Check that the broker's process runs, and read its log; then run this again.",
  no_answer:
    "Check that the broker's process runs and is not suspended, and read its log; then run this again.",
  redis_unavailable:
    "Check that the broker's Redis runs, is not suspended and has free disk space; the broker's log and Redis' log have the reason.",
  shutting_down: "Start the broker again with 'errand serve'.",
};

function failed(check: Check["check"], error: ErrandApiError): Check {
  return {
    check,
    status: "fail",
    detail: error.message,
    remedy: REMEDIES[error.code] ?? recoveryFor(error),
    category: error.category,
  };
}

function* skipped(detail: string, ...checks: Check["check"][]): Generator<Check> {
  for (const check of checks) yield { check, status: "skip", detail };
}

async function failureOf(body: () => Promise<unknown>): Promise<ErrandApiError | undefined> {
  try {
    await body();
    return undefined;
  } catch (error) {
    if (error instanceof ErrandApiError) return error;
    throw error;
  }
}

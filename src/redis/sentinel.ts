/**
 * The URL of a Redis whose master is named by Sentinels:
 * `redis+sentinel://[user:password@]host[:port][,host…]/NAME[/DB]`, or `rediss+sentinel://` for TLS. Limit: user and
 * password are those of Redis; the Sentinels' password is `?sentinel_password=`.
 */
import type { RedisOptions } from "ioredis";
import type { Address } from "./address.ts";

export interface SentinelTarget {
  readonly sentinels: readonly Address[];
  /** The Sentinels' name for the group of a master and its replicas. */
  readonly name: string;
  readonly db: number;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly sentinelPassword?: string;
}

const SCHEME = /^(rediss?)\+sentinel:\/\//;
const FORM = "redis+sentinel://host:26379,host:26379/NAME";
const DEFAULT_PORT = 26_379;
const SENTINEL_SILENCE_MS = 2_000;

export const isSentinelUrl = (url: string): boolean => SCHEME.test(url);

/** The problem with such a URL; null if there is none. */
export function sentinelProblemOf(url: string): string | null {
  const { hosts, path } = partsOf(url);
  if (hosts.some((host) => host === null)) {
    return `has an invalid address of a Sentinel; separate them by commas, and write a comma of a password as %2C: ${FORM}`;
  }
  if (path[0] === undefined || path[0] === "") return `does not name the master's group: ${FORM}`;
  if (path.length > 2 || !/^\d*$/.test(path[1] ?? ""))
    return `has more than a database number after the name: ${FORM}/0`;
  if (!isDecodable(url)) return "has a % that is not an escape; write it as %25";
  return null;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** For a valid URL. */
export function sentinelOf(url: string): SentinelTarget {
  const { scheme, hosts, path, first } = partsOf(url);
  const sentinelPassword = first?.searchParams.get("sentinel_password");
  return {
    sentinels: hosts.flatMap((host) => host ?? []),
    name: decodeURIComponent(path[0] ?? ""),
    db: Number(path[1] ?? 0),
    tls: scheme === "rediss",
    ...(first?.username && { username: decodeURIComponent(first.username) }),
    ...(first?.password && { password: decodeURIComponent(first.password) }),
    ...(sentinelPassword && { sentinelPassword }),
  };
}

export function sentinelOptionsOf(target: SentinelTarget): Omit<RedisOptions, "replyMapping"> {
  const { sentinels, tls, sentinelPassword, ...ofRedis } = target;
  return {
    ...ofRedis,
    sentinels: [...sentinels],
    // A silent Sentinel must not keep the others from being asked.
    sentinelCommandTimeout: SENTINEL_SILENCE_MS,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
  };
}

/** The user and password are at the first host, and name and query at the last one. */
function partsOf(url: string) {
  const [, scheme = "redis"] = SCHEME.exec(url) ?? [];
  const rest = url.replace(SCHEME, "");
  const end = /[/?]/.exec(rest)?.index ?? rest.length;
  const urls = rest
    .slice(0, end)
    .split(",")
    .map((host) => `redis://${host.trim()}`)
    .map((host) => (URL.canParse(host) && new URL(host).hostname !== "" ? new URL(host) : null));
  const tail = `redis://host${rest.slice(end)}`;
  const last = URL.canParse(tail) ? new URL(tail) : null;
  const [first] = urls;
  // In a query, + would be a space.
  if (first && last) first.search = last.search.replaceAll("+", "%2B");
  return {
    scheme,
    first,
    hosts: urls.map(
      (one): Address | null =>
        one && { host: one.hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(one.port || DEFAULT_PORT) },
    ),
    path: last?.pathname.split("/").slice(1) ?? [],
  };
}

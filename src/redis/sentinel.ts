/**
 * A Redis whose master is named by Sentinels. Its URL is
 * `redis+sentinel://[user:password@]host[:port][,host…]/NAME[/DB][?sentinel_password=…]`, or `rediss+sentinel://` for
 * TLS. Limit: the user and password in front of the hosts are those of Redis; a user of the Sentinels cannot be named.
 */
import type { Redis, RedisOptions } from "ioredis";
import type { Address } from "./address.ts";
import { ESCAPE_PERCENT, isDecodable, UNESCAPED } from "./escapes.ts";

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
const PASSWORD_PARAMETER = "sentinel_password";

export const isSentinelUrl = (url: string): boolean => SCHEME.test(url);

/** The problem with such a URL; null if there is none. */
export function sentinelProblemOf(url: string): string | null {
  if (hasLateAt(url.replace(SCHEME, "").replace(/\?sentinel_password=.*/s, ""))) return UNESCAPED;
  const { urls, path, query } = partsOf(url);
  const [first, ...others] = urls;
  if (urls.includes(null)) {
    return `has an invalid address of a Sentinel; separate them by commas, and write a comma of a password as %2C: ${FORM}`;
  }
  if (others.some((one) => one && hasOtherCredentials(one, first))) {
    return "has a user or password at a Sentinel other than the first; name those of Redis once, at the first host";
  }
  if (path[0] === undefined || path[0] === "") return `does not name the master's group: ${FORM}`;
  if (path.length > 2 || !/^\d*$/.test(path[1] ?? ""))
    return `has more than a database number after the name: ${FORM}/0`;
  const unknown = [...query.keys()].find((name) => name !== PASSWORD_PARAMETER);
  if (unknown !== undefined)
    return `has an unknown parameter ${JSON.stringify(unknown)}; the only one is ${PASSWORD_PARAMETER}`;
  if (query.getAll(PASSWORD_PARAMETER).length > 1) return `has ${PASSWORD_PARAMETER} more than once`;
  if (!isDecodable(url)) return ESCAPE_PERCENT;
  return null;
}

const hasOtherCredentials = ({ username, password }: URL, first: URL | null | undefined): boolean =>
  (username !== "" || password !== "") && (username !== first?.username || password !== first.password);

/** For a valid URL. */
export function sentinelOf(url: string): SentinelTarget {
  const { scheme, urls, path, query } = partsOf(url);
  const [first] = urls;
  const sentinelPassword = query.get(PASSWORD_PARAMETER);
  return {
    sentinels: urls.flatMap((one) => (one ? addressOf(one) : [])),
    name: decodeURIComponent(path[0] ?? ""),
    db: Number(path[1] ?? 0),
    tls: scheme === "rediss",
    ...(first?.username && { username: decodeURIComponent(first.username) }),
    ...(first?.password && { password: decodeURIComponent(first.password) }),
    ...(sentinelPassword && { sentinelPassword }),
  };
}

const addressOf = ({ hostname, port }: URL): Address => ({
  host: hostname.replace(/^\[(.*)\]$/, "$1"),
  port: Number(port || DEFAULT_PORT),
});

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

/** A host that cannot be parsed is null. The user and password are at the first host. */
function partsOf(url: string) {
  const [, scheme = "redis"] = SCHEME.exec(url) ?? [];
  const rest = url.replace(SCHEME, "");
  const end = /[/?]/.exec(rest)?.index ?? rest.length;
  const urls = rest
    .slice(0, end)
    .split(",")
    .map((host) => `redis://${host.trim()}`)
    .map((host) => (URL.canParse(host) && new URL(host).hostname !== "" ? new URL(host) : null));
  const [path = "", query = ""] = rest.slice(end).split(/\?(.*)/s);
  return {
    scheme,
    urls,
    path: path.split("/").slice(1),
    // In a query, + would be a space.
    query: new URLSearchParams(query.replaceAll("+", "%2B")),
  };
}

/** The name of an error that says that the Sentinels answer, but know no group of that name. */
const UNKNOWN_GROUP = "UnknownGroup";
export const isUnknownGroup = (error: unknown): boolean =>
  error instanceof Error && error.name === UNKNOWN_GROUP;

/** As ioredis writes what it got from one Sentinel; `No such master` answers its second question. */
const NO_GROUP =
  /^connected to sentinel (\S+) successfully, but got an invalid reply: null$|^failed to connect to sentinel (\S+) because ERR No such master/;
const NO_ANSWER = /^failed to connect to sentinel (\S+) because (.*)$/s;
const ROUND_FAILED = /^All sentinels are unreachable/;

/**
 * Makes the connection's errors say what each Sentinel answered: ioredis calls them unreachable even if they answer that
 * they do not know the group. Call it before other listeners are added.
 */
export function explainSentinels(redis: Redis, { name }: SentinelTarget): void {
  let withoutGroup: string[] = [];
  let failed: string[] = [];
  const startRound = () => {
    withoutGroup = [];
    failed = [];
  };
  redis.on("connect", startRound);
  redis.on("sentinelError", ({ message }: Error) => {
    const [, address, same = address] = NO_GROUP.exec(message) ?? [];
    if (same !== undefined) withoutGroup.push(same);
    else {
      const [, place, reason] = NO_ANSWER.exec(message) ?? [];
      // The driver does not say why there is no connection.
      const why = reason === "Connection is closed." ? "no connection" : reason;
      failed.push(place === undefined ? message : `${place} (${why})`);
    }
  });
  redis.on("error", (error: Error) => {
    if (!ROUND_FAILED.test(error.message) || withoutGroup.length + failed.length === 0) return;
    const group = JSON.stringify(name);
    if (withoutGroup.length > 0 && failed.length === 0) error.name = UNKNOWN_GROUP;
    error.message = [
      ...(withoutGroup.length > 0
        ? [`no group ${group} is known to the Sentinel at ${withoutGroup.join(", ")}`]
        : []),
      ...(failed.length > 0 ? [`no answer from the Sentinel at ${failed.join(", ")}`] : []),
    ].join("; ");
    startRound();
  });
}

/** Whether an `@` comes after the first character that ends the authority of a URL. */
export function hasLateAt(text: string): boolean {
  const end = text.search(/[/?#]/);
  return end !== -1 && text.includes("@", end);
}

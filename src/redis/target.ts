/**
 * The address of Redis: the forms of ERRAND_REDIS_URL, and the name in messages. Limit: a comma separates the nodes of
 * a Cluster, so a comma in a password is written %2C.
 */
import type { Address } from "./address.ts";
import { ESCAPE_PERCENT, isDecodable, UNESCAPED } from "./escapes.ts";
import { hasLateAt, isSentinelUrl, sentinelOf, sentinelProblemOf } from "./sentinel.ts";
import { isUnixUrl, unixOf, unixProblemOf } from "./unix-url.ts";

export interface RedisTarget {
  /** `redis://`, `rediss://` or `unix:` URL; the nodes of a Cluster, separated by commas; Sentinels (sentinel.ts). */
  readonly url?: string;
  /** The URL's one server belongs to a Cluster. */
  readonly isClusterNode?: boolean;
  /** A unix socket, for the embedded server. */
  readonly socket?: string;
  readonly password?: string;
  /** Logical database; a URL may name it too. */
  readonly db?: number;
}

/** The nodes by which a Cluster is found, and how to sign in at all of its nodes. */
export interface ClusterTarget {
  readonly nodes: readonly Address[];
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
}

const DEFAULT_URL = "redis://127.0.0.1:6379";
const DEFAULT_PORT = 6379;
const SCHEME = /^rediss?:\/\//;

/** The problem with a value of ERRAND_REDIS_URL; null if there is none. */
export function problemOf(url: string): string | null {
  if (isSentinelUrl(url)) return sentinelProblemOf(url);
  if (isUnixUrl(url) && !/,\s*unix:/.test(url)) return unixProblemOf(url);
  if (!url.includes(",")) {
    if (!/^(?:rediss?:\/\/|unix:)/.test(url))
      return "must begin with redis://, rediss://, redis+sentinel:// or unix:";
    const unescaped = unescapedIn(url);
    if (unescaped !== null) return unescaped;
    if (!URL.canParse(url)) return "is not a valid URL; a port is 1 to 65535";
    const { pathname, searchParams } = new URL(url);
    const isNumber = /^\/?\d*$/.test(pathname) && /^\d*$/.test(searchParams.get("db") ?? "");
    return isNumber ? null : "names a database that is not a number: redis://host:6379/0";
  }
  const [first = "", ...others] = url.split(",").map((node) => node.trim());
  if (!SCHEME.test(first)) {
    return "names several Cluster nodes, so it must begin with redis:// or rediss://: redis://host:7000,host:7001";
  }
  const unescaped = unescapedIn(url);
  if (unescaped !== null) return unescaped;
  const urls = toUrls(url);
  const invalid = [first, ...others].find((_, at) => urls[at] === null);
  if (invalid !== undefined) {
    return "has an invalid address of a Cluster node; separate them by commas, and write a comma of a password as %2C: redis://host:7000,host:7001";
  }
  const [one, ...rest] = urls.flatMap((node) => node ?? []);
  if (rest.some(({ protocol }) => protocol !== one?.protocol)) {
    return "mixes redis:// and rediss://; a Cluster uses TLS at all of its nodes or at none";
  }
  const credentials = ({ username, password }: URL) => `${username}:${password}`;
  if (rest.some((node) => credentials(node) !== ":" && one && credentials(node) !== credentials(one))) {
    return "has different users or passwords for the nodes of one Cluster; name them once, at the first node";
  }
  if (urls.some((node) => node !== null && !["", "/", "/0"].includes(node.pathname))) {
    return "names a database; a Cluster has only one";
  }
  return null;
}

/**
 * A character of a password that ends it, so that the rest would be read as the path, and its beginning, which a message
 * may show, as the host.
 */
function unescapedIn(url: string): string | null {
  if (!isDecodable(url)) return ESCAPE_PERCENT;
  const nodes = url.split(",");
  return nodes.some((node) => hasLateAt(node.trim().replace(SCHEME, ""))) ? UNESCAPED : null;
}

/** The nodes as URLs; null for one that is not valid. A node without a scheme has that of the first one. */
function toUrls(list: string): (URL | null)[] {
  const nodes = list.split(",").map((node) => node.trim());
  const scheme = SCHEME.exec(nodes[0] ?? "")?.[0] ?? "redis://";
  return nodes.map((node) => {
    const url = SCHEME.test(node) ? node : `${scheme}${node}`;
    return URL.canParse(url) && new URL(url).hostname !== "" ? new URL(url) : null;
  });
}

/** Null for a single server. */
export function clusterOf({ url, isClusterNode }: RedisTarget): ClusterTarget | null {
  if (url === undefined || isUnixUrl(url)) return null;
  if (isSentinelUrl(url) || (isClusterNode !== true && !url.includes(","))) return null;
  const urls = toUrls(url).flatMap((node) => node ?? []);
  const [first] = urls;
  return {
    nodes: urls.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(port || DEFAULT_PORT),
    })),
    tls: first?.protocol === "rediss:",
    ...(first?.username && { username: decodeURIComponent(first.username) }),
    ...(first?.password && { password: decodeURIComponent(first.password) }),
  };
}

/** The servers that the target names, each as a target of its own. */
export function serverTargets(target: RedisTarget): RedisTarget[] {
  const cluster = clusterOf(target);
  if (cluster === null || target.url === undefined) return [target];
  const credentials = /^[^/]*\/\/(?:[^@/]*@)?/.exec(target.url)?.[0] ?? "redis://";
  return cluster.nodes.map(({ host, port }) => ({
    url: `${credentials}${host.includes(":") ? `[${host}]` : host}:${port}`,
  }));
}

/** The path of a unix socket; null for a host. */
export function socketOf({ url, socket }: RedisTarget): string | null {
  if (socket !== undefined) return socket;
  return url !== undefined && isUnixUrl(url) ? unixOf(url).path : null;
}

export const urlOf = ({ url }: RedisTarget): string => url ?? DEFAULT_URL;

/** Host, port and database, or the socket, for messages. The URL may contain a password, so it is never shown. */
export const placeOf = (target: RedisTarget): string => nameTarget(target, databaseText);

/** The same without the database. */
export const serverOf = (target: RedisTarget): string => nameTarget(target, () => "");

function nameTarget(target: RedisTarget, textOf: (db: number) => string): string {
  const socket = socketOf(target);
  if (socket !== null) return socket;
  const cluster = clusterOf(target);
  if (cluster) return cluster.nodes.map(nameOf).join(", ");
  if (isSentinelUrl(urlOf(target))) {
    const { name, db, sentinels } = sentinelOf(urlOf(target));
    return `${name}${textOf(db)} at ${sentinels.map(nameOf).join(", ")}`;
  }
  const parsed = URL.canParse(urlOf(target)) ? new URL(urlOf(target)) : null;
  if (parsed === null) return "ERRAND_REDIS_URL";
  const db = Number(parsed.pathname.slice(1) || parsed.searchParams.get("db"));
  return `${parsed.hostname}:${parsed.port || DEFAULT_PORT}${textOf(db)}`;
}

/** `/1`; nothing for the default, 0. */
const databaseText = (db: number): string => (db > 0 ? `/${db}` : "");

/** As ioredis and Redis name a node. */
export const nameOf = ({ host, port }: Address): string => `${host}:${port}`;

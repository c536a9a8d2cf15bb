/**
 * The URL of a Redis that listens on a unix socket: `unix:/path`, or `unix://[user]:PASSWORD@/path?db=1`. Limit: the path
 * is taken as it is, without escapes.
 */
import { ESCAPE_PERCENT, isDecodable } from "./escapes.ts";

export interface UnixTarget {
  readonly path: string;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
}

export const isUnixUrl = (url: string): boolean => url.startsWith("unix:");

const FORM = "unix:/path/of/redis.sock or unix://:PASSWORD@/path/of/redis.sock?db=0";
/** Credentials are read only before a path that begins with a slash, so that a part of one is never read as the path. */
const PARTS = /^unix:(?:\/\/(?:([^@/]*)@(?=\/))?)?([^?]*)(?:\?(.*))?$/s;
const DATABASE = "db";

/** The problem with such a URL; null if there is none. No text contains a part of it that may be a secret. */
export function unixProblemOf(url: string): string | null {
  const { credentials, path, query } = partsOf(url);
  if (path === "") return `names no socket: ${FORM}`;
  if (!path.startsWith("/") && /[@:]/.test(path))
    return `is not ${FORM}; in a user or password, write / as %2F and @ as %40`;
  if (credentials !== "" && !credentials.includes(":"))
    return `has a user without a password; a password follows a colon: ${FORM}`;
  if (!isDecodable(credentials)) return ESCAPE_PERCENT;
  if ([...query.keys()].some((name) => name !== DATABASE))
    return `has an unknown parameter; the only one is ${DATABASE}: ${FORM}`;
  const databases = query.getAll(DATABASE);
  return databases.length > 1 || databases.some((one) => !/^\d+$/.test(one))
    ? `names a database that is not a number: ${FORM}`
    : null;
}

/** For a valid URL. */
export function unixOf(url: string): UnixTarget {
  const { credentials, path, query } = partsOf(url);
  const [username = "", password = ""] = credentials.split(/:(.*)/s).map(decodeURIComponent);
  return {
    path,
    db: Number(query.get(DATABASE) ?? 0),
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
  };
}

function partsOf(url: string) {
  const [, credentials = "", path = "", query = ""] = PARTS.exec(url) ?? [];
  return { credentials, path, query: new URLSearchParams(query) };
}

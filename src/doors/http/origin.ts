/**
 * Refuses pages of other sites: a foreign Origin, and a foreign Host if the broker listens on loopback only (DNS
 * rebinding). Origins in ERRAND_ALLOWED_ORIGINS get CORS headers. Limit: no cookies; a page sends a bearer token.
 */

import { ErrandError } from "../../schema/errors.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import { BoundedMap } from "../../util/bounded.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** How long a browser may remember a preflight; Chromium's own cap. */
const PREFLIGHT_SECONDS = 7200;
const MAY_SEND = [
  "A2A-Extensions",
  "A2A-Version",
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "If-Match",
  "If-None-Match",
  "Last-Event-ID",
  "MCP-Protocol-Version",
  "Mcp-Method",
  "Mcp-Name",
  "Mcp-Session-Id",
  "Prefer",
  "Range",
  "Tus-Resumable",
  "Upload-Defer-Length",
  "Upload-Length",
  "Upload-Offset",
  "X-A2A-Extensions",
  "baggage",
  "traceparent",
  "tracestate",
].join(", ");
const MAY_READ = [
  "A2A-Extensions",
  "ETag",
  "Errand-Broker",
  "Idempotency-Replayed",
  "Location",
  "Mcp-Session-Id",
  "Retry-After",
  "Content-Range",
  "Errand-File",
  "Tus-Resumable",
  "Upload-Length",
  "Upload-Offset",
  "X-A2A-Extensions",
  "X-Request-Id",
].join(", ");

function parseHostname(host: string): string | undefined {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;
}

/** A cache, because the same few hosts repeat. */
const MAX_CACHED = 100;
const hostnames = new BoundedMap<string, string | undefined>(MAX_CACHED);

function hostnameOf(host: string): string | undefined {
  if (hostnames.has(host)) return hostnames.get(host);
  const name = parseHostname(host);
  hostnames.set(host, name);
  return name;
}

interface Allowed {
  /** As a browser sends it; undefined for a bare host, which allows every origin on it. */
  readonly origin?: string;
  readonly host: string | undefined;
}

function toAllowed(entry: string): Allowed {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(entry) || !URL.canParse(entry)) return { host: hostnameOf(entry) };
  const { origin, hostname } = new URL(entry);
  // The URL standard gives no origin for unknown schemes (a browser extension's); browsers send the entry as written.
  return { origin: origin === "null" ? withoutTrailingSlashes(entry) : origin, host: hostname };
}

/**
 * `allowed` are origins (`https://ops.example`) or bare hosts, in addition to the broker's own. The guard throws
 * `forbidden`, or returns the allowed foreign origin, whose response needs {@link corsHeaders}. `anyHost`: for health
 * checks, which reveal nothing to a page of another site.
 */
export function originGuard(listensOn: string, allowed: readonly string[]) {
  const isLocal = LOOPBACK.includes(listensOn) || listensOn === "::1";
  const entries = allowed.map(toAllowed);
  const hosts = entries.map(({ host }) => host);
  const isNamed = (origin: string, name: string | undefined) =>
    entries.some((entry) =>
      entry.origin === undefined ? name !== undefined && entry.host === name : entry.origin === origin,
    );
  return (origin: string | undefined, host: string | undefined, anyHost = false): string | undefined => {
    const name = hostnameOf(host ?? "");
    if (isLocal && !anyHost && (name === undefined || !(LOOPBACK.includes(name) || hosts.includes(name)))) {
      throw refused("host");
    }
    if (origin === undefined) return undefined;
    const originName = URL.canParse(origin) ? new URL(origin).hostname : undefined;
    if (isNamed(origin, originName)) return origin;
    if (originName !== undefined && originName === name) return undefined;
    throw refused("origin");
  };
}

/** Lets the page of an allowed origin read the response. */
export function corsHeaders(origin: string): Record<string, string> {
  return { "access-control-allow-origin": origin, "access-control-expose-headers": MAY_READ };
}

/** The response to a CORS preflight. */
export const PREFLIGHT_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": MAY_SEND,
  "access-control-max-age": String(PREFLIGHT_SECONDS),
};

const refused = (what: string): ErrandError =>
  new ErrandError("forbidden", `This ${what} is not allowed.`, {
    details: { setting: "ERRAND_ALLOWED_ORIGINS" },
    recovery: `If this ${what} is the broker's own address, set ERRAND_PUBLIC_URL to it; otherwise add it to ERRAND_ALLOWED_ORIGINS. A different token does not help.`,
  });

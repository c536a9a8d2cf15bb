/**
 * Forward proxies: which one a URL goes through, by the variables that curl and others read, and what their failures mean.
 * The rules are those of undici's EnvHttpProxyAgent, except that loopback is never proxied. Limit: NO_PROXY has no CIDRs.
 */

export interface ProxyVariables {
  readonly http_proxy?: string | undefined;
  readonly HTTP_PROXY?: string | undefined;
  readonly https_proxy?: string | undefined;
  readonly HTTPS_PROXY?: string | undefined;
  readonly no_proxy?: string | undefined;
  readonly NO_PROXY?: string | undefined;
}

export interface ForwardProxy {
  /** Its URL without user and password. */
  readonly url: string;
  /** The value of the header `Proxy-Authorization`; undefined without credentials. */
  readonly authorization: string | undefined;
  /** Host and port, for messages. */
  readonly place: string;
  /** The variable that names it. */
  readonly variable: string;
}

/** A variable whose value names no proxy. The value may contain a password, so the message does not. */
export class ProxyUrlError extends Error {
  override readonly name = "ProxyUrlError";

  constructor(variable: string) {
    super(`${variable} is not the http or https URL of a proxy, such as http://proxy.example:3128`);
  }
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Reads the URL of a proxy; without a scheme it is `http://`, as in curl. */
export function parseProxy(value: string, variable: string): ForwardProxy {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || DEFAULT_PORTS[url.protocol] === undefined || url.hostname === "" || url.hash !== "")
    throw new ProxyUrlError(variable);
  if (url.pathname !== "/" || url.search !== "") throw new ProxyUrlError(variable);
  const { username, password, protocol, hostname } = url;
  const port = url.port || DEFAULT_PORTS[protocol];
  return {
    url: `${protocol}//${hostname}:${port}`,
    authorization: username || password ? basic(unescaped(username), unescaped(password)) : undefined,
    place: `${hostname}:${port}`,
    variable,
  };
}

/** The proxy for a URL; null if it is called directly. */
export function proxyOf(target: string, env: ProxyVariables): ForwardProxy | null {
  const found = proxyVariableOf(target, env);
  if (found === null) return null;
  const { hostname, port, protocol } = new URL(target);
  if (isLoopback(hostname)) return null;
  const noProxy = env.no_proxy ?? env.NO_PROXY ?? "";
  if (isExempt(hostname, Number(port || DEFAULT_PORTS[protocol]), noProxy)) return null;
  return parseProxy(...found);
}

/** Cheap where no variable is set, which is nearly everywhere. */
function proxyVariableOf(target: string, env: ProxyVariables): readonly [value: string, name: string] | null {
  const [http, httpName] = lowerFirst(env.http_proxy, env.HTTP_PROXY, "http_proxy");
  const [https, httpsName] = lowerFirst(env.https_proxy, env.HTTPS_PROXY, "https_proxy");
  if (https !== "" && /^https:/i.test(target)) return [https, httpsName];
  return http === "" ? null : [http, httpName];
}

const lowerFirst = (lower: string | undefined, upper: string | undefined, name: string) =>
  lower === undefined ? ([upper ?? "", name.toUpperCase()] as const) : ([lower, name] as const);

export const isLoopback = (hostname: string): boolean =>
  /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\]|0\.0\.0\.0|\[::\])\.?$/i.test(
    hostname,
  );

function isExempt(hostname: string, port: number, noProxy: string): boolean {
  if (noProxy === "*") return true;
  return noProxy.split(/[,\s]/).some((entry) => {
    if (entry === "") return false;
    const [, host = entry, only] = /^(.+):(\d+)$/.exec(entry) ?? [];
    if (only !== undefined && Number(only) !== 0 && Number(only) !== port) return false;
    const name = host.replace(/^\*?\./, "").toLowerCase();
    return hostname === name || hostname.endsWith(`.${name}`);
  });
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const basic = (user: string, password: string): string =>
  `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${user}:${password}`)))}`;

export const PROXY_AUTHENTICATION_REQUIRED = 407;
type ProxyFailure = "PROXY_AUTH_REQUIRED" | "PROXY_REFUSED" | "PROXY_UNREACHABLE";

/** The proxy does not answer, or does not connect to the server. Nothing was sent to the server. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  readonly code: ProxyFailure;
  /** The proxy's answer. */
  readonly status: number | undefined;

  constructor({ place, variable }: ForwardProxy, status: number | undefined, why: string, cause?: unknown) {
    super(`the proxy ${place} (${variable}) ${why}`, { cause });
    this.status = status;
    this.code =
      status === undefined
        ? "PROXY_UNREACHABLE"
        : status === PROXY_AUTHENTICATION_REQUIRED
          ? "PROXY_AUTH_REQUIRED"
          : "PROXY_REFUSED";
  }
}

/** The error for an answer of the proxy itself. */
export function proxyRefusal(proxy: ForwardProxy, status: number, cause?: unknown): ProxyError {
  const why =
    status !== PROXY_AUTHENTICATION_REQUIRED
      ? `did not connect to the server: HTTP ${status}`
      : proxy.authorization === undefined
        ? "requires a user and password: HTTP 407"
        : "refuses the user and password: HTTP 407";
  return new ProxyError(proxy, status, why, cause);
}

const UNREACHABLE = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
];

/**
 * Recognizes a failure of the proxy in what undici threw; null for any other, which is the server's. `isPlain`: the proxy
 * itself answers a plain request with 407, and fetch hides that: it fails without any reason.
 */
export function toProxyError(error: unknown, proxy: ForwardProxy, isPlain = false): ProxyError | null {
  let reason: string | undefined;
  for (let at = error; at instanceof Error; at = at.cause) {
    reason = at.message;
    const [, status] = /^Proxy response \((\d+)\) !== 200/.exec(at.message) ?? [];
    if (status !== undefined) return proxyRefusal(proxy, Number(status), error);
    const code = "code" in at ? String(at.code) : "";
    if (UNREACHABLE.includes(code))
      return new ProxyError(proxy, undefined, `does not answer (${code})`, error);
  }
  return isPlain && reason === "" ? proxyRefusal(proxy, PROXY_AUTHENTICATION_REQUIRED, error) : null;
}

/**
 * A `fetch` that uses the forward proxy of the environment. Only Node needs it: Bun and Deno read the variables themselves,
 * and a browser has its own settings. undici is loaded only for a URL that goes through a proxy.
 */
import {
  type ForwardProxy,
  ProxyError,
  ProxyUrlError,
  type ProxyVariables,
  parseProxy,
  proxyOf,
  proxyRefusal,
  toProxyError,
} from "../util/proxy.ts";
import { ProxiedError } from "./connection-errors.ts";
import { proxyVariables } from "./environment.ts";
import { ErrandApiError, localError } from "./errors.ts";

type Fetch = typeof globalThis.fetch;

/** The part of undici that is used. */
interface Undici {
  readonly fetch: (input: string | URL, init: object) => Promise<Response>;
  readonly ProxyAgent: new (options: object) => object;
}

/** Not a literal in the import, so that no bundler for browsers follows it. */
const PACKAGE: string = "undici";
let loading: Promise<Undici> | undefined;

function loadUndici(variable: string): Promise<Undici> {
  loading ??= import(/* @vite-ignore */ /* webpackIgnore: true */ PACKAGE);
  return loading.catch((error: unknown) => {
    loading = undefined;
    throw localError(
      {
        code: "proxy_not_supported",
        category: "CONFIG",
        detail: `${variable} is set, but the package 'undici', which connects through a proxy, is not installed`,
        recovery: "Run 'npm install undici', or name the broker's host in NO_PROXY.",
      },
      error,
    );
  });
}

/** By the proxy's URL. A process has one or two. */
const agents = new Map<string, object>();

function agentOf({ ProxyAgent }: Undici, { url, authorization }: ForwardProxy, proxyTunnel: boolean): object {
  const key = `${url} ${authorization} ${proxyTunnel}`;
  const known = agents.get(key);
  if (known !== undefined) return known;
  const agent = new ProxyAgent({ uri: url, proxyTunnel, ...(authorization && { token: authorization }) });
  agents.set(key, agent);
  return agent;
}

/** Proxies that tunnel no plain HTTP. Many allow tunnels only to port 443. */
const withoutTunnel = new Set<string>();
const mayBeForwarded = (status: number): boolean => status >= 400 && status < 500;

/** Like the global fetch, through this proxy. Its own failures are {@link ProxyError}s. */
export async function fetchThrough(
  proxy: ForwardProxy,
  url: string | URL,
  init?: RequestInit,
): Promise<Response> {
  const undici = await loadUndici(proxy.variable);
  const isPlain = new URL(url).protocol === "http:";
  const send = async (proxyTunnel: boolean): Promise<Response> => {
    try {
      const dispatcher = agentOf(undici, proxy, proxyTunnel);
      return await undici.fetch(url, { ...init, dispatcher });
    } catch (error) {
      throw toProxyError(error, proxy) ?? error;
    }
  };
  if (!isPlain || !withoutTunnel.has(proxy.url)) {
    try {
      return await send(true);
    } catch (error) {
      // Nothing was sent to the server, so the request can be sent in the other way.
      const { status = 0, code } = error instanceof ProxyError ? error : {};
      if (!isPlain || code !== "PROXY_REFUSED" || !mayBeForwarded(status)) throw error;
      withoutTunnel.add(proxy.url);
    }
  }
  const response = await send(false);
  if (response.status !== 407) return response;
  await response.body?.cancel();
  throw proxyRefusal(proxy, 407);
}

/** Nothing was sent to the broker. A proxy is repaired without this process, so the call may be repeated. */
function proxyFailure(url: string, error: ProxyError): ErrandApiError {
  const codes = {
    PROXY_UNREACHABLE: "unreachable",
    PROXY_AUTH_REQUIRED: "proxy_auth_required",
    PROXY_REFUSED: "proxy_refused",
  } as const;
  const recoveries = {
    PROXY_UNREACHABLE:
      "Start that proxy, correct or unset the variable, or name the broker's host in NO_PROXY.",
    PROXY_AUTH_REQUIRED:
      "Set the variable to http://USER:PASSWORD@HOST:PORT, with special characters escaped.",
    PROXY_REFUSED: "Allow the proxy to connect to that host and port, or name the broker's host in NO_PROXY.",
  } as const;
  return localError(
    {
      code: codes[error.code],
      category: "TRANSPORT",
      detail: `${url} cannot be reached: ${error.message}`,
      recovery: recoveries[error.code],
      retryable: true,
    },
    error,
  );
}

/** The fetch where a variable names a proxy. Its failures are ErrandApiErrors. Limit: no Request objects. */
export const proxiedFetch: Fetch = async (input, init) => {
  const proxy = input instanceof Request ? null : proxyFor(String(input));
  if (proxy === null || input instanceof Request) return globalThis.fetch(input, init);
  try {
    return await fetchThrough(proxy, input, init);
  } catch (error) {
    if (error instanceof ProxyError) throw proxyFailure(new URL(input).origin, error);
    throw error instanceof ErrandApiError
      ? error
      : new ProxiedError(`${proxy.place} (${proxy.variable})`, error);
  }
};

/** The proxy for a URL, or null. Throws `invalid_proxy` for a variable that names none. */
export const proxyFor = (
  url: string,
  variables: ProxyVariables = proxyVariables() ?? {},
): ForwardProxy | null => explained(() => proxyOf(url, variables));

/** The proxy of a setting of its own. Throws as {@link proxyFor} does. */
export const configuredProxy = (value: string, variable: string): ForwardProxy =>
  explained(() => parseProxy(value, variable));

function explained<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ProxyUrlError)) throw error;
    throw localError({
      code: "invalid_proxy",
      category: "CONFIG",
      detail: error.message,
      recovery: "Correct or unset the variable.",
    });
  }
}

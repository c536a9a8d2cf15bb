/**
 * A `fetch` that uses the forward proxy of the environment. Only Node needs it: Bun and Deno read the variables themselves,
 * and a browser has its own settings. undici is loaded only for a URL that goes through a proxy.
 */
import { toAbsoluteForm } from "../util/absolute-form.ts";
import {
  type ForwardProxy,
  ProxyError,
  ProxyUrlError,
  type ProxyVariables,
  parseProxy,
  proxyOf,
  toProxyError,
} from "../util/proxy.ts";
import { answeredThrough, ProxiedError } from "./connection-errors.ts";
import { proxyVariables } from "./environment.ts";
import { ErrandApiError, localError } from "./errors.ts";

type Fetch = typeof globalThis.fetch;

/** The part of undici that is used. */
interface Undici {
  readonly fetch: (input: string | URL, init: object) => Promise<Response>;
  readonly ProxyAgent: new (options: object) => object;
  readonly Agent: new () => { readonly compose: (interceptor: ReturnType<typeof toAbsoluteForm>) => object };
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

/** https is tunnelled, so that only the server can read it. */
function agentOf(undici: Undici, proxy: ForwardProxy, isPlain: boolean): object {
  const { url, authorization } = proxy;
  const key = `${url} ${authorization} ${isPlain}`;
  const known = agents.get(key);
  if (known !== undefined) return known;
  const agent = isPlain
    ? new undici.Agent().compose(toAbsoluteForm(proxy))
    : new undici.ProxyAgent({ uri: url, ...(authorization && { token: authorization }) });
  agents.set(key, agent);
  return agent;
}

/** Like the global fetch, through this proxy. Its own failures are {@link ProxyError}s. */
export async function fetchThrough(
  proxy: ForwardProxy,
  url: string | URL,
  init?: RequestInit,
): Promise<Response> {
  const undici = await loadUndici(proxy.variable);
  const isPlain = new URL(url).protocol === "http:";
  try {
    return await undici.fetch(url, { ...init, dispatcher: agentOf(undici, proxy, isPlain) });
  } catch (error) {
    throw toProxyError(error, proxy, isPlain) ?? error;
  }
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

const nameOf = ({ place, variable }: ForwardProxy): string => `${place} (${variable})`;

/** The fetch where a variable names a proxy. Its failures are ErrandApiErrors. Limit: no Request objects. */
export const proxiedFetch: Fetch = async (input, init) => {
  const proxy = input instanceof Request ? null : proxyFor(String(input));
  if (proxy === null || input instanceof Request) return globalThis.fetch(input, init);
  try {
    const response = await fetchThrough(proxy, input, init);
    // Only the server answers in a tunnel.
    if (/^http:/i.test(String(input))) answeredThrough.set(response, nameOf(proxy));
    return response;
  } catch (error) {
    if (error instanceof ProxyError) throw proxyFailure(new URL(input).origin, error);
    throw error instanceof ErrandApiError ? error : new ProxiedError(nameOf(proxy), error);
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

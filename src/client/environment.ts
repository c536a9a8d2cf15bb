/**
 * Reads a client's environment: ERRAND_URL and ERRAND_TOKEN, the variables of a forward proxy, and for a worker id the host name and process id. It imports
 * nothing of Node, so that it also loads in a browser, where all of these are absent. config.ts reads the broker's
 * settings.
 */
import type { ProxyVariables } from "../util/proxy.ts";

export interface Target {
  readonly url: string;
  readonly token: string | undefined;
  /** Where the token comes from. */
  readonly tokenFrom: string;
}

/** The default address of a broker. */
const LOCAL_URL = "http://127.0.0.1:4180";

interface Environment {
  readonly ERRAND_URL?: string | undefined;
  readonly ERRAND_TOKEN?: string | undefined;
}

/** In browsers `process` may be missing; one that a bundler defines may have no `env`. */
interface Runtime {
  readonly process?: {
    readonly env?: Environment & ProxyVariables;
    readonly versions?: { readonly node?: string; readonly bun?: string; readonly deno?: string };
    readonly pid?: number;
    getBuiltinModule?(id: "node:os"): { hostname(): string } | undefined;
  };
}
const runtime: Runtime = globalThis;

/** Options override the environment; an empty variable counts as unset. */
export function locate(given: { url?: string | undefined; token?: string | undefined }): Target {
  const env = runtime.process?.env;
  const envUrl = env?.ERRAND_URL?.trim() || undefined;
  // Files that were written on Windows may begin with a byte order mark.
  const url = (given.url ?? envUrl ?? LOCAL_URL).trim();
  const isEnvBroker = envUrl === undefined || given.url === undefined || originOf(url) === originOf(envUrl);
  // ERRAND_TOKEN belongs to the broker of ERRAND_URL and is sent to no other.
  const token = given.token ?? ((isEnvBroker && env?.ERRAND_TOKEN) || undefined);
  return { url, token, tokenFrom: given.token === undefined ? "ERRAND_TOKEN" : "the option token" };
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

/** The variables that name a proxy, on Node; null where the runtime's own fetch reads them, or has other settings. */
export function proxyVariables(): ProxyVariables | null {
  const { env, versions } = runtime.process ?? {};
  const isNode = versions?.node !== undefined && versions.bun === undefined && versions.deno === undefined;
  return isNode && env !== undefined ? env : null;
}

export function hasProxyVariable(): boolean {
  const { http_proxy, HTTP_PROXY, https_proxy, HTTPS_PROXY } = proxyVariables() ?? {};
  return Boolean(http_proxy || HTTP_PROXY || https_proxy || HTTPS_PROXY);
}

/** A new `worker_id`: host name, process id and a random part, so that no two workers share one. */
export function newWorkerId(): string {
  const { process } = runtime;
  const host = process?.getBuiltinModule?.("node:os")?.hostname() ?? "client";
  const name = host.replace(/[^\x21-\x7e]/g, "_").slice(0, 100);
  const random = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "";
  return [name, process?.pid, random.slice(0, 5).padStart(5, "0")].filter(Boolean).join("-");
}

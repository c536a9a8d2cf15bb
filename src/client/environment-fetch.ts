/** The `fetch` of every call to a broker: the global one, or where a forward proxy is set, the one that uses it. */
import { hasProxyVariable } from "./environment.ts";

/** The rest is loaded only where it is needed: pages load this file. */
export const environmentFetch: typeof globalThis.fetch = (input, init) =>
  hasProxyVariable()
    ? import("./proxied-fetch.ts").then(({ proxiedFetch }) => proxiedFetch(input, init))
    : globalThis.fetch(input, init);

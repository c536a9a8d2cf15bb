/**
 * Requests for plain http through a forward proxy: they name the whole URL ("absolute form") and are sent to the proxy, as curl
 * does. A tunnel (CONNECT) is for https: many proxies open none to other ports.
 */
import type { ForwardProxy } from "./proxy.ts";

/** The part of undici's dispatch options that changes. */
interface Sent {
  readonly origin?: string | URL | undefined;
  readonly path: string;
  readonly headers?: unknown;
}

type Dispatch<Options, Handler> = (options: Options, handler: Handler) => boolean;

/** For `compose` of an undici agent. */
export const toAbsoluteForm =
  (proxy: ForwardProxy) =>
  <Options extends Sent, Handler>(dispatch: Dispatch<Options, Handler>): Dispatch<Options, Handler> =>
  (options, handler) =>
    dispatch(inAbsoluteForm(options, proxy), handler);

function inAbsoluteForm<Options extends Sent>(options: Options, proxy: ForwardProxy): Options {
  const { origin, host } = new URL(options.origin ?? "");
  const { hostname } = new URL(proxy.url);
  const own = {
    host,
    ...(proxy.authorization !== undefined && { "proxy-authorization": proxy.authorization }),
  };
  return {
    ...options,
    origin: proxy.url,
    path: origin + options.path,
    headers: withHeaders(options.headers, own),
    // Otherwise undici asks an https proxy for the certificate of the server.
    servername: hostname.replace(/^\[|\]$/g, ""),
  };
}

/** undici takes a list of names and values in turn, or an object. */
function withHeaders(headers: unknown, own: Readonly<Record<string, string>>): unknown {
  return Array.isArray(headers)
    ? [...headers, ...Object.entries(own).flat()]
    : { ...Object(headers), ...own };
}

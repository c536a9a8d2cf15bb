/**
 * HTTP calls to URLs that clients give: only to public addresses, unless the operator allows more. The address that is
 * checked is the address that is dialed, and redirects are not followed. Limit: a public host may forward the call, and
 * with a proxy (ERRAND_EGRESS_PROXY) the proxy resolves the name again, or alone if this machine cannot.
 */
import { lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { Agent, type Dispatcher, fetch, ProxyAgent, request, type Response as UndiciResponse } from "undici";
import { ErrandError } from "../../schema/errors.ts";
import { toAbsoluteForm } from "../../util/absolute-form.ts";
import {
  type ForwardProxy,
  PROXY_AUTHENTICATION_REQUIRED,
  proxyRefusal,
  toProxyError,
} from "../../util/proxy.ts";

const TIMEOUT_MS = 15_000;
/** With a proxy, this machine may have no resolver for public names, or none that answers. */
const LOOKUP_MS = 3_000;
/** The most bytes of a response that are read; then the connection is closed. */
const MAX_ANSWER_BYTES = 65_536;

/** Blocked although they count as public: IPv4 inside IPv6, and the address of Azure's own services. */
const BLOCKED = ["::/96", "168.63.129.16/32"].map((range) => ipaddr.parseCIDR(range));

interface Allowed {
  readonly hosts: ReadonlySet<string>;
  readonly ranges: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];
}

function parseAllowed(entries: readonly string[]): Allowed {
  const hosts = new Set<string>();
  const ranges: [ipaddr.IPv4 | ipaddr.IPv6, number][] = [];
  for (const entry of entries) {
    if (ipaddr.isValidCIDR(entry)) ranges.push(ipaddr.parseCIDR(entry));
    else if (ipaddr.isValid(entry)) {
      const address = ipaddr.process(entry);
      ranges.push([address, address.kind() === "ipv4" ? 32 : 128]);
    } else hosts.add(entry.toLowerCase());
  }
  return { hosts, ranges };
}

/** Statuses without a body. */
const EMPTY: readonly number[] = [204, 205, 304];

/** Undici's stream as a web stream. */
function piped(body: UndiciResponse["body"]): ReadableStream<Uint8Array> | null {
  if (body === null) return null;
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function agentsBy(proxy: ForwardProxy, options: Agent.Options): ProxiedAgents {
  const token = proxy.authorization;
  return {
    tunnels: new ProxyAgent({ uri: proxy.url, ...(token !== undefined && { token }), ...options }),
    plain: new Agent(options).compose(toAbsoluteForm(proxy)),
  };
}

/** Thrown while connecting. Its message gives the reason without the address. */
export class EgressRefusedError extends Error {
  override readonly name = "EgressRefusedError";
}

/** How one kind of call goes through the proxy. */
interface ProxiedAgents {
  /** https, in tunnels. */
  readonly tunnels: ProxyAgent;
  /** Plain http, as it is. */
  readonly plain: Dispatcher;
}

export class Egress {
  readonly #allowed: Allowed;
  readonly #agent: Agent;
  /** For streams, which keep their connections, so their number is not limited. */
  readonly #streams: Agent;
  readonly #lookup: LookupFunction;
  readonly #proxied: {
    readonly proxy: ForwardProxy;
    readonly agent: ProxiedAgents;
    readonly streams: ProxiedAgents;
  } | null;

  /** `allow`: private hosts, addresses and CIDRs that may be called. They are called directly, all others by the proxy. */
  constructor(
    allow: readonly string[],
    lookup: LookupFunction = systemLookup,
    proxy: ForwardProxy | null = null,
  ) {
    this.#allowed = parseAllowed(allow);
    this.#lookup = lookup;
    this.#proxied = proxy && {
      proxy,
      agent: agentsBy(proxy, { connections: 20 }),
      streams: agentsBy(proxy, { bodyTimeout: 0 }),
    };
    const guarded: LookupFunction = (hostname, options, callback) => {
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        if (error) return callback(error, "", 0);
        const found = Array.isArray(addresses) ? addresses : [];
        const isBlocked =
          !this.#isAllowedHost(hostname) && found.some(({ address }) => !this.#mayDial(address));
        const [first] = found;
        if (isBlocked || !first)
          return callback(new EgressRefusedError("the host has a private address"), "", 0);
        if (options.all) return callback(null, found);
        callback(null, first.address, first.family);
      });
    };
    this.#agent = new Agent({ connect: { lookup: guarded, timeout: TIMEOUT_MS }, connections: 20 });
    this.#streams = new Agent({ connect: { lookup: guarded, timeout: TIMEOUT_MS }, bodyTimeout: 0 });
  }

  #isAllowedHost(host: string): boolean {
    return this.#allowed.hosts.has(host.toLowerCase());
  }

  #isPrivate(text: string): boolean {
    if (!ipaddr.isValid(text)) return true;
    const address = ipaddr.process(text);
    return (
      address.range() !== "unicast" ||
      BLOCKED.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
    );
  }

  #mayDial(text: string): boolean {
    if (!this.#isPrivate(text)) return true;
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return this.#allowed.ranges.some(
      ([range, bits]) => range.kind() === address.kind() && address.match(range, bits),
    );
  }

  /** Throws `invalid_request` for a URL that is certain to be refused, without a DNS lookup. */
  requireCallable(url: string, path: string): void {
    const reason = this.#objection(new URL(url));
    if (reason === null) return;
    throw new ErrandError("invalid_request", `${path}: ${reason}`, {
      details: { issues: [{ path, reason }] },
    });
  }

  #objection(url: URL): string | null {
    if (url.protocol !== "https:" && url.protocol !== "http:") return "only http and https";
    if (url.username !== "" || url.password !== "") return "no user or password in the URL";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (this.#isAllowedHost(host)) return null;
    if (ipaddr.isValid(host) && !this.#mayDial(host))
      return "a private address; ERRAND_CALLBACK_ALLOW does not name it";
    const isLocal = host === "localhost" || host.endsWith(".localhost");
    if (isLocal && !this.#mayDial("127.0.0.1"))
      return "a private address; ERRAND_CALLBACK_ALLOW does not name it";
    return null;
  }

  /**
   * Whether the proxy is to be used for this host. Throws {@link EgressRefusedError} for a name that this machine resolves to
   * a private address which is not allowed.
   */
  async #usesProxy(url: URL): Promise<boolean> {
    if (this.#proxied === null) return false;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (this.#isAllowedHost(host)) return false;
    const addresses = ipaddr.isValid(host) ? [host] : await this.#resolve(host);
    if (addresses.some((address) => !this.#mayDial(address)))
      throw new EgressRefusedError("the host has a private address");
    return addresses.length === 0 || addresses.some((address) => !this.#isPrivate(address));
  }

  /** Its addresses; none if this machine does not know the name, or does not learn them soon. */
  #resolve(host: string): Promise<string[]> {
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve([]), LOOKUP_MS);
      this.#lookup(host, { all: true }, (error, found) => {
        clearTimeout(late);
        resolve(error || !Array.isArray(found) ? [] : found.map(({ address }) => address));
      });
    });
  }

  async #send<T extends UndiciResponse | Dispatcher.ResponseData>(
    url: URL,
    kind: "agent" | "streams",
    call: (dispatcher: Dispatcher) => Promise<T>,
  ): Promise<T> {
    const used = (await this.#usesProxy(url)) ? this.#proxied : null;
    if (used === null) return call(kind === "agent" ? this.#agent : this.#streams);
    const isPlain = url.protocol === "http:";
    const { plain, tunnels } = used[kind];
    const answer = await call(isPlain ? plain : tunnels).catch((error: unknown) => {
      throw toProxyError(error, used.proxy, isPlain) ?? error;
    });
    if (isPlain && "statusCode" in answer && answer.statusCode === PROXY_AUTHENTICATION_REQUIRED) {
      await answer.body.dump({ limit: MAX_ANSWER_BYTES });
      throw proxyRefusal(used.proxy, answer.statusCode);
    }
    return answer;
  }

  /** POSTs a body, returns the status. Throws {@link EgressRefusedError} for a private address, or the network's error. */
  async post(
    url: string,
    headers: Record<string, string>,
    body: string | Buffer,
    timeoutMs = TIMEOUT_MS,
  ): Promise<number> {
    const reason = this.#objection(new URL(url));
    if (reason !== null) throw new EgressRefusedError(reason);
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await this.#send(new URL(url), "agent", (dispatcher) =>
      request(url, {
        method: "POST",
        headers,
        body,
        dispatcher,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal,
      }),
    );
    await answer.body.dump({ limit: MAX_ANSWER_BYTES });
    return answer.statusCode;
  }

  /** Like fetch, for streamed responses. Throws as {@link post} does. */
  async open(url: URL, { method = "GET", headers, body, signal }: RequestInit): Promise<Response> {
    const reason = this.#objection(url);
    if (reason !== null) throw new EgressRefusedError(reason);
    const answer = await this.#send(url, "streams", (dispatcher) =>
      fetch(url, {
        method,
        headers: [...new Headers(headers)],
        redirect: "manual",
        dispatcher,
        ...(typeof body === "string" && { body }),
        ...(signal && { signal }),
      }),
    );
    const { status } = answer;
    return new Response(EMPTY.includes(status) ? null : piped(answer.body), {
      status,
      headers: [...answer.headers],
    });
  }

  async close(): Promise<void> {
    await this.#streams.destroy();
    await this.#agent.destroy();
    for (const { plain, tunnels } of this.#proxied ? [this.#proxied.streams, this.#proxied.agent] : []) {
      await plain.destroy();
      await tunnels.destroy();
    }
  }
}

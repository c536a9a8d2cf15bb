import { Agent, EnvHttpProxyAgent } from "undici";
import { afterEach, expect, test, vi } from "vitest";
import { type ProxyVariables, parseProxy, proxyOf } from "../../src/util/proxy.ts";

const HTTP = "http://one.example:1";
const HTTPS = "http://two.example:2";
const EMPTY = {
  http_proxy: undefined,
  HTTP_PROXY: undefined,
  https_proxy: undefined,
  HTTPS_PROXY: undefined,
  no_proxy: undefined,
  NO_PROXY: undefined,
};
afterEach(() => vi.unstubAllEnvs());

/** The place of undici's own choice; it reads the environment. */
async function undicis(target: string, variables: ProxyVariables): Promise<string | null> {
  for (const [name, value] of Object.entries({ ...EMPTY, ...variables })) vi.stubEnv(name, value);
  let found: string | null = null;
  // A proxy's pool has the proxy's own origin; a direct one has that of the target.
  const stop = new Error("stop");
  const agent = new EnvHttpProxyAgent({
    clientFactory: (origin: URL) => {
      const client = new Agent();
      return Object.assign(client, {
        connect: () => {
          found = origin.host;
          return Promise.reject(stop);
        },
      });
    },
    connect: (_options: object, callback: (error: Error, socket: null) => void) => callback(stop, null),
  });
  await agent.request({ origin: new URL(target).origin, path: "/", method: "GET" }).catch(() => undefined);
  await agent.destroy();
  return found;
}

const TARGETS = [
  "http://a.example",
  "https://a.example",
  "https://sub.a.example:8443",
  "http://10.1.2.3:4180",
  "http://[fd00::1]",
];
const TABLE: readonly ProxyVariables[] = [
  {},
  { HTTP_PROXY: HTTP },
  { HTTPS_PROXY: HTTPS },
  { http_proxy: HTTP, HTTP_PROXY: HTTPS },
  { http_proxy: "", HTTP_PROXY: HTTPS },
  { HTTP_PROXY: HTTP, https_proxy: HTTPS },
  { HTTP_PROXY: HTTP, HTTPS_PROXY: "" },
  ...[
    "*",
    "a.example",
    ".a.example",
    "*.a.example",
    "example",
    "A.EXAMPLE:443",
    "a.example:8443 10.1.2.3",
    "10.1.2.0/24",
    "10.1.2.3:4181,",
    "[fd00::1]",
    "other.example, ,sub.a.example",
  ].flatMap((value) => [
    { HTTP_PROXY: HTTP, HTTPS_PROXY: HTTPS, NO_PROXY: value },
    { HTTP_PROXY: HTTP, no_proxy: value, NO_PROXY: "*" },
  ]),
];

test("a URL goes through the proxy that undici's EnvHttpProxyAgent would choose", async () => {
  for (const variables of TABLE)
    for (const target of TARGETS) {
      const own = proxyOf(target, variables)?.place ?? null;
      expect([target, variables, own]).toEqual([target, variables, await undicis(target, variables)]);
    }
});

test("loopback is never proxied", () => {
  const variables = { HTTP_PROXY: HTTP, HTTPS_PROXY: HTTPS };
  for (const host of [
    "localhost",
    "a.localhost",
    "127.0.0.1",
    "127.9.9.9",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
  ])
    for (const scheme of ["http", "https"])
      expect(proxyOf(`${scheme}://${host}:4180/`, variables)).toBeNull();
  for (const host of ["localhost.example", "128.0.0.1", "127.example"])
    expect(proxyOf(`http://${host}/`, variables)?.place).toBe("one.example:1");
});

test("credentials become a header and are in no text; what names no proxy is refused without its value", () => {
  expect(parseProxy("https://ann:p%40ss@proxy.example", "HTTPS_PROXY")).toEqual({
    url: "https://proxy.example:443",
    authorization: `Basic ${Buffer.from("ann:p@ss").toString("base64")}`,
    place: "proxy.example:443",
    variable: "HTTPS_PROXY",
  });
  expect(parseProxy("proxy.example:3128", "HTTP_PROXY").url).toBe("http://proxy.example:3128");
  expect(parseProxy("http://ann:50%off@[fd00::2]:3128/", "HTTP_PROXY")).toMatchObject({
    authorization: `Basic ${Buffer.from("ann:50%off").toString("base64")}`,
    place: "[fd00::2]:3128",
  });
  for (const wrong of [
    "http://",
    "socks5://hush:hush@p:1",
    "http://ann:hu/sh@p",
    "hush hush",
    "http://p:99999",
    "ftp://p",
  ])
    expect(() => parseProxy(wrong, "HTTPS_PROXY")).toThrow(
      /^HTTPS_PROXY is not the http or https URL of a proxy, such as [^h]*http:\/\/proxy\.example:3128$/,
    );
});

/** The variables that a start accepts, ignores and refuses. */
import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { COMMAND_VARIABLES } from "../src/cli/work/command-variables.ts";
import { ConfigError, hasPortOfService, readConfig } from "../src/config.ts";
import { checkAddress, ServeError } from "../src/serve/errors.ts";

const problemsOf = (env: Record<string, string>, flags: Record<string, string> = {}): readonly string[] => {
  try {
    readConfig(env, flags);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

/** What the kubelet sets for a Service. */
const linksOf = (service: string, ports: readonly (readonly [number, string, string?])[]) => {
  const name = service.toUpperCase().replaceAll("-", "_");
  const [first = [80, "TCP"]] = ports;
  return Object.fromEntries([
    [`${name}_SERVICE_HOST`, "10.96.10.20"],
    [`${name}_SERVICE_PORT`, String(first[0])],
    [`${name}_PORT`, `${first[1].toLowerCase()}://10.96.10.20:${first[0]}`],
    ...ports.flatMap(([port, protocol, portName]) => [
      ...(portName === undefined ? [] : [[`${name}_SERVICE_PORT_${portName}`, String(port)]]),
      [`${name}_PORT_${port}_${protocol}`, `${protocol.toLowerCase()}://10.96.10.20:${port}`],
      [`${name}_PORT_${port}_${protocol}_PROTO`, protocol.toLowerCase()],
      [`${name}_PORT_${port}_${protocol}_PORT`, String(port)],
      [`${name}_PORT_${port}_${protocol}_ADDR`, "fd00::20"],
    ]),
  ]);
};

test("service links never stop a start, and set nothing", () => {
  const tables = [
    linksOf("errand", [[4180, "TCP", "HTTP"]]),
    linksOf("errand", [
      [4180, "TCP", "HTTP"],
      [9100, "TCP", "METRICS_2"],
    ]),
    linksOf("errand-redis", [[6379, "TCP"]]),
    linksOf("errand-gateway", [[443, "UDP", "QUIC"]]),
    linksOf("errand-redis-url", [[6379, "SCTP"]]),
    linksOf("errand-2", [[80, "TCP", "WEB"]]),
    // docker run --link broker:errand
    {
      ERRAND_NAME: "/worker/errand",
      ERRAND_ENV_ERRAND_DATA_DIR: "/data",
      ERRAND_PORT_4180_TCP_START: "tcp://172.17.0.2:4180",
    },
  ];
  for (const links of tables) expect(readConfig(links)).toEqual(readConfig({}));
});

test("ERRAND_PORT as a number counts, as a service link not, and anything else is refused", () => {
  expect(readConfig({ ...linksOf("errand", [[4180, "TCP"]]), ERRAND_PORT: "4999" }).ERRAND_PORT).toBe(4999);
  expect(readConfig({ ERRAND_PORT: "tcp://10.96.10.20:4999" }).ERRAND_PORT).toBe(4180);
  expect(hasPortOfService({ ERRAND_PORT: "tcp://10.96.10.20:4999" })).toBe(true);
  for (const env of [{}, { ERRAND_PORT: "4999" }]) expect(hasPortOfService(env)).toBe(false);
  for (const wrong of ["http://10.96.10.20:4999", "4180tcp", "99999"])
    expect(problemsOf({ ERRAND_PORT: wrong })).toEqual([expect.stringContaining("ERRAND_PORT: must be")]);
});

test("what `errand work` sets for its commands never stops a start", () => {
  expect(readConfig(Object.fromEntries(COMMAND_VARIABLES.map((name) => [name, "x"])))).toEqual(
    readConfig({}),
  );
});

test("an unknown variable is refused with the one that was probably meant", () => {
  const meant = {
    ERRAND_PROT: "ERRAND_PORT",
    ERRAND_URLL: "ERRAND_URL",
    ERRAND_REDIS: "ERRAND_REDIS_URL",
    ERRAND_REDIS_HOST: "ERRAND_REDIS_URL",
    ERRAND_LOGLEVEL: "ERRAND_LOG_LEVEL",
    ERRAND_RETENTION: "ERRAND_RETENTION_SECONDS",
    ERRAND_KEEPALIVE_SECONDS: "ERRAND_KEEP_ALIVE_SECONDS",
    ERRAND_DATA: "ERRAND_DATA_DIR",
    // Not the names of a service link.
    ERRAND_SERVICE: undefined,
    ERRAND_FROBNICATE: undefined,
  };
  for (const [name, known] of Object.entries(meant)) {
    const hint = known === undefined ? "docs/settings.md lists the known ones" : `did you mean ${known}?`;
    expect(problemsOf({ [name]: "1" })).toEqual([`${name}: unknown variable; ${hint}`]);
  }
});

test("a wrong value is reported under the name of the option that set it", async () => {
  const flags = { ERRAND_PORT: "--port", ERRAND_HOST: "--host" };
  expect(problemsOf({ ERRAND_PORT: "99999", ERRAND_WORKERS: "x" }, flags)).toEqual([
    expect.stringContaining("--port: must be"),
    expect.stringContaining("ERRAND_WORKERS: must be"),
  ]);
  const config = readConfig({ ERRAND_HOST: "192.0.2.1" });
  const refused = (options: Record<string, string>) =>
    checkAddress(config, "/nonexistent", options).catch((error: unknown) => error);
  const byOption = await refused(flags);
  expect(byOption).toBeInstanceOf(ServeError);
  expect(String(byOption)).toMatch(/cannot listen on 192\.0\.2\.1:4180 \(EADDRNOTAVAIL\).* set --host to /);
  expect(String(await refused({}))).toContain("set ERRAND_HOST to ");
  const anyPort = readConfig({ ERRAND_HOST: "example.invalid", ERRAND_PORT: "0" });
  await expect(checkAddress(anyPort, "/nonexistent", flags)).rejects.toThrow(
    /cannot listen on example\.invalid:0 \((?:ENOTFOUND|EAI_AGAIN)\).* set --host to /,
  );
});

test("ERRAND_KEEP_ALIVE_SECONDS is a whole number of seconds", () => {
  expect(readConfig({}).ERRAND_KEEP_ALIVE_SECONDS).toBe(65);
  expect(readConfig({ ERRAND_KEEP_ALIVE_SECONDS: "620" }).ERRAND_KEEP_ALIVE_SECONDS).toBe(620);
  for (const wrong of ["0", "-1", "86401", "1.5", "65s"])
    expect(problemsOf({ ERRAND_KEEP_ALIVE_SECONDS: wrong })).toHaveLength(1);
});

test("ERRAND_MAIL_TO has domains and addresses, or *", () => {
  expect(readConfig({ ERRAND_MAIL_TO: "example.com, ann+x@example.org,*" }).ERRAND_MAIL_TO).toEqual([
    ...["example.com", "ann+x@example.org", "*"],
  ]);
  for (const wrong of ["@example.com", "*.example.com", "ann@", "a b@example.com", "https://example.com"])
    expect(problemsOf({ ERRAND_MAIL_TO: wrong })).toEqual([
      expect.stringContaining("example.com,ann@example.org"),
    ]);
});

test("ERRAND_EGRESS_PROXY is the URL of a proxy, and no message shows its value", () => {
  expect(
    readConfig({ ERRAND_EGRESS_PROXY: "http://ann:pw@p.example:3128" }).ERRAND_EGRESS_PROXY,
  ).toMatchObject({
    place: "p.example:3128",
  });
  for (const wrong of ["socks5://ann:hush@p", "http://ann:hu/sh@p", "hush hush"]) {
    const problems = problemsOf({ ERRAND_EGRESS_PROXY: wrong });
    expect(problems).toEqual([expect.stringContaining("ERRAND_EGRESS_PROXY: is not the http or https URL")]);
    expect(problems.join()).not.toContain("hush");
  }
});

test("the address of a broker may have a path, and has no query, fragment or credentials", () => {
  for (const name of ["ERRAND_URL", "ERRAND_PUBLIC_URL"]) {
    expect(problemsOf({ [name]: "https://errand.example/broker/" })).toEqual([]);
    for (const wrong of ["https://h/?hush", "https://h/#hush", "https://ann:hush@h", "banana", "ftp://h"]) {
      const problems = problemsOf({ [name]: wrong });
      expect(problems).toEqual([expect.stringContaining(`${name}: `)]);
      expect(problems.join()).not.toContain("hush");
    }
  }
});

test("a signing key may begin with a byte order mark", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = { ...privateKey.export({ format: "jwk" }), alg: "ES256", kid: "k" };
  const given = { ERRAND_CARD_SIGNING_KEY: `\uFEFF${JSON.stringify(key)}\r\n` };
  expect(problemsOf(given)).toEqual([]);
});

test("ERRAND_TRUSTED_PROXIES is a list of addresses and CIDRs, and a bad one is named", () => {
  expect(readConfig({ ERRAND_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8,::1" }).ERRAND_TRUSTED_PROXIES).toEqual([
    "127.0.0.1",
    "10.0.0.0/8",
    "::1",
  ]);
  for (const wrong of [
    "localhost",
    "10.0.0.0/33",
    "10.0.0",
    "0.0.0.0/0",
    "::/0",
    "*",
    "10.0.0.1:80",
    "1.1.1.1/",
  ]) {
    expect(problemsOf({ ERRAND_TRUSTED_PROXIES: `127.0.0.1,${wrong}` })).toEqual([
      expect.stringContaining(`ERRAND_TRUSTED_PROXIES: "${wrong}" is no address`),
    ]);
  }
});

test("a choice that there is not names those that there are", () => {
  expect(problemsOf({ ERRAND_LOG_FORMAT: "yaml", ERRAND_CALLBACK_ALLOW: "a," })).toEqual([
    "ERRAND_CALLBACK_ALLOW.1: is empty; write entries between commas",
    'ERRAND_LOG_FORMAT: must be one of "text", "json"',
  ]);
});

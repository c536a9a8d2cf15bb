/** The library and the CLI behind a forward proxy: only the proxy knows the broker's name. */
import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { Agent, Delegator } from "../../src/index.ts";
import { run } from "../cli/fake-host.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { startProxy } from "../support/forward-proxy.ts";
import { until } from "../support/until.ts";

const NAME = "broker.corp.invalid";
const BROKER = `http://${NAME}:4180`;
afterEach(() => vi.unstubAllEnvs());

async function setup(rules: { credentials?: string; tunnelStatus?: number } = {}) {
  const broker = await startBroker({ allowedOrigins: [NAME] });
  const proxy = await startProxy({ to: broker.gateway.port, ...rules });
  for (const name of ["http_proxy", "https_proxy", "no_proxy", "NO_PROXY", "HTTPS_PROXY"])
    vi.stubEnv(name, undefined);
  vi.stubEnv("HTTP_PROXY", `http://${proxy.place}`);
  await client(broker.url).agent("scout");
  const status = (...args: string[]) =>
    run([...args], {
      env: { url: BROKER, token: OPERATOR, dataDir: "/nonexistent" },
      childEnv: { HTTP_PROXY: process.env.HTTP_PROXY, NO_PROXY: process.env.NO_PROXY },
    });
  return { ...broker, proxy, cli: status };
}

test("calls, long polls and event streams work through a proxy that opens no tunnels", async () => {
  const { proxy, url, cli } = await setup({ tunnelStatus: 403 });
  const scout = await as(url, "agent:scout");
  const agent = new Agent(
    { agent: "scout", url: BROKER, token: scout.token, failFast: true },
    async ({ text }) => `${text}!`,
  );
  const stop = new AbortController();
  const running = agent.run(stop.signal);
  const delegator = new Delegator({ url: BROKER, token: OPERATOR });
  const { id } = await delegator.delegate({ target: "scout", task: "go" });
  const types: string[] = [];
  for await (const { type } of delegator.watch(id, { after: "0" })) types.push(type);
  expect(types.at(-1)).toBe("DELEGATION_COMPLETE");
  expect((await delegator.wait(id)).reply?.parts).toEqual([{ text: "go!" }]);
  stop.abort();
  await running.catch(() => undefined);
  expect(await cli("status", "--json")).toMatchObject({ code: 0 });
  expect(proxy.seen).toContain(`POST ${BROKER}/v1/delegations`);
  for (const line of proxy.seen) expect(line).not.toMatch(/^CONNECT/);
});

test("a call through a proxy is cut when it is aborted, and its redirects are not followed", async () => {
  const { proxy } = await setup();
  const paths: string[] = [];
  const server = createHttpServer((incoming, outgoing) => {
    paths.push(`${incoming.headers.host}${incoming.url}`);
    expect(incoming.headers).not.toHaveProperty("proxy-authorization");
    if (incoming.url?.includes("/dlg_1")) outgoing.writeHead(302, { location: `${BROKER}/elsewhere` }).end();
    else outgoing.on("close", () => paths.push("cut"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  proxy.rules.to = typeof address === "object" && address ? address.port : 0;
  proxy.rules.credentials = "ann:hush";
  vi.stubEnv("HTTP_PROXY", `http://ann:hush@${proxy.place}`);
  const delegator = new Delegator({ url: BROKER, token: OPERATOR });
  await expect(delegator.get("dlg_1")).rejects.toMatchObject({
    code: "invalid_response",
    message: expect.stringMatching(/redirect.* through the proxy 127\.0\.0\.1:\d+ \(HTTP_PROXY\)/),
    recovery: expect.stringContaining("Check the proxy"),
  });
  const stop = new AbortController();
  const waiting = delegator.get("dlg_2", { signal: stop.signal });
  await until(() => paths.length === 2);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await until(() => paths.length === 3);
  expect(paths).toEqual([`${NAME}:4180/v1/delegations/dlg_1`, `${NAME}:4180/v1/delegations/dlg_2`, "cut"]);
});

test("HTTPS is tunnelled; loopback and hosts in NO_PROXY are called directly", async () => {
  const { proxy, url } = await setup();
  vi.stubEnv("HTTPS_PROXY", `http://${proxy.place}`);
  const secure = new Delegator({ url: `https://${NAME}`, token: OPERATOR });
  await expect(secure.list().next()).rejects.toMatchObject({ code: "not_a_broker" });
  expect(proxy.seen).toEqual([`CONNECT ${NAME}:443`]);
  // A TLS handshake, not a request.
  expect(proxy.tunneled[0]?.[0]).toBe(0x16);
  expect(await new Delegator({ url, token: OPERATOR }).list().next()).toMatchObject({ done: true });
  vi.stubEnv("NO_PROXY", "corp.invalid");
  const direct = new Delegator({ url: BROKER, token: OPERATOR });
  await expect(direct.list().next()).rejects.toMatchObject({ code: "unreachable" });
  expect(proxy.seen).toHaveLength(1);
});

test("a proxy may require a user and password; 407 is named, and an outage once the broker was reached", async () => {
  const { proxy, cli } = await setup({ credentials: "ann:hush@1" });
  const missing = await cli("list");
  expect([missing.code, missing.stderr]).toEqual([
    75,
    expect.stringContaining(`the proxy ${proxy.place} (HTTP_PROXY) requires a user and password: HTTP 407`),
  ]);
  vi.stubEnv("HTTP_PROXY", `http://ann:wrong-hush@${proxy.place}`);
  const wrong = await cli("list", "--json");
  expect(wrong.code).toBe(75);
  expect(JSON.parse(wrong.stderr)).toMatchObject({ code: "proxy_auth_required", retryable: true });
  expect(wrong.stderr).toContain("refuses the user and password");
  expect(wrong.stderr).not.toContain("wrong-hush");
  vi.stubEnv("HTTP_PROXY", `http://ann:hush%401@${proxy.place}`);
  let failures = 0;
  const delegator = new Delegator({
    url: BROKER,
    token: OPERATOR,
    onRetry: ({ code }) => {
      expect(code).toBe("proxy_auth_required");
      failures += 1;
      proxy.rules.credentials = "ann:hush@1";
    },
  });
  expect(await delegator.list().next()).toMatchObject({ done: true });
  proxy.rules.credentials = "ann:another";
  // The next call opens a new tunnel.
  vi.stubEnv("HTTP_PROXY", `http://ann:hush%401@localhost:${proxy.place.split(":")[1]}`);
  expect(await delegator.list().next()).toMatchObject({ done: true });
  expect(failures).toBe(1);
});

test("a proxy that is away, one that cannot connect, and a variable without a proxy are told apart", async () => {
  const { proxy, cli } = await setup({ tunnelStatus: 503 });
  vi.stubEnv("HTTPS_PROXY", `http://${proxy.place}`);
  const refused = await cli("list", "--url", `https://${NAME}`, "--token", OPERATOR);
  expect([refused.code, refused.stderr]).toEqual([
    75,
    expect.stringContaining("did not connect to the server: HTTP 503"),
  ]);
  vi.stubEnv("HTTP_PROXY", "http://ann:hush@127.0.0.1:1");
  const away = await cli("list");
  expect([away.code, away.stderr]).toEqual([
    75,
    expect.stringContaining("the proxy 127.0.0.1:1 (HTTP_PROXY) does not answer (ECONNREFUSED)"),
  ]);
  vi.stubEnv("HTTP_PROXY", "socks5://ann:hush@127.0.0.1:1");
  const wrong = await cli("list");
  expect([wrong.code, wrong.stderr]).toEqual([
    78,
    expect.stringContaining("HTTP_PROXY is not the http or https URL"),
  ]);
  for (const { stderr } of [away, wrong]) expect(stderr).not.toContain("hush");
});

test.each([
  [
    "cuts the connection",
    (socket: Socket) => socket.once("data", () => socket.resetAndDestroy()),
    "connection_lost",
  ],
  ["is no proxy", (socket: Socket) => socket.end("garbage\r\n\r\n"), "not_a_broker"],
])(
  "a proxy for HTTPS that %s is named with its variable, as something to check",
  async (_what, take, code) => {
    await setup();
    const server = createServer(take);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const place = `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    vi.stubEnv("HTTPS_PROXY", `http://ann:hush@${place}`);
    const delegator = new Delegator({ url: `https://${NAME}`, token: OPERATOR, retryForMs: 0 });
    const error = await delegator
      .list()
      .next()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code,
      message: expect.stringContaining(`through the proxy ${place} (HTTPS_PROXY)`),
      recovery: expect.stringContaining(
        `Check the proxy ${place} (HTTPS_PROXY), correct or unset the variable`,
      ),
    });
    expect(JSON.stringify(error)).not.toContain("hush");
  },
);

test("the CLI advises on a proxy that is away, and not on a broker", async () => {
  const { cli } = await setup();
  vi.stubEnv("HTTP_PROXY", "http://ann:hush@127.0.0.1:1");
  expect((await cli("list")).stderr).toBe(
    `errand: ${BROKER} cannot be reached: the proxy 127.0.0.1:1 (HTTP_PROXY) does not answer (ECONNREFUSED). Start that proxy, correct or unset the variable, or name the broker's host in NO_PROXY.\n`,
  );
});

test("without the package undici, a call says which to install", async () => {
  await setup();
  vi.resetModules();
  vi.doMock("undici", () => {
    throw new Error("Cannot find package 'undici'");
  });
  const { Delegator: Fresh } = await import("../../src/index.ts");
  const refused = await new Fresh({ url: BROKER, token: OPERATOR })
    .list()
    .next()
    .catch((error: unknown) => error);
  vi.doUnmock("undici");
  vi.resetModules();
  expect(refused).toMatchObject({
    code: "proxy_not_supported",
    message: expect.stringContaining("HTTP_PROXY is set, but the package 'undici'"),
    recovery: expect.stringContaining("npm install undici"),
  });
});

test("doctor says what goes through which proxy, without its password", async () => {
  const { proxy } = await setup();
  const doctor = async (url: string, childEnv: Record<string, string>, egressProxy?: string) => {
    const env = { url, token: OPERATOR, dataDir: "/nonexistent", egressProxy };
    const { stdout } = await run(["doctor", "--json"], { env, childEnv });
    expect(stdout).not.toContain("hush");
    const checks: { check: string; status: string; detail: string }[] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    return (name: string) => checks.find(({ check }) => check === name);
  };
  const set = { HTTP_PROXY: `http://ann:hush@${proxy.place}` };
  const one = await doctor(BROKER, set, "http://bob:hush@out.example");
  expect(one("proxy")?.detail).toBe(
    `requests to the broker go through ${proxy.place} (HTTP_PROXY, with a user and password)`,
  );
  expect(one("egress_proxy")?.detail).toContain(
    "out.example:80 (ERRAND_EGRESS_PROXY, with a user and password)",
  );
  expect((await doctor("http://127.0.0.1:1", set))("proxy")?.detail).toContain(
    "go directly, although HTTP_PROXY is set",
  );
  expect((await doctor(BROKER, { ...set, NO_PROXY: "*" }))("proxy")?.detail).toContain("go directly");
  const wrong = await doctor(BROKER, { HTTP_PROXY: "socks5://ann:hush@p" }, "hush hush");
  for (const name of ["proxy", "egress_proxy"])
    expect(wrong(name)).toMatchObject({ status: "fail", category: "CONFIG" });
  const none = await doctor(BROKER, {});
  for (const name of ["proxy", "egress_proxy"]) expect(none(name)).toBeUndefined();
});

/** Agent cards: their content in each version's form, caching and signatures. */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { ConfigError, readConfig } from "../../../src/config.ts";
import { signingKeySchema } from "../../../src/schema/signing-key.ts";
import { as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { freshDir } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { rawCalls } from "./support.ts";

const PATH = "/a2a/scout/.well-known/agent-card.json";
const SKILL = { id: "dig", name: "Dig", description: "Digs.", tags: ["dig"], inputModes: ["image/png"] };

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const operator = client(broker.url);
  await operator.agent("scout", { description: "Looks around.", version: "3", skills: [SKILL] });
  const card = (headers: Record<string, string> = { "a2a-version": "1.0" }) =>
    request(broker.url, "GET", PATH, { token: null, headers });
  return { ...broker, operator, card };
}

test("§8.1 §8.3 §5.7 the card shows the agent's record, with absolute URLs and all required members", async () => {
  const { card, url } = await setup();
  const { status, body } = await card();
  expect(status).toBe(200);
  expect(body).toMatchObject({
    name: "scout",
    description: "Looks around.",
    version: "3",
    skills: [SKILL],
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    securityRequirements: [{ schemes: { bearer: {} } }],
    defaultInputModes: ["text/plain", "application/json", "image/png"],
    defaultOutputModes: ["text/plain", "application/json"],
  });
  const base = `${url}/a2a/scout/`;
  expect(body.supportedInterfaces).toEqual([
    { url: `${base}rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: `${base}rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    { url: `${base}rpc`, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    { url: `${base}rest`, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
  ]);
});

test("§5.7 an agent without settings has a default skill and description", async () => {
  const { operator, url } = await setup();
  await operator.agent("quiet", {});
  const { body } = await request(url, "GET", "/a2a/quiet/.well-known/agent-card.json", { token: null });
  expect(body.description).not.toBe("");
  expect(body.skills).toHaveLength(1);
  expect(body.skills[0].tags).not.toEqual([]);
});

test("§8.3 URLs begin with the public URL, whatever the request's Host", async () => {
  const publicUrl = "https://agents.example/broker/";
  const { card, operator } = await setup({ publicUrl });
  expect((await card()).body.supportedInterfaces[0].url).toBe("https://agents.example/broker/a2a/scout/rpc");
  const { body } = await operator.call("GET", "/v1/agents/scout");
  expect(body.a2a_card_url).toBe(`https://agents.example/broker${PATH}`);
});

test("an unknown agent has no card", async () => {
  const { url } = await setup();
  const { status, body } = await request(url, "GET", "/a2a/nobody/.well-known/agent-card.json", {
    token: null,
  });
  expect([status, body.code]).toEqual([404, "agent_unknown"]);
});

test("an invalid agent name is refused without a lookup", async () => {
  const { url, gateway } = await setup();
  const asked: string[] = [];
  const { agents } = gateway.broker;
  const find = agents.find.bind(agents);
  agents.find = (name) => {
    asked.push(name);
    return find(name);
  };
  for (const name of ["Scout", "a%2Fb", "x".repeat(64)]) {
    const { status } = await request(url, "GET", `/a2a/${name}/.well-known/agent-card.json`, { token: null });
    expect(status).toBe(404);
    const { body } = await rawCalls(url, OPERATOR, name).rpc("ListTasks", {});
    expect(body.error.code).toBe(-32001);
  }
  expect(asked).toEqual([]);
});

test("0.3 gets its own form, and a request without a version gets both", async () => {
  const { card, url } = await setup();
  const base = `${url}/a2a/scout/`;
  const old = {
    protocolVersion: "0.3.0",
    url: `${base}rpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${base}rpc`, transport: "JSONRPC" },
      { url: `${base}rest`, transport: "HTTP+JSON" },
    ],
    supportsAuthenticatedExtendedCard: true,
    security: [{ bearer: [] }],
  };
  const { body } = await card({ "a2a-version": "0.3" });
  expect(body).toMatchObject({ ...old, securitySchemes: { bearer: { type: "http", scheme: "Bearer" } } });
  expect("supportedInterfaces" in body).toBe(false);
  const both = await card({});
  expect(both.body).toMatchObject(old);
  expect(both.body.securitySchemes.bearer).toMatchObject({
    type: "http",
    scheme: "Bearer",
    httpAuthSecurityScheme: { scheme: "Bearer" },
  });
  expect(both.body.supportedInterfaces).toHaveLength(4);
  // A client of another version learns the supported ones from the card.
  expect((await card({ "a2a-version": "7.0" })).body).toEqual(both.body);
});

test("§8.6.1 a card is cacheable, with conditional requests by tag or date", async () => {
  const { card, operator, gateway } = await setup();
  const { headers } = await card();
  expect(headers.get("cache-control")).toMatch(/^public, max-age=\d+$/);
  expect(headers.get("vary")).toContain("A2A-Version");
  const tag = headers.get("etag") ?? "";
  const recent = Date.parse(headers.get("last-modified") ?? "");
  expect(Math.abs(Date.now() - recent)).toBeLessThan(60_000);
  const modified = new Date(recent + 2_000).toUTCString();
  const asked = async (more: Record<string, string>) =>
    (await card({ "a2a-version": "1.0", ...more })).status;
  expect(await asked({ "if-none-match": tag })).toBe(304);
  expect(await asked({ "if-none-match": `"other", ${tag.replace("W/", "")}` })).toBe(304);
  expect(await asked({ "if-none-match": '"other"' })).toBe(200);
  expect(await asked({ "if-modified-since": modified })).toBe(304);
  expect(await asked({ "if-modified-since": modified, "if-none-match": '"other"' })).toBe(200);
  expect(await asked({ "if-modified-since": new Date(0).toUTCString() })).toBe(200);
  await operator.agent("scout", { description: "Another." });
  expect(gateway.port).toBeGreaterThan(0);
  expect(await asked({ "if-none-match": tag })).toBe(200);
});

test("§8.6.1 a second change within one second is not missed by date", async () => {
  const { card, operator } = await setup();
  for (let n = 0; n < 5; n += 1) {
    await operator.agent("scout", { description: `${n}` });
    const modified = (await card()).headers.get("last-modified") ?? "";
    await operator.agent("scout", { description: `${n} and more` });
    const again = await card({ "a2a-version": "1.0", "if-modified-since": modified });
    expect([again.status, again.body.description]).toEqual([200, `${n} and more`]);
  }
});

test("presence is in the extended card alone, as in REST but in camelCase, and no cache may keep it", async () => {
  const { url, operator, card, gateway } = await setup();
  const { token } = await as(url, "caller:alice");
  const versions = { "1.0": "GetExtendedAgentCard", "0.3": "agent/getAuthenticatedExtendedCard" };
  const extended = async (version: keyof typeof versions) => {
    const { body, headers } = await rawCalls(url, token).rpc(
      versions[version],
      {},
      { "a2a-version": version },
    );
    expect([headers.get("cache-control"), headers.get("etag")]).toEqual(["no-store", null]);
    return body.result.capabilities.extensions[0].params.presence;
  };
  const etags = async () =>
    [await card(), await card({ "a2a-version": "0.3" })].map((one) => one.headers.get("etag"));
  const before = await etags();
  expect(await extended("1.0")).toEqual({ state: "offline", lastSeenAt: null, pollers: 0 });
  const polling = operator.lease("scout", { wait_seconds: 60 });
  await until(() => gateway.broker.handoff.polls.count("scout") === 1);
  for (const version of ["1.0", "0.3"] as const) {
    const presence = await extended(version);
    expect(presence).toMatchObject({ state: "online", pollers: 1 });
    expect(Object.keys(presence)).toEqual(["state", "lastSeenAt", "pollers"]);
    expect(presence.lastSeenAt).toMatch(/^\d{4}-.*Z$/);
  }
  for (const { body, headers } of [await card(), await card({}), await card({ "a2a-version": "0.3" })]) {
    expect(headers.get("cache-control")).toBe("public, max-age=60");
    expect(JSON.stringify(body.capabilities)).not.toMatch(/online|pollers|last_?seen/i);
  }
  expect(await etags()).toEqual(before);
  await operator.delegate("scout");
  expect((await polling).body.leases).toHaveLength(1);
});

test("§3.1.11 §13.3 the extended card shows an agent's settings only to itself and the operator", async () => {
  const { url } = await setup();
  const paramsOf = async (token: string) => {
    const { body } = await rawCalls(url, token).rpc("GetExtendedAgentCard", {});
    const rest = await rawCalls(url, token).rest("GET", "/extendedAgentCard");
    expect(rest.body).toEqual(body.result);
    return body.result.capabilities.extensions[0].params;
  };
  const shown = await paramsOf((await as(url, "caller:alice")).token);
  expect(Object.keys(shown)).toEqual(["presence", "counts", "paused"]);
  for (const token of [OPERATOR, (await as(url, "agent:scout")).token]) {
    expect(await paramsOf(token)).toMatchObject({ acceptsFrom: ["*"], limits: { maxAttempts: 3 } });
  }
  const { body } = await request(url, "GET", PATH, { token: null });
  expect(JSON.stringify(body)).not.toContain("presence");
});

test("§3.3.4 no card requires an extension", async () => {
  const { card, url } = await setup();
  const extended = await rawCalls(url, OPERATOR).rpc("GetExtendedAgentCard", {});
  for (const { capabilities } of [(await card()).body, (await card({})).body, extended.body.result]) {
    expect(capabilities.extensions).toHaveLength(1);
    expect(capabilities.extensions[0].required ?? false).toBe(false);
  }
});

const jwk = (type: "ec" | "ed25519" | "rsa") =>
  (type === "ec"
    ? generateKeyPairSync("ec", { namedCurve: "P-256" })
    : type === "rsa"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ed25519")
  ).privateKey.export({ format: "jwk" });

describe("§8.4 with a key", () => {
  test.each(["ec", "ed25519", "rsa"] as const)(
    "(%s) the card is signed, as the SDK verifies",
    async (type) => {
      // The SDK logs each invalid signature there.
      const quiet = vi.spyOn(console, "debug").mockReturnValue(undefined);
      onTestFinished(() => quiet.mockRestore());
      const key = { ...jwk(type), kid: "the-key" };
      const { card, url } = await setup({ cardSigningKey: signingKeySchema.parse(key) });
      const extended = await rawCalls(url, OPERATOR).rpc("GetExtendedAgentCard", {});
      for (const body of [(await card()).body, (await card({})).body, extended.body.result]) {
        const asked: string[] = [];
        const { d: _private, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...open } = key;
        const verify = verifyAgentCardSignature(async (kid) => {
          asked.push(kid);
          return { ...open, kty: String(open.kty) };
        });
        const served = z.custom<AgentCard>().parse(body);
        await verify(served);
        expect(body.securitySchemes.bearer).toMatchObject({ httpAuthSecurityScheme: { scheme: "Bearer" } });
        expect(asked).toEqual(["the-key"]);
        await expect(verify({ ...served, name: "another" })).rejects.toThrow();
        const header = JSON.parse(Buffer.from(body.signatures[0].protected, "base64url").toString());
        expect(header).toMatchObject({ kid: "the-key", typ: "JOSE" });
      }
      expect((await card()).headers.get("etag")).toBe((await card()).headers.get("etag"));
    },
  );
});

test("a key comes from the variable or a file; an invalid key is a configuration error", () => {
  const key = jwk("ec");
  const file = join(freshDir(), "key.json");
  writeFileSync(file, JSON.stringify(key));
  for (const given of [JSON.stringify(key), file]) {
    expect(readConfig({ ERRAND_CARD_SIGNING_KEY: given }).ERRAND_CARD_SIGNING_KEY?.alg).toBe("ES256");
  }
  const { d: secret, ...open } = key;
  for (const given of [
    "/no/such/file",
    "{",
    JSON.stringify(open),
    JSON.stringify({ kty: "oct", k: "AAAA", alg: "HS256" }),
    JSON.stringify({ ...key, x: "AAAA" }),
    JSON.stringify({ ...key, crv: "P-1" }),
    JSON.stringify({ ...key, alg: "RS256" }),
    JSON.stringify(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({ format: "jwk" })),
  ]) {
    try {
      readConfig({ ERRAND_CARD_SIGNING_KEY: given, ERRAND_PORT: "x" });
      expect.unreachable(given);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      expect(
        error.problems.filter((one) => one.startsWith("ERRAND_CARD_SIGNING_KEY")),
        given,
      ).not.toEqual([]);
      expect(error.problems.join()).toContain("ERRAND_PORT");
      expect(error.problems.join()).not.toContain(String(secret));
    }
  }
});

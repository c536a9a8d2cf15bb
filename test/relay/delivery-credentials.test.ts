/** A push agent's credentials: stored, sent to the server's origin alone, and shown to nobody. */
import { createServer, type Server } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { Admin } from "../../src/client/admin.ts";
import { AgentStore } from "../../src/engine/agents/store.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { rawCalls } from "../doors/a2a/support.ts";
import { startA2aServer } from "../support/a2a-server.ts";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { SLOW, watching } from "../support/relaying.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 120_000 });

/** Does not look like a token, so that no rule of the log redacts it. */
const CANARY = "kanarienvogel7f3a";
const BEARER = { scheme: "bearer", token: CANARY };

async function setup(serverOptions: Partial<Parameters<typeof startA2aServer>[0]> = {}) {
  const server = await startA2aServer({ turn: (turn) => turn.message("in"), ...serverOptions });
  const broker = await startBroker({ callbackAllow: ["127.0.0.1"] });
  const api = client(broker.url);
  const put = (credentials?: unknown, more: object = {}) =>
    api.agent("remote", { delivery: { mode: "push", url: server.url, credentials }, ...more });
  const patch = (body: unknown, caller = api) => caller.call("PATCH", "/v1/agents/remote", body);
  const stored = () => broker.redis.hmget("{errand:0}:agent:remote", "credentials", "credentials_for");
  return { ...broker, server, api, put, patch, stored, ...watching(api) };
}

/** A server that answers as `answer` says, and what it was sent. */
async function listen(answer: (url: string) => { status: number; headers?: object; body?: string }) {
  const sent: { readonly url: string; readonly authorization: string | undefined }[] = [];
  const http: Server = createServer((incoming, outgoing) => {
    sent.push({ url: incoming.url ?? "", authorization: incoming.headers.authorization });
    const { status, headers = {}, body } = answer(incoming.url ?? "");
    outgoing.writeHead(status, { ...headers }).end(body);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    http.close();
    http.closeAllConnections();
  });
  const address = http.address();
  return { url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`, sent };
}

test("each scheme is sent with every call, and new credentials from the next call on", async () => {
  const { put, patch, delegate, ended, server } = await setup();
  await put(BEARER);
  const basic = { scheme: "basic", username: "zoë", password: "p:w" };
  const headers = { scheme: "headers", headers: { "X-Api-Key": "k", Cookie: "sid=1" } };
  const sent = async () => {
    const before = server.headers.length;
    expect((await ended(await delegate("enter"))).state).toBe("completed");
    expect(server.headers.length).toBe(before + 1);
    const { authorization, cookie, ...rest } = server.headers[before] ?? {};
    return [authorization, cookie, rest["x-api-key"]];
  };
  expect(await sent()).toEqual([`Bearer ${CANARY}`, undefined, undefined]);
  expect((await patch({ delivery: { credentials: basic } })).body.changed).toEqual(["delivery.credentials"]);
  expect(await sent()).toEqual([`Basic ${Buffer.from("zoë:p:w").toString("base64")}`, undefined, undefined]);
  await patch({ delivery: { credentials: headers } });
  expect(await sent()).toEqual([undefined, "sid=1", "k"]);
  expect((await patch({ delivery: { credentials: null } })).body).toMatchObject({
    delivery: { credentials_set: false },
    changed: [],
    reset: ["delivery.credentials"],
  });
  expect(await sent()).toEqual([undefined, undefined, undefined]);
});

test("without the right credentials the work waits, and the event says why", async () => {
  const { put, patch, delegate, ended, api } = await setup({ bearer: CANARY });
  await put({ ...BEARER, token: "wrong" });
  const id = await delegate("enter");
  const released = await until(async () => {
    const { body } = await api.events(id);
    return body.events.find((event: { status?: string }) => event.status === "released");
  }, SLOW);
  expect(released.reason).toBe(
    "the A2A server (/rpc) answered with HTTP 401, no content type, an empty body",
  );
  expect((await api.get(id)).body).toMatchObject({ state: "submitted", attempt: 1 });
  await patch({ delivery: { credentials: BEARER } });
  expect(await ended(await delegate("again"))).toMatchObject({ state: "completed" });
});

test("a patch keeps them, a put and another origin reset them, and every answer says so", async () => {
  const { put, patch, stored, server, api } = await setup();
  const url = server.url;
  expect((await put(BEARER)).body).toMatchObject({
    delivery: { mode: "push", url, credentials_set: true },
    created: true,
  });
  const unchanged = { changed: [], reset: [], delivery: { credentials_set: true } };
  expect((await put(BEARER)).body).toMatchObject(unchanged);
  expect((await patch({ delivery: { mode: "push", url } })).body).toMatchObject(unchanged);
  expect((await patch({ description: "far" })).body).toMatchObject({
    delivery: { credentials_set: true },
    changed: ["description"],
  });
  const path = await patch({ delivery: { url: `${url}/a` } });
  expect(path.body).toMatchObject({ delivery: { credentials_set: true }, changed: ["delivery"], reset: [] });
  expect((await stored())[1]).toBe(url);

  const gone = { credentials_set: false };
  const moved = await patch({ delivery: { url: `${url.replace("127.0.0.1", "127.0.0.1.nip.example")}` } });
  expect(moved.body).toMatchObject({
    delivery: gone,
    changed: ["delivery"],
    reset: ["delivery.credentials"],
  });
  expect(await stored()).toEqual(["", ""]);
  await put(BEARER);
  expect((await put()).body).toMatchObject({ delivery: gone, reset: ["delivery.credentials"] });
  await put(BEARER);
  const polled = await patch({ delivery: { mode: "poll" } });
  expect(polled.body).toMatchObject({
    delivery: { mode: "poll" },
    reset: ["delivery", "delivery.credentials"],
  });
  expect(await stored()).toEqual(["", ""]);
  await put(BEARER);
  expect((await api.call("DELETE", "/v1/agents/remote")).status).toBe(204);
  expect(await stored()).toEqual([null, null]);
  expect((await put()).body).toMatchObject({ delivery: gone, created: true });
});

test("credentials for another origin than the URL's are not used", async () => {
  const { put, server, redis, url, api, delegate, ended } = await setup();
  await put(BEARER);
  await redis.hset("{errand:0}:agent:remote", "credentials_for", "http://127.0.0.2");
  await redis.set("{errand:0}:agents:mark", "another");
  await until(async () => {
    const { body } = await client(url).call("GET", "/v1/agents/remote");
    return body.delivery.credentials_set === false;
  }, SLOW);
  const { body } = await api.call("GET", "/v1/agents");
  expect(body.agents[0].delivery).toEqual({ mode: "push", url: server.url, credentials_set: false });
  await ended(await delegate("enter"));
  expect(server.headers.map(({ authorization }) => authorization)).toEqual([undefined]);
});

test("those of a new server are not sent to the old one, if the agent changes just before a call", async () => {
  const { put, server, api, delegate, ended } = await setup();
  const other = await startA2aServer({ turn: (turn) => turn.message("in") });
  await put();
  const original = AgentStore.prototype.credentialsOf;
  const spy = vi.spyOn(AgentStore.prototype, "credentialsOf");
  onTestFinished(() => spy.mockRestore());
  spy.mockImplementationOnce(async function (this: AgentStore, ...args) {
    await api.agent("remote", { delivery: { mode: "push", url: other.url, credentials: BEARER } });
    return original.apply(this, args);
  });
  await ended(await delegate("enter"));
  await ended(await delegate("again"));
  const sent = [server, other].map(({ headers }) => headers.map(({ authorization }) => authorization));
  expect(sent).toEqual([[undefined], [`Bearer ${CANARY}`]]);
});

test("only the operator may set, replace or remove them", async () => {
  const { put, patch, server, url } = await setup();
  await put(BEARER);
  const own = await as(url, "agent:remote");
  expect((await patch({ description: "near", delivery: { url: server.url } }, own)).status).toBe(200);
  const refused = [
    await patch({ delivery: { credentials: { ...BEARER, token: "other" } } }, own),
    await patch({ delivery: { credentials: null } }, own),
    // Without them it would reset them.
    await own.agent("remote", { delivery: { mode: "push", url: server.url } }),
  ];
  for (const { status, body } of refused) {
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(body.recovery).toContain("PATCH");
  }
  expect((await own.call("GET", "/v1/agents/remote")).body.delivery).toEqual({
    mode: "push",
    url: server.url,
    credentials_set: true,
  });
  const viewer = await as(url, "viewer:wall");
  expect((await viewer.call("GET", "/v1/agents/remote")).body.delivery).toEqual({ mode: "push" });
  expect((await viewer.call("GET", "/v1/agents")).body.agents[0].delivery).toEqual({ mode: "push" });
});

test("invalid credentials are refused with their path and without their content", async () => {
  const { put, patch, stored } = await setup();
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`X-${n}`, CANARY]));
  const cases: [credentials: unknown, path: string][] = [
    [{ token: CANARY }, "scheme"],
    [{ scheme: "digest", token: CANARY }, "scheme"],
    [{ scheme: "bearer" }, "token"],
    [{ scheme: "bearer", token: `${CANARY}\r\nX-Evil: 1` }, "token"],
    [{ scheme: "bearer", token: "" }, "token"],
    [{ scheme: "bearer", token: CANARY, password: CANARY }, "password"],
    [{ scheme: "bearer", token: CANARY.padEnd(LIMITS.credentials_bytes.value, "x") }, ""],
    [{ scheme: "basic", username: `${CANARY}:`, password: CANARY }, "username"],
    [{ scheme: "basic", username: "u", password: `${CANARY}\n` }, "password"],
    [{ scheme: "headers", headers: {} }, "headers"],
    [{ scheme: "headers", headers: many }, "headers"],
    [{ scheme: "headers", headers: { "X-A": CANARY, "x-a": CANARY } }, "headers"],
    [{ scheme: "headers", headers: { Host: CANARY } }, "headers.Host"],
    [{ scheme: "headers", headers: { "X A": CANARY } }, "headers.X A"],
    [{ scheme: "headers", headers: { "X-A": `${CANARY}\n` } }, "headers.X-A"],
    [CANARY, ""],
  ];
  const at = (path: string) => ["delivery.credentials", path].filter(Boolean).join(".");
  for (const [credentials, path] of cases) {
    const { status, body } = await put(credentials);
    expect([status, body.code, body.details?.issues[0].path], path).toEqual([
      400,
      "invalid_request",
      at(path),
    ]);
    expect(JSON.stringify(body)).not.toContain(CANARY);
  }
  await put();
  expect((await patch({ delivery: { mode: "poll", credentials: BEARER } })).status).toBe(400);
  await patch({ delivery: { mode: "poll" } });
  expect((await patch({ delivery: { credentials: BEARER } })).status).toBe(400);
  expect((await stored())[0]).toBe("");
});

test("nothing shows them: no answer, card, event, audit entry, log line or error", async () => {
  const broker = await setup({ bearer: `not ${CANARY}` });
  const { url, api, put, patch, server, log, delegate, another } = broker;
  const encoded = Buffer.from(`user:${CANARY}`).toString("base64");
  const said = [
    await put(BEARER),
    await put({ scheme: "basic", username: "user", password: CANARY }),
    await patch({ delivery: { credentials: { scheme: "headers", headers: { "X-Key": CANARY } } } }),
    await patch({ delivery: { credentials: { scheme: "basic", username: "user", password: CANARY } } }),
    await patch({ delivery: { credentials: BEARER, url: "http://10.1.2.3" } }),
    await patch({ no_such: 1, delivery: { credentials: BEARER } }),
  ];
  const id = await delegate("enter");
  await until(async () => {
    const { body } = await api.events(id);
    return body.events.some((event: { status?: string }) => event.status === "released");
  }, SLOW);
  const own = await as((await another()).url, "agent:remote");
  for (const path of [
    "/v1/agents",
    "/v1/agents/remote",
    "/v1/agents/remote/workers",
    "/v1/audit",
    "/v1/status",
    `/v1/delegations/${id}`,
    "/a2a/remote/.well-known/agent-card.json",
    "/openapi.json",
  ]) {
    said.push(await api.call("GET", path), await own.call("GET", path));
  }
  said.push(await api.events(id), await rawCalls(url, OPERATOR, "remote").rpc("GetExtendedAgentCard", {}));
  const admin = new Admin({ url, token: OPERATOR });
  const credentials = { scheme: "bearer", token: CANARY } as const;
  const changed = await admin.putAgent("remote", {
    delivery: { mode: "push", url: server.url, credentials },
  });
  expect(changed).toMatchObject({ changed: ["delivery.credentials"], delivery: { credentials_set: true } });
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${OPERATOR}` } });
  const shown = JSON.stringify([said, changed, log, await metrics.text()]);
  expect(shown).not.toContain(CANARY);
  expect(shown).not.toContain(encoded);
  const { body } = await api.call("GET", "/v1/audit?action=agent.update");
  expect(body.entries[0].details).toMatchObject({ changed: ["delivery.credentials"], reset: [] });
});

test("they are not sent to another origin, neither of a card nor of a redirect", async () => {
  const { api, server, delegate, ended } = await setup();
  const card = await (await fetch(`${server.url}/.well-known/agent-card.json`)).text();
  const cards = await listen(() => ({
    status: 200,
    headers: { "content-type": "application/json" },
    body: card,
  }));
  const delivery = (url: string) => ({ delivery: { mode: "push", url, credentials: BEARER } });
  await api.agent("remote", delivery(cards.url));
  expect((await ended(await delegate("enter"))).state).toBe("completed");
  expect(cards.sent).toMatchObject([{ authorization: `Bearer ${CANARY}` }]);
  expect(server.headers.map(({ authorization }) => authorization)).toEqual([undefined]);

  const target = await listen(() => ({ status: 200, body: "{}" }));
  const moved = await listen((path) => ({ status: 307, headers: { location: `${target.url}${path}` } }));
  await api.agent("remote", delivery(moved.url));
  const id = await delegate("enter");
  await until(() => moved.sent.length > 0, SLOW);
  await until(async () => (await api.get(id)).body.state !== "working", SLOW);
  expect(moved.sent[0]).toMatchObject({ authorization: `Bearer ${CANARY}` });
  expect(target.sent).toEqual([]);
});

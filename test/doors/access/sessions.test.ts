/** Sessions: opened with a token or a code, listed, revoked; they end with their token, at every gateway. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../src/schema/limits.ts";
import { newSessionSchema, sessionCodeSchema, sessionPageSchema } from "../../../src/schema/session.ts";
import { as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";
import { openStream } from "../../support/sse.ts";
import { until } from "../../support/until.ts";

const HOUR_MS = 3_600_000;

/** A broker with the agent scout, its operator, and the calls of a test. */
async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  const open = async (token: string | null, body: unknown = {}, url = broker.url) => {
    const answer = await request(url, "POST", "/v1/sessions", { token, body });
    return { ...answer, session: newSessionSchema.safeParse(answer.body).data };
  };
  const opened = async (token: string | null, body: unknown = {}, url = broker.url) => {
    const { status, session } = await open(token, body, url);
    if (!session) throw new Error(`no session: ${status}`);
    return { ...session, ...client(url, session.token) };
  };
  const codeOf = async (token: string, url = broker.url) =>
    sessionCodeSchema.parse((await request(url, "POST", "/v1/sessions/codes", { token })).body);
  const listOf = async (token: string, query = "") =>
    sessionPageSchema.parse((await request(broker.url, "GET", `/v1/sessions${query}`, { token })).body);
  const revoke = (token: string, id: string, url = broker.url) =>
    request(url, "DELETE", `/v1/sessions/${id}`, { token });
  return { ...broker, admin, open, opened, codeOf, listOf, revoke };
}

const UNAUTHENTICATED = { status: 401, body: { code: "unauthenticated" } };

describe("a session", () => {
  test("has the rights of its token, but opens no session, for 12 hours; its secret is shown once and stored as a hash", async () => {
    const { url, opened, open, listOf, redis, log, clock, admin } = await setup();
    const alice = await as(url, "caller:alice");
    const session = await opened(alice.token);
    expect(session).toMatchObject({ principal: "caller:alice", role: "caller", token_id: alice.tokenId });
    expect(session.token).toMatch(/^errand_session_[0-9a-z]{62}$/);
    expect(Date.parse(session.expires_at) - Date.parse(session.created_at)).toBe(12 * HOUR_MS);
    const delegated = await session.delegate("scout");
    expect(delegated).toMatchObject({ status: 202, body: { delegator: "caller:alice" } });
    expect((await session.call("GET", "/v1/tokens")).status).toBe(403);
    const mixed = `${session.token.slice(0, 25)}${(await opened(alice.token)).token.slice(25)}`;
    expect(await client(url, mixed).call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    // Another session would last beyond it.
    expect(await open(session.token)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await session.call("POST", "/v1/sessions/codes")).toMatchObject({ status: 403 });
    expect((await (await opened(OPERATOR)).call("GET", "/v1/tokens")).status).toBe(200);

    const names = await keysIn(redis, "*session*");
    const stored = await Promise.all(
      names.map(async (name) => ((await redis.type(name)) === "string" ? redis.get(name) : "")),
    );
    const secret = session.token.slice("errand_session_".length + 10);
    const seen = [await listOf(alice.token), stored, names, log, (await admin.call("GET", "/v1/audit")).body];
    expect(JSON.stringify(seen)).not.toContain(secret);

    clock.offset_ms = 12 * HOUR_MS + 1;
    expect(await session.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    expect((await alice.call("GET", "/v1/status")).status).toBe(200);
    expect((await listOf(alice.token)).sessions).toEqual([]);
  });

  test("ends with its token: revoked, its streams and polls end at every gateway", async () => {
    const { url, another, admin, opened, redis } = await setup();
    const second = await another();
    const scout = await as(url, "agent:scout");
    const session = await opened(scout.token);
    const poll = request(second.url, "POST", "/v1/agents/scout/leases", {
      token: session.token,
      body: { wait_seconds: 30 },
    });
    const stream = await openStream(`${second.url}/v1/events`, { token: session.token });
    await until(() => second.gateway.broker.handoff.polls.count("scout") === 1);
    expect((await admin.call("DELETE", `/v1/tokens/${scout.tokenId}`)).status).toBe(204);
    expect(await poll).toMatchObject(UNAUTHENTICATED);
    await stream.ended();
    for (const at of [url, second.url])
      expect(await client(at, session.token).call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    expect(await keysIn(redis, "*session*")).toEqual([]);

    // Even if its own record remained, at a gateway that has looked up neither.
    const alice = await as(url, "caller:alice");
    const remaining = await opened(alice.token);
    await redis.hdel("{errand}:tokens", alice.tokenId);
    const there = client(second.url, remaining.token);
    expect(await there.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
  });

  test("ends with its token: expired; the operator's, at gateways with another one", async () => {
    const { another, admin, clock, opened, codeOf, open } = await setup();
    const short = { principal: "caller:alice", expires_in_seconds: 300 };
    const made = (await admin.call("POST", "/v1/tokens", short)).body;
    const [ofShort, shortCode] = [await opened(made.token), await codeOf(made.token)];
    expect([ofShort.expires_at, shortCode.expires_at]).toEqual([made.expires_at, made.expires_at]);
    clock.offset_ms = 300_001;
    expect(await ofShort.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    expect(await open(null, { code: shortCode.code })).toMatchObject(UNAUTHENTICATED);
    clock.offset_ms = 0;

    const session = await opened(OPERATOR);
    const { code } = await codeOf(OPERATOR);
    const changed = await another({ operatorToken: "another-operator-token" });
    const there = client(changed.url, session.token);
    expect(await there.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    expect(await open(null, { code }, changed.url)).toMatchObject(UNAUTHENTICATED);
    const listed = await request(changed.url, "GET", "/v1/sessions", { token: "another-operator-token" });
    expect(listed.body.sessions).toMatchObject([{ id: ofShort.id }]);
    expect((await session.call("GET", "/v1/status")).status).toBe(200);
  });

  test("of an earlier operator token does not count against the limit", async () => {
    const { another, opened, open } = await setup();
    for (let at = 0; at < LIMITS.login_sessions.value; at += 1) await opened(OPERATOR);
    expect((await open(OPERATOR)).status).toBe(409);
    const token = "another-operator-token";
    const changed = await another({ operatorToken: token });
    expect((await open(token, {}, changed.url)).status).toBe(201);
    const listed = await request(changed.url, "GET", "/v1/sessions", { token });
    expect(listed.body.sessions).toHaveLength(1);
  });

  test("opened while its token is revoked does not survive, whichever comes first", async () => {
    const { url, admin, open, codeOf, redis } = await setup();
    for (let round = 0; round < 8; round += 1) {
      const alice = await as(url, "caller:alice");
      const { code } = await codeOf(alice.token);
      const [byToken, byCode] = await Promise.all([
        open(alice.token),
        open(null, { code }),
        admin.call("DELETE", `/v1/tokens/${alice.tokenId}`),
      ]);
      for (const { status, session } of [byToken, byCode]) {
        expect([201, 401]).toContain(status);
        if (session)
          expect(await client(url, session.token).call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
      }
      expect(await keysIn(redis, "{errand}:session:*")).toEqual([]);
    }
  });
});

describe("revoking", () => {
  test("ends the session's streams and polls at every gateway, and not those of its token", async () => {
    const { url, another, opened, revoke } = await setup();
    const second = await another();
    const scout = await as(url, "agent:scout");
    const session = await opened(scout.token);
    const poll = request(second.url, "POST", "/v1/agents/scout/leases", {
      token: session.token,
      body: { wait_seconds: 30 },
    });
    const [stream, ofToken] = await Promise.all(
      [session.token, scout.token].map((token) => openStream(`${second.url}/v1/events`, { token })),
    );
    await until(() => second.gateway.broker.handoff.polls.count("scout") === 1);
    // Signs out.
    expect((await revoke(session.token, session.id)).status).toBe(204);
    expect(await poll).toMatchObject(UNAUTHENTICATED);
    await stream?.ended();
    expect(await session.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    await client(url).delegate("scout");
    await ofToken?.has("DELEGATION_SENT");
    ofToken?.close();
    expect(await revoke(scout.token, session.id)).toMatchObject({ status: 404 });
  });

  test("is for the own principal and the operator; to others the session does not exist", async () => {
    const { url, opened, revoke, listOf } = await setup();
    const [one, two, bob] = [
      await as(url, "caller:alice"),
      await as(url, "caller:alice"),
      await as(url, "caller:bob"),
    ];
    const [first, second] = [await opened(one.token), await opened(one.token)];
    const foreign = await revoke(bob.token, first.id);
    const unknown = await revoke(bob.token, "ses_0000000000");
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    // An id of another kind must end nothing, here or elsewhere.
    const stream = await openStream(`${url}/v1/events`, { token: one.token });
    expect((await revoke(bob.token, one.tokenId)).status).toBe(404);
    expect((await listOf(bob.token)).sessions).toEqual([]);
    expect((await listOf(first.token)).sessions.map(({ id, current }) => [id, current])).toEqual(
      [first, second]
        .sort((a, b) => b.expires_at.localeCompare(a.expires_at) || b.id.localeCompare(a.id))
        .map(({ id }) => [id, id === first.id]),
    );
    expect((await revoke(two.token, first.id)).status).toBe(204);
    expect((await revoke(OPERATOR, second.id)).status).toBe(204);
    for (const session of [first, second])
      expect(await session.call("GET", "/v1/status")).toMatchObject(UNAUTHENTICATED);
    await one.delegate("scout");
    await stream.has("DELEGATION_SENT");
    stream.close();
  });
});

describe("a code", () => {
  test("opens one session without a token, at any gateway; used at once several times, one", async () => {
    const { url, another, codeOf, open, redis, log } = await setup();
    const second = await another();
    const alice = await as(url, "caller:alice");
    const { code, url: link, expires_at } = await codeOf(alice.token);
    expect(code).toMatch(/^errand_code_[0-9a-z]{52}$/);
    expect(link).toBe(`${url}/#code=${code}`);
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 600_000)).toBeLessThan(60_000);
    const answers = await Promise.all(
      [url, second.url, url, second.url].map((at) => open(null, { code }, at)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401, 401, 401]);
    const session = answers.find(({ status }) => status === 201)?.session;
    expect(session).toMatchObject({ principal: "caller:alice", token_id: alice.tokenId });
    expect(await keysIn(redis, "{errand}:session:*")).toHaveLength(1);
    expect(await keysIn(redis, "{errand}:session-code*")).toEqual([]);
    expect(log.join("")).not.toContain(code.slice("errand_code_".length));
  });

  test("is stored as a hash, expires after ten minutes and ends with its token", async () => {
    const { url, admin, codeOf, open, redis, clock } = await setup();
    const alice = await as(url, "caller:alice");
    const [first, second] = [await codeOf(alice.token), await codeOf(alice.token)];
    const names = await keysIn(redis, "{errand}:session-code:*");
    expect(names).toHaveLength(2);
    const stored = JSON.stringify([names, await redis.mget(names)]);
    expect(stored).not.toContain(first.code.slice("errand_code_".length));
    for (const name of names) expect(await redis.pttl(name)).toBeGreaterThan(0);
    clock.offset_ms = 600_001;
    expect(await open(null, { code: first.code })).toMatchObject(UNAUTHENTICATED);
    clock.offset_ms = 0;
    // One more than LIMITS.login_codes: the oldest, or one as old, is replaced. Others keep theirs.
    const bobs = await codeOf((await as(url, "caller:bob")).token);
    const more = Array.from({ length: LIMITS.login_codes.value - 1 }, () => codeOf(alice.token));
    const use = async ({ code }: { code: string }) => (await open(null, { code })).status;
    const used = await Promise.all([first, second, ...(await Promise.all(more))].map(use));
    expect(used.sort()).toEqual([...Array(LIMITS.login_codes.value).fill(201), 401]);
    expect(await use(bobs)).toBe(201);
    const last = await codeOf(alice.token);
    await admin.call("DELETE", `/v1/tokens/${alice.tokenId}`);
    expect(await open(null, { code: last.code })).toMatchObject(UNAUTHENTICATED);
  });

  test("that is wrong, or comes with a token, is refused and stays usable; without either it is 401", async () => {
    const { url, codeOf, open } = await setup();
    const { code } = await codeOf(OPERATOR);
    for (const wrong of ["x", code.replace(/.$/, "!"), `${code.slice(0, -4)}0000`])
      expect(await open(null, { code: wrong })).toMatchObject(UNAUTHENTICATED);
    expect(await open(OPERATOR, { code })).toMatchObject({
      status: 400,
      body: { details: { issues: [{ path: "code" }] } },
    });
    expect(await open(null)).toMatchObject(UNAUTHENTICATED);
    expect(await open("wrong", { code })).toMatchObject(UNAUTHENTICATED);
    expect(await open(null, { code, more: 1 })).toMatchObject({ status: 400 });
    expect(await open(null, { code: "x".repeat(5_000) })).toMatchObject({ status: 413 });
    // Hono serves a request with an escaped path.
    const opened = await request(url, "POST", "/v1/%73essions", { token: null, body: { code } });
    expect(opened).toMatchObject({ status: 201, body: { principal: "operator", role: "operator" } });
    // Anonymous requests are let in nowhere else.
    expect(await request(url, "POST", "/v1/sessions/codes", { token: null })).toMatchObject(UNAUTHENTICATED);
  });
});

describe("limits", () => {
  test("sessions are bounded in number, for each principal and in total", async () => {
    const { url, opened, open, revoke, codeOf, redis } = await setup();
    const [alice, bob] = [await as(url, "caller:alice"), await as(url, "caller:bob")];
    const mine = await opened(alice.token);
    const later = Date.now() + HOUR_MS;
    const fill = async (key: string, total: number) => {
      const missing = total - (await redis.zcard(key));
      await redis.zadd(key, ...Array.from({ length: missing }, (_, n) => [later, `ses_x${n}`]).flat());
    };
    await fill("{errand}:sessions:caller:alice", LIMITS.login_sessions.value);
    const { code } = await codeOf(alice.token);
    const full = { status: 409, body: { code: "limit_reached", details: { limit: "login_sessions" } } };
    expect(await open(alice.token)).toMatchObject(full);
    expect(await open(null, { code })).toMatchObject(full);
    expect((await open(bob.token)).status).toBe(201);
    await revoke(alice.token, mine.id);
    // The refused code is still there.
    expect((await open(null, { code })).status).toBe(201);
    await fill("{errand}:sessions", LIMITS.login_sessions_total.value);
    expect(await open(bob.token)).toMatchObject({
      status: 409,
      body: { code: "limit_reached", details: { limit: "login_sessions_total" } },
    });
    expect((await open(OPERATOR)).status).toBe(201);
    await redis.zadd("{errand}:sessions", 1, "ses_x0", 1, "ses_x1");
    expect((await open(bob.token)).status).toBe(201);
  });

  test("a list is paged: each session once, also those that expire at the same instant", async () => {
    const { url, admin, opened, listOf } = await setup();
    const made = await admin.call("POST", "/v1/tokens", {
      principal: "caller:alice",
      expires_in_seconds: 600,
    });
    const bob = await as(url, "caller:bob");
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.push((await opened(n < 5 ? made.body.token : bob.token)).id);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = `?limit=3${cursor === null ? "" : `&cursor=${cursor}`}`;
      const page = await listOf(OPERATOR, query);
      expect(page.sessions.length).toBeLessThanOrEqual(3);
      seen.push(...page.sessions.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toHaveLength(7);
    expect([...seen].sort()).toEqual([...ids].sort());
    for (const wrong of ["?cursor=x", "?limit=101", "?other=1"])
      expect((await admin.call("GET", `/v1/sessions${wrong}`)).status).toBe(400);
  });
});

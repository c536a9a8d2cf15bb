/** Tokens: created, listed, revoked and expired. */
import { describe, expect, test } from "vitest";
import { as, client, request, startBroker } from "../../support/broker.ts";
import { openStream } from "../../support/sse.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

/** A broker with the agent scout, and the operator. */
async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  return { ...broker, admin };
}

describe("tokens", () => {
  test("are shown once, stored as a hash, and listed without their secret", async () => {
    const { admin, redis, log } = await setup();
    const made = await admin.call("POST", "/v1/tokens", {
      principal: "caller:carol",
      expires_in_seconds: 60,
    });
    expect(made).toMatchObject({ status: 201, body: { principal: "caller:carol" } });
    const { token, id } = made.body;
    expect(token).toMatch(/^errand_[0-9a-z]{62}$/);
    const listed = (await admin.call("GET", "/v1/tokens")).body.tokens;
    expect(listed.find((one: { id: string }) => one.id === id)).toMatchObject({ principal: "caller:carol" });
    const stored = JSON.stringify(await redis.hgetall("{errand}:tokens"));
    const secret = token.slice("errand_".length + 10);
    expect(JSON.stringify(listed) + stored + log.join("")).not.toContain(secret);
  });

  test("may have a highest priority: a request above it is refused, also by a session, in a batch and for a child", async () => {
    const { url, admin } = await setup();
    const create = async (principal: string, max_priority: unknown) =>
      admin.call("POST", "/v1/tokens", { principal, max_priority });
    for (const wrong of [-1, 10, 1.5, "3"]) {
      const { status, body } = await create("caller:carol", wrong);
      expect([status, body.code]).toEqual([400, "invalid_request"]);
    }
    const made = (await create("caller:carol", 3)).body;
    expect(made.max_priority).toBe(3);
    const listed = (await admin.call("GET", "/v1/tokens")).body.tokens;
    expect(listed.map((one: { max_priority?: number }) => one.max_priority)).toEqual([3]);
    const opened = await request(url, "POST", "/v1/sessions", { token: made.token, body: {} });
    for (const token of [made.token, opened.body.token]) {
      const carol = client(url, token);
      for (const priority of [4, 9]) {
        const { status, body } = await carol.delegate("scout", { priority });
        expect(status).toBe(403);
        expect(body).toMatchObject({ code: "priority_too_high", details: { priority, max_priority: 3 } });
      }
      expect((await carol.delegate("scout", { priority: 3 })).body.priority).toBe(3);
      // The default would be more.
      expect((await carol.delegate("scout")).body.priority).toBe(3);
      const delegations = [{ target: "scout", task: "x", priority: 4 }];
      const { results } = (await carol.call("POST", "/v1/delegations/batch", { delegations })).body;
      expect(results[0].error.code).toBe("priority_too_high");
    }
    const high = (await create("caller:carol", 8)).body;
    expect((await client(url, high.token).delegate("scout")).body.priority).toBe(5);
    const scout = client(url, (await create("agent:scout", 5)).body.token);
    const [lease] = (await scout.lease("scout")).body.leases;
    const child = await scout.delegate("scout", { priority: 6, parent_id: lease.delegation.id });
    expect(child.body.code).toBe("priority_too_high");
  });

  test("revoked, they end their streams and polls on every gateway within a second", async () => {
    const withStalls = allowStalls();
    const { url, another, admin } = await setup();
    const second = await another();
    const scout = await as(url, "agent:scout");
    const poll = request(second.url, "POST", "/v1/agents/scout/leases", {
      token: scout.token,
      body: { wait_seconds: 30 },
    });
    const stream = await openStream(`${second.url}/v1/events`, { token: scout.token });
    await until(() => second.gateway.broker.handoff.polls.count("scout") === 1);
    const revokedAt = Date.now();
    expect((await admin.call("DELETE", `/v1/tokens/${scout.tokenId}`)).status).toBe(204);
    expect(await poll).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
    await stream.ended();
    expect(Date.now() - revokedAt).toBeLessThan(withStalls(1_000));
    expect((await scout.call("GET", "/v1/agents")).status).toBe(401);
    expect((await client(second.url, scout.token).call("GET", "/v1/agents")).status).toBe(401);
  });

  test("revoked while a request's body arrives, they are refused", async () => {
    const { url, admin } = await setup();
    const scout = await as(url, "agent:scout");
    let send = (_text: string) => {};
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        send = (text) => controller.enqueue(new TextEncoder().encode(text));
        send("{");
        const finish = send;
        send = (text) => {
          finish(text);
          controller.close();
        };
      },
    });
    const init = {
      method: "POST",
      headers: { authorization: `Bearer ${scout.token}`, "content-type": "application/json" },
      body,
      duplex: "half",
    };
    const answer = fetch(`${url}/v1/agents/scout/leases`, init);
    await admin.call("DELETE", `/v1/tokens/${scout.tokenId}`);
    send('"wait_seconds":0}');
    expect((await answer).status).toBe(401);
  });

  test("expired, they end their streams and polls", async () => {
    const { url, admin } = await setup();
    const made = await admin.call("POST", "/v1/tokens", { principal: "agent:scout", expires_in_seconds: 1 });
    const poll = await request(url, "POST", "/v1/agents/scout/leases", {
      token: made.body.token,
      body: { wait_seconds: 30 },
    });
    expect(poll.status).toBe(401);
  });

  test("expired, are deleted when the next is created; the others stay", async () => {
    const { admin, redis } = await setup();
    const make = async (expires_in_seconds?: number) =>
      (await admin.call("POST", "/v1/tokens", { principal: "caller:alice", expires_in_seconds })).body;
    const [gone, later, revoked, kept] = [await make(0.05), await make(600), await make(600), await make()];
    await admin.call("DELETE", `/v1/tokens/${revoked.id}`);
    await until(() => Date.parse(gone.expires_at) < Date.now());
    const last = await make();
    const ids = await redis.hkeys("{errand}:tokens");
    expect(ids).not.toContain(gone.id);
    expect(ids).toEqual(expect.arrayContaining([later.id, kept.id, last.id]));
    expect(await redis.zrange("{errand}:tokens:expiring", "0", "-1")).toEqual([later.id]);
  });

  test("several are valid for one principal; a wrong, foreign or absent one is 401", async () => {
    const { url } = await setup();
    const one = await as(url, "caller:alice");
    const two = await as(url, "caller:alice");
    expect((await one.call("GET", "/v1/agents")).status).toBe(200);
    expect((await two.call("GET", "/v1/agents")).status).toBe(200);
    const mixed = `${one.token.slice(0, 17)}${two.token.slice(17)}`;
    for (const token of [mixed, "errand_x", "nonsense", null]) {
      const answer = await request(url, "GET", "/v1/agents", { token });
      expect(answer).toMatchObject({ status: 401, body: { code: "unauthenticated", category: "AUTH" } });
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
  });

  test("an operator token cannot be created", async () => {
    const { admin } = await setup();
    expect((await admin.call("POST", "/v1/tokens", { principal: "operator" })).status).toBe(400);
  });
});

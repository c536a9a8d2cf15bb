import { describe, expect, test } from "vitest";
import { as, client, request, startBroker } from "../../support/broker.ts";
import { openStream } from "../../support/sse.ts";
import { allowStalls } from "../../support/stalls.ts";
import { until } from "../../support/until.ts";

const PRINCIPALS = [
  "operator",
  "caller:alice",
  "caller:bob",
  "agent:scout",
  "agent:other",
  "approver:ann",
  "viewer:eve",
] as const;

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  await admin.agent("other");
  const who = new Map<string, ReturnType<typeof client>>([["operator", admin]]);
  for (const principal of PRINCIPALS.slice(1)) who.set(principal, await as(broker.url, principal));
  const of = (principal: string) => who.get(principal) ?? admin;
  const delegated = async () => String((await of("caller:alice").delegate("scout")).body.id);
  const leased = async () => {
    const id = await delegated();
    const { leases } = (await of("agent:scout").lease("scout")).body;
    return { id, lease: String(leases[0].lease_id) };
  };
  return { ...broker, admin, of, delegated, leased };
}

/** Alice delegates to scout; returns what each principal gets for each request. */
const MATRIX: Record<string, { expect: Record<(typeof PRINCIPALS)[number], number | string> }> = {
  delegate: {
    expect: {
      operator: 202,
      "caller:alice": 202,
      "caller:bob": 202,
      "agent:scout": "delegation_loop",
      "agent:other": 202,
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  read: {
    expect: {
      operator: 200,
      "caller:alice": 200,
      "caller:bob": "delegation_not_found",
      "agent:scout": 200,
      "agent:other": "delegation_not_found",
      "approver:ann": 200,
      "viewer:eve": 200,
    },
  },
  cancel: {
    expect: {
      operator: 200,
      "caller:alice": 200,
      "caller:bob": "delegation_not_found",
      "agent:scout": "forbidden",
      "agent:other": "delegation_not_found",
      "approver:ann": 200,
      "viewer:eve": "forbidden",
    },
  },
  lease: {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "forbidden",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  heartbeat: {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "lease_unknown",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  "update agent": {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "forbidden",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
};
const OPERATOR_ONLY = ["delete agent", "pause agent", "create token", "list tokens"] as const;

describe("who may do what", () => {
  test.each(PRINCIPALS)("%s", async (principal) => {
    const { of, delegated, leased } = await setup();
    const api = of(principal);
    const { lease } = await leased();
    const id = await delegated();
    const acts: Record<string, () => Promise<{ status: number; body: { code?: string } }>> = {
      delegate: () => api.delegate("scout"),
      read: () => api.get(id),
      heartbeat: () => api.heartbeat(lease),
      lease: () => api.lease("scout", { wait_seconds: 0 }),
      cancel: () => api.cancel(id),
      "update agent": () => api.agent("scout"),
      "delete agent": () => api.call("DELETE", "/v1/agents/other"),
      "pause agent": () => api.call("POST", "/v1/agents/scout/pause"),
      "create token": () => api.call("POST", "/v1/tokens", { principal: "caller:x" }),
      "list tokens": () => api.call("GET", "/v1/tokens"),
    };
    const rows = [
      ...Object.entries(MATRIX).map(([act, row]) => [act, row.expect[principal]] as const),
      ...OPERATOR_ONLY.map((act) => [act, principal === "operator" ? "ok" : "forbidden"] as const),
    ];
    for (const [act, expected] of rows) {
      const answer = await acts[act]?.();
      const got = answer && (answer.status < 300 ? answer.status : answer.body.code);
      expect([act, expected === "ok" && typeof got === "number" ? "ok" : got]).toEqual([act, expected]);
    }
  });

  test("a delegation of others is answered like one that does not exist", async () => {
    const { of, delegated } = await setup();
    const id = await delegated();
    const unknown = `${id.slice(0, -4)}zzzz`;
    const foreign = await of("caller:bob").get(id);
    const absent = await of("caller:bob").get(unknown);
    const shape = ({ status, body }: typeof foreign) => ({ status, ...body, request_id: "", detail: "" });
    expect(shape(foreign)).toEqual(shape(absent));
    expect(foreign.body.detail.replace(id, unknown)).toBe(absent.body.detail);
  });

  test("accepts_from decides who may delegate", async () => {
    const { admin, of } = await setup();
    await admin.agent("scout", { accepts_from: ["caller:alice", "agent:*"] });
    expect((await of("caller:alice").delegate("scout")).status).toBe(202);
    expect((await of("agent:other").delegate("scout")).status).toBe(202);
    expect(await of("caller:bob").delegate("scout")).toMatchObject({
      status: 403,
      body: { code: "not_accepted" },
    });
    expect(await admin.delegate("scout")).toMatchObject({ status: 403, body: { code: "not_accepted" } });
  });

  test("settings of an agent are visible to the agent and the operator only", async () => {
    const { of } = await setup();
    const shown = async (principal: string) => (await of(principal).call("GET", "/v1/agents/scout")).body;
    expect(await shown("agent:scout")).toHaveProperty("accepts_from");
    expect(await shown("operator")).toHaveProperty("limits");
    for (const principal of ["caller:alice", "agent:other", "viewer:eve"]) {
      expect(await shown(principal)).not.toHaveProperty("limits");
      expect(await shown(principal)).not.toHaveProperty("accepts_from");
    }
  });
});

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
    await until(() => second.gateway.broker.handoff.polls.waiting("scout") === 1);
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

describe("deleting an agent", () => {
  test("is remembered as long as records of its time may exist, and no longer", async () => {
    const { admin, redis, clock } = await setup();
    const remembered = () => redis.zrange("{errand}:deleted", "0", "-1");
    await admin.call("DELETE", "/v1/agents/scout");
    clock.offset_ms = 3_600_000;
    await admin.call("DELETE", "/v1/agents/other");
    expect(await remembered()).toEqual(["scout", "other"]);
    clock.offset_ms = 400 * 86_400_000 + 1_000;
    await admin.agent("third");
    await admin.call("DELETE", "/v1/agents/third");
    expect(await remembered()).toEqual(["other", "third"]);
  });

  test("is refused while it has live delegations, unless forced; then they are canceled", async () => {
    const { admin, leased, of } = await setup();
    const { id, lease } = await leased();
    expect(await admin.call("DELETE", "/v1/agents/scout")).toMatchObject({
      status: 409,
      body: { code: "agent_busy", details: { counts: { working: 1 } } },
    });
    expect((await admin.call("DELETE", "/v1/agents/scout?force=true")).status).toBe(204);
    expect((await admin.get(id)).body).toMatchObject({ state: "canceled" });
    expect((await of("agent:scout").heartbeat(lease)).status).toBe(401);
    expect(await admin.delegate("scout")).toMatchObject({ status: 404, body: { code: "agent_unknown" } });
  });

  test("while its workers reply completes, and can be retried after an interruption", async () => {
    const { url, admin, redis, gateway } = await setup();
    for (let n = 0; n < 60; n += 1) await admin.delegate("scout");
    const { leases } = (await admin.lease("scout", { max: 32 })).body;
    const [answer] = await Promise.all([
      admin.call("DELETE", "/v1/agents/scout?force=true"),
      ...leases.map((lease: { lease_id: string }) => admin.reply(lease.lease_id)),
    ]);
    expect(answer.status).toBe(204);
    expect((await admin.call("DELETE", "/v1/agents/scout")).body.code).toBe("agent_unknown");
    expect((await redis.keys("{errand:0}:live:scout:*")).length).toBe(0);

    // Interrupted right after it began: no work is accepted or leased, and a retry completes it.
    const other = await as(url, "agent:other");
    const { id } = (await admin.delegate("other")).body;
    await gateway.broker.agents.beginDeletion("other", true);
    expect((await admin.delegate("other")).body.code).toBe("agent_unknown");
    expect((await other.lease("other", { wait_seconds: 0 })).body.leases).toEqual([]);
    expect((await admin.agent("other")).body.code).toBe("agent_busy");
    expect((await admin.call("DELETE", "/v1/agents/other")).status).toBe(204);
    expect((await admin.get(id)).body.state).toBe("canceled");
    expect((await other.call("GET", "/v1/agents")).status).toBe(401);
  });

  test("neither a new agent nor a token without an agent sees what the old agent delegated", async () => {
    const { url, admin } = await setup();
    const old = await as(url, "agent:scout");
    const mine = (await old.delegate("other")).body.id;
    await admin.call("DELETE", "/v1/agents/scout?force=true");
    const orphan = await as(url, "agent:scout");
    expect((await orphan.get(mine)).status).toBe(404);
    await admin.agent("scout");
    const { leases } = (await admin.lease("other")).body;
    await admin.reply(leases[0].lease_id, { text: "secret" });
    const reborn = await as(url, "agent:scout");
    const page = await reborn.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
    expect(page.body.events).toEqual([]);
    expect((await reborn.call("GET", "/v1/results")).body.results).toEqual([]);
  });

  test("a new agent of the same name sees nothing of the old one's", async () => {
    const { url, admin, delegated } = await setup();
    const id = await delegated();
    await admin.call("DELETE", "/v1/agents/scout?force=true");
    await admin.agent("scout");
    const reborn = await as(url, "agent:scout");
    expect((await reborn.get(id)).status).toBe(404);
    const page = await reborn.call("GET", "/v1/events?after=0", undefined, { accept: "application/json" });
    expect(page.body.events).toEqual([]);
    expect((await reborn.lease("scout", { wait_seconds: 0 })).body.leases).toEqual([]);
  });
});

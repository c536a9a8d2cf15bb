/** Create, merge and replace agents: which settings stay or reset, and which request loses a race. */
import { expect, test, vi } from "vitest";
import { Admin } from "../../../src/client/admin.ts";
import { auditPageSchema } from "../../../src/schema/audit.ts";
import { as, client, OPERATOR, request, startBroker } from "../../support/broker.ts";
import { keysIn } from "../../support/dump.ts";
import { onOneRedis } from "../../support/on-cluster.ts";
import { until } from "../../support/until.ts";

async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const admin = client(broker.url);
  const patch = (name: string, body: unknown, headers?: Record<string, string>) =>
    admin.call("PATCH", `/v1/agents/${name}`, body, headers);
  const put = (name: string, body: unknown, headers?: Record<string, string>) =>
    admin.call("PUT", `/v1/agents/${name}`, body, headers);
  return { ...broker, admin, patch, put };
}

test("a patch changes what it names; null resets, arrays are replaced whole", async () => {
  const { admin, patch } = await setup();
  const skill = { id: "s", name: "s", description: "", tags: [] };
  await admin.agent("scout", {
    description: "counts",
    skills: [skill, { ...skill, id: "t" }],
    accepts_from: ["caller:ci"],
    limits: { max_working: 1, lease_seconds: 30 },
  });
  const merged = await patch("scout", {
    skills: [{ ...skill, id: "u" }],
    limits: { max_working: null, interrupt_ttl_seconds: 259_200 },
    backoff: { factor: 3 },
  });
  expect(merged.status).toBe(200);
  expect(merged.body).toMatchObject({
    description: "counts",
    skills: [{ id: "u" }],
    accepts_from: ["caller:ci"],
    limits: { max_working: null, lease_seconds: 30, interrupt_ttl_seconds: 259_200 },
    backoff: { factor: 3, initial_ms: 1000 },
    created: false,
    changed: ["skills", "limits.interrupt_ttl_seconds", "backoff.factor"],
    reset: ["limits.max_working"],
  });
  const all = await patch(
    "scout",
    { accepts_from: null, limits: null },
    { "content-type": "application/merge-patch+json" },
  );
  expect(all.body).toMatchObject({
    accepts_from: ["*"],
    limits: { lease_seconds: 60 },
    reset: ["accepts_from", "limits.lease_seconds", "limits.interrupt_ttl_seconds"],
  });
  for (const [body, path] of [
    [{ no_such: 1 }, "no_such"],
    [{ limits: { no_such: null } }, "limits.no_such"],
    [{ limits: { max_attempts: 0 } }, "limits.max_attempts"],
    [{ accepts_from: ["nobody"] }, "accepts_from.0"],
  ] as const) {
    const refused = await patch("scout", body);
    expect([refused.status, refused.body.details.issues[0].path]).toEqual([400, path]);
  }
  expect((await patch("nobody", {})).body).toMatchObject({ status: 404, code: "agent_unknown" });
});

test("a replacement lists the settings that it reset", async () => {
  const { put } = await setup();
  expect((await put("scout", { accepts_from: ["caller:ci"], version: "2" })).body).toMatchObject({
    created: true,
    changed: [],
    reset: [],
  });
  expect((await put("scout", { version: "3" })).body).toMatchObject({
    created: false,
    changed: ["version"],
    reset: ["accepts_from"],
  });
});

test("concurrent patches do not lose each other's fields", async () => {
  const { url, admin, patch, another } = await setup();
  const second = await another();
  await admin.agent("scout");
  const patches = Array.from({ length: 6 }, (_, n) => [
    { description: `d${n}` },
    { limits: { max_working: n + 1 } },
    { limits: { lease_seconds: n + 1 } },
    { backoff: { factor: n + 2 } },
  ]).flat();
  const answers = await Promise.all(
    patches.map((body, n) => request(n % 2 === 0 ? url : second.url, "PATCH", "/v1/agents/scout", { body })),
  );
  expect(answers.map(({ status }) => status)).toEqual(patches.map(() => 200));
  // An empty patch returns the current settings; a GET may be a second behind another gateway.
  const { body } = await patch("scout", {});
  // Each field has one of the written values, not its default.
  expect(body.description).toMatch(/^d\d$/);
  expect(body.limits.max_working).not.toBeNull();
  expect(body.limits.lease_seconds).toBeLessThan(7);
  expect(body.backoff.factor).toBeLessThan(8);
});

test("ETags: created only when absent, changed only when unchanged", async () => {
  const { admin, patch, put } = await setup();
  const first = await put("scout", {}, { "if-none-match": "*" });
  expect(first.status).toBe(201);
  const etag = first.headers.get("etag") ?? "";
  expect(etag).toMatch(/^"[\d-]+\.[\w-]+"$/);
  expect((await put("scout", {}, { "if-none-match": "*" })).body).toMatchObject({
    status: 412,
    code: "precondition_failed",
  });
  const changed = await patch("scout", { version: "2" }, { "if-match": etag });
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).not.toBe(etag);
  for (const answer of [
    await patch("scout", { version: "3" }, { "if-match": etag }),
    await put("scout", { version: "3" }, { "if-match": `W/${changed.headers.get("etag")}` }),
    await put("other", {}, { "if-match": "*" }),
  ]) {
    expect([answer.status, answer.body.code]).toEqual([412, "precondition_failed"]);
  }
  const present = (await admin.call("GET", "/v1/agents/scout")).headers.get("etag") ?? "";
  expect(present).toBe(changed.headers.get("etag"));
  expect((await put("scout", { version: "4" }, { "if-match": `"x", ${present}` })).status).toBe(200);
  // An agent that was deleted and created again has another tag.
  await admin.call("DELETE", "/v1/agents/scout");
  await admin.agent("scout");
  expect((await patch("scout", {}, { "if-match": etag })).status).toBe(412);
});

test("an agent may change its own settings, but not its delivery, by any method", async () => {
  const { url, admin, another } = await setup();
  await admin.agent("scout");
  const scout = await as(url, "agent:scout");
  expect((await scout.call("PATCH", "/v1/agents/scout", { description: "me" })).status).toBe(200);
  expect((await scout.call("PATCH", "/v1/agents/other", {})).status).toBe(403);
  const delivery = { mode: "push", url: "https://a2a.example/agent" };
  expect((await scout.call("PATCH", "/v1/agents/scout", { delivery })).body.code).toBe("forbidden");
  // A change at another gateway applies at once, cached or not.
  const second = await another();
  await request(second.url, "PATCH", "/v1/agents/scout", { body: { delivery } });
  expect((await scout.call("PATCH", "/v1/agents/scout", { delivery: null })).body.code).toBe("forbidden");
  expect((await scout.call("PUT", "/v1/agents/scout", {})).body.code).toBe("forbidden");
  const polled = await admin.call("PATCH", "/v1/agents/scout", { delivery: { mode: "poll" } });
  expect(polled.body).toMatchObject({ delivery: { mode: "poll" }, reset: ["delivery"] });
});

test("only the operator changes the risks; an agent keeps them when it replaces its settings", async () => {
  const { url, admin, redis } = await setup();
  const risks = [{ action: "deploy", risk: "high" }];
  const scout = await as(url, "agent:scout");
  const own = (method: string, body: unknown) => scout.call(method, "/v1/agents/scout", body);
  expect((await own("PUT", { risks })).body.code).toBe("forbidden");
  expect((await own("PUT", {})).status).toBe(201);
  // An older gateway, during an upgrade, refuses settings that it does not know.
  const [key = ""] = await keysIn(redis, "*:agent:scout");
  expect(await redis.hget(key, "doc")).not.toContain("risks");
  expect((await admin.agent("scout", { risks })).body).toMatchObject({ risks, changed: ["risks"] });
  for (const other of [[], [{ action: "deploy", risk: "low" }], [...risks, { action: "*", risk: "low" }]]) {
    const refused = await own("PATCH", { risks: other });
    expect([refused.status, refused.body.recovery]).toEqual([403, expect.stringContaining("`risks`")]);
  }
  expect((await own("PATCH", { risks: null })).status).toBe(403);
  expect((await own("PUT", { risks: [{ action: "deploy", risk: "low" }] })).status).toBe(403);
  const replaced = await own("PUT", { description: "mine" });
  expect(replaced.body).toMatchObject({ description: "mine", risks, changed: ["description"] });
  expect((await own("PATCH", { risks, description: "same" })).body).toMatchObject({ risks });
  const caller = await as(url, "caller:alice");
  expect((await caller.call("GET", "/v1/agents/scout")).body).toMatchObject({ risks });
  expect((await admin.agent("scout")).body).toMatchObject({ risks: [], reset: ["description", "risks"] });
  const { entries } = auditPageSchema.parse((await admin.call("GET", "/v1/audit?subject=scout")).body);
  expect(entries[0]?.details).toMatchObject({ before: { risks }, after: { risks: [] } });
});

test("settings stored without a version are read and changed", async () => {
  const { admin, patch, redis } = await setup();
  await admin.agent("scout", { version: "7" });
  await redis.hdel("{errand:0}:agent:scout", "version");
  expect((await patch("scout", { description: "new" })).body).toMatchObject({
    version: "7",
    description: "new",
  });
});

test("one agent's settings are bounded in bytes", async () => {
  const { admin, put } = await setup();
  const skill = (n: number) => ({ id: `s${n}`, name: "x".repeat(700), description: "", tags: [] });
  const many = Array.from({ length: 100 }, (_, n) => skill(n));
  expect((await put("scout", { skills: many })).body).toMatchObject({ status: 400, code: "invalid_request" });
  expect((await put("scout", { skills: many.slice(0, 50) })).status).toBe(201);
  expect((await admin.call("PATCH", "/v1/agents/scout", { skills: many })).status).toBe(400);
});

test("the library creates without a race, merges, and writes nothing when nothing changes", async () => {
  const { url, admin, redis } = await setup();
  const library = new Admin({ url, token: OPERATOR });
  const made = await Promise.all(
    Array.from({ length: 6 }, (_, n) => library.putAgent("scout", { limits: { max_attempts: n + 1 } })),
  );
  expect(made.filter(({ created }) => created)).toHaveLength(1);
  await library.putAgent("scout", { accepts_from: ["caller:ci"], limits: { max_attempts: 2 } });
  const before = await redis.hgetall("{errand:0}:agent:scout");
  expect(await library.putAgent("scout")).toMatchObject({
    accepts_from: ["caller:ci"],
    changed: [],
    reset: [],
  });
  expect(await redis.hgetall("{errand:0}:agent:scout")).toEqual(before);
  expect(await library.putAgent("other", { accepts_from: null })).toMatchObject({ created: true });
  expect(await library.replaceAgent("scout", { limits: { max_attempts: null } })).toMatchObject({
    created: false,
    reset: ["accepts_from", "limits.max_attempts"],
  });
  const { entries } = auditPageSchema.parse((await admin.call("GET", "/v1/audit?subject=scout")).body);
  expect(entries[0]).toMatchObject({
    action: "agent.update",
    details: { reset: ["accepts_from", "limits.max_attempts"] },
  });
  expect(entries.at(-1)).toMatchObject({ action: "agent.create", by: "operator" });
});

test("agents are listed in pages by name, over all shards", async () => {
  const { url, admin } = await setup({ shards: 3 });
  const names = Array.from({ length: 23 }, (_, n) => `a${String(n).padStart(2, "0")}`);
  await Promise.all(names.map((name) => admin.agent(name)));
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { status, body } = await admin.call("GET", `/v1/agents?limit=10${query}`);
    expect(status).toBe(200);
    seen.push(...body.agents.map(({ name }: { name: string }) => name));
    cursor = body.next_cursor;
  } while (cursor !== null);
  expect(seen).toEqual(names);
  await admin.call("DELETE", "/v1/agents/a07");
  const library = new Admin({ url, token: OPERATOR });
  const rest: string[] = [];
  for await (const { name } of library.agents({ pageSize: 9 })) rest.push(name);
  expect(rest).toEqual(names.filter((name) => name !== "a07"));
  expect((await library.listAgents()).map(({ name }) => name)).toEqual(rest);
  for (const wrong of ["limit=101", "cursor=A", "other=1"]) {
    expect((await admin.call("GET", `/v1/agents?${wrong}`)).status).toBe(400);
  }
});

test("an agent in a list equals the single agent, with the presence of every gateway", async () => {
  const { admin, another, gateway } = await setup();
  const second = await another();
  await admin.agent("scout", { limits: { max_working: 1 } });
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push((await admin.delegate("scout")).body.id);
  await admin.delegate("scout", { delay_seconds: 60 });
  await admin.lease("scout");
  await admin.agent("idle");
  const parked = client(second.url).lease("idle", { wait_seconds: 20 });
  await until(async () => (await gateway.broker.presence.of("idle")).pollers === 1);
  const { body } = await admin.call("GET", "/v1/agents");
  expect(body.agents).toMatchObject([
    {
      name: "idle",
      presence: { state: "online", pollers: 1 },
      slots: { busy: 0, free: 1, most: null },
      oldest_waiting_at: null,
    },
    {
      name: "scout",
      presence: { state: "online" },
      slots: { busy: 1, free: 0, most: 1 },
      oldest_waiting_at: await admin.get(ids[1] ?? "").then(({ body }) => body.created_at),
      counts: { waiting: 2, delayed: 1, working: 1, interrupted: 0, awaiting: 0 },
    },
  ]);
  for (const listed of body.agents) {
    expect((await admin.call("GET", `/v1/agents/${listed.name}`)).body).toEqual({
      ...listed,
      presence: expect.objectContaining({ state: listed.presence.state }),
    });
  }
  await second.gateway.close();
  await parked.catch(() => undefined);
});

onOneRedis("it counts the commands that one server gets")(
  "a list costs a few commands on the connection for large reads, however many agents there are",
  async () => {
    const { admin, gateway, redis } = await setup();
    await admin.agent("a0");
    const doc = await redis.hgetall("{errand:0}:agent:a0");
    const fill = redis.pipeline();
    for (let n = 1; n < 2_000; n += 1) {
      fill.hset(`{errand:0}:agent:a${n}`, doc);
      fill.sadd("{errand:0}:agents", `a${n}`);
      fill.zadd("{errand:0}:agents:names", 0, `a${n}`);
    }
    await fill.exec();
    await admin.call("GET", "/v1/agents?limit=1");
    const { broker } = gateway;
    const commands = vi.spyOn(broker.redis, "sendCommand");
    const bulk = vi.spyOn(broker.bulk, "sendCommand");
    const lists = await Promise.all(Array.from({ length: 20 }, () => admin.call("GET", "/v1/agents")));
    expect(lists.map(({ body }) => body.agents.length)).toEqual(lists.map(() => 100));
    // In addition to the token, the other gateways and a write of presence.
    expect(commands.mock.calls.length).toBeLessThan(20);
    expect(bulk.mock.calls.length).toBeLessThanOrEqual(20 * 3);
  },
);

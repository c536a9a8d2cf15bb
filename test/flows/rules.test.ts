/** Rules that answer: what they answer and never do, who may create them, and how they end. */
import { expect, test, vi } from "vitest";
import { readRecord } from "../../src/lifecycle/stored-delegation.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { as, client, startBroker, type TestOptions } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";
import { startReceiver } from "../support/receiver.ts";

async function setup(options: TestOptions = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout");
  const scout = await as(broker.url, "agent:scout");
  const alice = await as(broker.url, "caller:alice");
  const ann = await as(broker.url, "approver:ann");
  type Caller = Pick<typeof alice, "call" | "delegate">;
  const leased = async (who: Caller = alice, more: Record<string, unknown> = {}) => {
    const { id } = (await who.delegate("scout", more)).body;
    for (;;) {
      const [lease] = (await scout.lease("scout")).body.leases;
      if (lease.delegation.id === id) return { id: String(id), lease_id: String(lease.lease_id) };
      // One that a rule has answered is before new work.
      await scout.reply(lease.lease_id);
    }
  };
  const askedBy = async (who: Caller, question: Record<string, unknown>, more?: Record<string, unknown>) => {
    const { id, lease_id } = await leased(who, more);
    const asked = await scout.interrupt(lease_id, question);
    expect(asked.status).toBe(200);
    return { id, lease_id, asked, after: (await api.get(id)).body };
  };
  const asked = (question: Record<string, unknown>) => askedBy(alice, question);
  const create = async (who: Caller, more: Record<string, unknown> = {}) => {
    const made = await who.call("POST", "/v1/rules", {
      ...{ agent: "scout", action: "write", decision: "approve", arguments: ARGUMENTS },
      ...more,
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return String(made.body.id);
  };
  const rule = async (id: string) => (await api.call("GET", `/v1/rules/${id}`)).body;
  return { ...broker, api, scout, alice, ann, leased, asked, askedBy, create, rule };
}

const ARGUMENTS = [{ name: "path", path_prefix: "/srv/a" }];
const write = (path: unknown = "/srv/a/b", more: Record<string, unknown> = {}) => ({
  text: "Shall I?",
  action: { name: "write", arguments: { path } },
  ...more,
});

test("a rule answers at once, in its creator's name, and says so everywhere", async () => {
  const { url } = await startReceiver();
  const { api, scout, alice, ann, askedBy, create, rule } = await setup({ callbackAllow: ["127.0.0.1"] });
  const id = await create(ann, { note: "builds" });
  const { id: delegation, asked, after } = await askedBy(alice, write(), { callback: { url } });
  const { interrupt_id } = asked.body;
  expect(after).toMatchObject({ state: "submitted", interrupt: null });
  const [back] = (await scout.lease("scout")).body.leases;
  expect(back.delegation.history[1]).toMatchObject({
    role: "ROLE_USER",
    metadata: { interrupt_id, decision: "approve", by: "approver:ann", auto: true, rule: id },
  });
  const { events } = (await api.events(delegation)).body;
  const answered = events.find(({ status }: { status?: string }) => status === "answered");
  expect(answered).toMatchObject({
    by: "approver:ann",
    via: "rule",
    auto: true,
    rule: id,
    decision: "approve",
  });
  expect(Object.values(answered.answers)).toEqual([{ decision: "approve", rule: id }]);
  checkHistory(events, "live");
  const [settled] = (await alice.call("GET", "/v1/answers")).body.answers;
  expect(settled).toMatchObject({
    by: "approver:ann",
    via: "rule",
    requests: [{ action: "write", rule: id }],
  });
  expect(await rule(id)).toMatchObject({
    ...{ id, by: "approver:ann", agent: "scout", state: "active", uses: 1, max_uses: null, note: "builds" },
    last_uses: [{ delegation_id: delegation, interrupt_id }],
  });
  const { entries } = (await api.call("GET", "/v1/audit?action=delegation.decide")).body;
  expect(entries).toMatchObject([
    {
      by: "approver:ann",
      subject: delegation,
      details: { via: "rule", decisions: [{ decision: "approve", rule: id }] },
    },
  ]);
  expect((await scout.reply(back.lease_id)).body.outcome).toBe("matched");
});

test("a client cannot claim that a rule answered", async () => {
  const { scout, alice, asked } = await setup();
  const { id, after } = await asked(write());
  const message = { parts: [{ text: "ok" }], metadata: { rule: "rul_x", auto: true } };
  await alice.answer(id, after.interrupt.id, { decision: "approve", message });
  const [back] = (await scout.lease("scout")).body.leases;
  expect(back.delegation.history[1].metadata).not.toHaveProperty("rule");
});

test.each([
  ["another action", { text: "?", action: { name: "write2", arguments: { path: "/srv/a" } } }],
  ["another folder", write("/srv/ab")],
  ["a path that leads out", write("/srv/a/../b")],
  ["another kind", write(["/srv/a"])],
  ["no argument", { text: "?", action: { name: "write", arguments: {} } }],
  ["one more argument", { text: "?", action: { name: "write", arguments: { path: "/srv/a", mode: "777" } } }],
  ["a credential", { ...write(), kind: "auth" }],
  ["text", { text: "Which?" }],
  ["options", { text: "Go on?", options: ["approve", "deny"] }],
  ["a part without a rule", { requests: [write(), { ...write("/etc"), request_id: "b" }] }],
  ["a part that is no action", { requests: [write(), { text: "Which?" }] }],
])("a question about %s waits for a person", async (_name, question) => {
  const { ann, asked, create, rule } = await setup();
  const id = await create(ann);
  const { after } = await asked(question);
  expect(after.state).toMatch(/_required$/);
  expect(await rule(id)).toMatchObject({ uses: 0, last_uses: [] });
});

test("several requests are answered if each is covered, by one principal", async () => {
  const { ann, api, scout, asked, create, rule } = await setup();
  const two = { requests: [write("/srv/a", { request_id: "a" }), write("/etc/x", { request_id: "b" })] };
  const first = await create(ann);
  const second = await create(api, { arguments: [{ name: "path", path_prefix: "/etc" }] });
  expect((await asked(two)).after.state).toBe("input_required");
  const third = await create(ann, { arguments: [{ name: "path", path_prefix: "/etc" }] });
  expect((await asked(two)).after.state).toBe("submitted");
  const [back] = (await scout.lease("scout")).body.leases;
  expect(
    back.delegation.history.slice(2).map(({ metadata }: { metadata: unknown }) => metadata),
  ).toMatchObject([
    { request_id: "a", rule: first },
    { request_id: "b", rule: third },
  ]);
  expect([(await rule(first)).uses, (await rule(second)).uses, (await rule(third)).uses]).toEqual([1, 0, 1]);
});

test("a rule that decides two actions of a question needs two uses", async () => {
  const { ann, asked, create, rule } = await setup();
  const two = { requests: [write("/srv/a", { request_id: "a" }), write("/srv/a/x", { request_id: "b" })] };
  const id = await create(ann, { max_uses: 3 });
  expect((await asked(two)).after.state).toBe("submitted");
  expect((await asked(two)).after.state).toBe("input_required");
  expect(await rule(id)).toMatchObject({ uses: 2, state: "active" });
  expect((await asked(write())).after.state).toBe("submitted");
  expect(await rule(id)).toMatchObject({ uses: 3, state: "used_up" });
});

test("a denial wins, over rules and over what the delegator approved with the task", async () => {
  const { ann, api, alice, scout, askedBy, create } = await setup();
  await create(ann);
  const denial = await create(alice, {
    decision: "deny",
    arguments: [{ name: "path", path_prefix: "/srv/a/secret" }],
  });
  const decide = async (path: string, auto_approve?: true) => {
    const { after, id } = await askedBy(alice, write(path), auto_approve && { auto_approve });
    if (after.state !== "submitted") return after.state;
    const [back] = (await scout.lease("scout")).body.leases;
    expect(back.delegation.id).toBe(id);
    await scout.reply(back.lease_id);
    return back.delegation.history[1].metadata;
  };
  expect(await decide("/srv/a/x")).toMatchObject({ decision: "approve", by: "approver:ann" });
  expect(await decide("/srv/a/secret/x")).toMatchObject({
    decision: "deny",
    by: "caller:alice",
    rule: denial,
  });
  expect(await decide("/srv/a/secret", true)).toMatchObject({ decision: "deny", rule: denial });
  // It may be what is denied, so nothing approves it.
  for (const path of ["/srv/a/x/../secret", "/srv/a", "/srv/A/Secret/x"])
    expect([path, await decide(path, true)]).toEqual([path, "input_required"]);
  await api.call("DELETE", `/v1/rules/${denial}`);
  expect(await decide("/srv/a/secret")).toMatchObject({ decision: "approve", by: "approver:ann" });
  expect(await decide("/etc", true)).toMatchObject({ decision: "approve", by: "caller:alice" });
});

test("a delegator's rule is for its own delegations only, an approver's for all", async () => {
  const { url, alice, ann, askedBy, create } = await setup();
  const bob = await as(url, "caller:bob");
  await create(alice);
  expect((await askedBy(alice, write())).after.state).toBe("submitted");
  expect((await askedBy(bob, write())).after.state).toBe("input_required");
  await create(ann);
  expect((await askedBy(bob, write())).after.state).toBe("submitted");
});

test("who may create, see and revoke rules", async () => {
  const { url, api, alice, ann, create } = await setup();
  const [bob, eve, max] = [
    await as(url, "caller:bob"),
    await as(url, "viewer:eve"),
    await as(url, "approver:max"),
  ];
  const body = { agent: "scout", action: "write", decision: "approve" };
  expect((await eve.call("POST", "/v1/rules", body)).body.code).toBe("forbidden");
  expect((await alice.call("POST", "/v1/rules", { ...body, agent: "none" })).body.code).toBe("agent_unknown");
  const [a, b] = [await create(alice), await create(ann)];
  const list = async (who: typeof bob, query = "") =>
    (await who.call("GET", `/v1/rules${query}`)).body.rules.map(({ id }: { id: string }) => id);
  expect([await list(alice), await list(bob), await list(eve)]).toEqual([[a], [], [a, b]]);
  expect([await list(eve, "?agent=scout"), await list(alice, "?agent=other")]).toEqual([[a, b], []]);
  const get = async (who: typeof bob, id: string) => (await who.call("GET", `/v1/rules/${id}`)).status;
  expect([await get(bob, a), await get(eve, a), await get(alice, a)]).toEqual([404, 200, 200]);
  const revoke = async (who: typeof bob, id: string) => (await who.call("DELETE", `/v1/rules/${id}`)).status;
  expect([await revoke(bob, a), await revoke(eve, a), await revoke(max, b)]).toEqual([404, 403, 403]);
  expect([await revoke(alice, a), await revoke(alice, a)]).toEqual([204, 204]);
  expect((await api.call("DELETE", `/v1/rules/${b}`)).status).toBe(204);
  expect((await api.call("DELETE", "/v1/rules/rul_x")).status).toBe(404);
  const { entries } = (await api.call("GET", `/v1/audit?subject=${a}`)).body;
  expect(entries.map(({ action, by }: Record<string, string>) => `${action} ${by}`)).toEqual([
    "rule.revoke caller:alice",
    "rule.create caller:alice",
  ]);
});

test("pages of rules continue where the one before ended", async () => {
  const { api, alice, create } = await setup();
  const made: string[] = [];
  for (let n = 0; n < 5; n += 1) made.push(await create(alice));
  const seen: string[] = [];
  for (let query: string | null = "?limit=2"; query !== null; ) {
    const { rules, next_cursor }: { rules: { id: string }[]; next_cursor: string | null } = (
      await api.call("GET", `/v1/rules${query}`)
    ).body;
    seen.push(...rules.map(({ id }) => id));
    query = next_cursor && `?limit=2&cursor=${next_cursor}`;
  }
  expect(seen.sort()).toEqual(made.sort());
  expect((await api.call("GET", "/v1/rules?cursor=x")).status).toBe(400);
});

test("a repeat with the same key creates one rule", async () => {
  const { alice } = await setup();
  const body = { agent: "scout", action: "write", decision: "approve" };
  const send = (more = {}) =>
    alice.call("POST", "/v1/rules", { ...body, ...more }, { "idempotency-key": "k" });
  const first = await send();
  const again = await send();
  expect([first.status, again.status, again.body.id]).toEqual([201, 200, first.body.id]);
  expect((await send({ action: "x" })).body.code).toBe("idempotency_conflict");
});

test("an agent that wants a person takes no rules, and those that it has stop", async () => {
  const { api, alice, ann, asked, create } = await setup();
  await create(ann);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  expect((await asked(write())).after.state).toBe("input_required");
  const refused = await alice.call("POST", "/v1/rules", { agent: "scout", action: "w", decision: "deny" });
  expect([refused.status, refused.body.code]).toEqual([422, "approval_required"]);
  await api.call("PATCH", "/v1/agents/scout", { approvals: "any" });
  expect((await asked(write())).after.state).toBe("submitted");
});

test("a rule ends after its time, at its instant, and after its uses", async () => {
  const { clock, ann, asked, create, rule } = await setup();
  const brief = await create(ann, { for_seconds: 60 });
  expect((await asked(write())).after.state).toBe("submitted");
  clock.offset_ms += 59_000;
  expect((await asked(write())).after.state).toBe("submitted");
  clock.offset_ms += 1_000;
  expect((await asked(write())).after.state).toBe("input_required");
  expect(await rule(brief)).toMatchObject({ state: "expired", uses: 2 });
  const expires_at = new Date(Date.now() + clock.offset_ms + 3_600_000).toISOString();
  const until = await create(ann, { expires_at, max_uses: 1 });
  expect(await rule(until)).toMatchObject({ expires_at, max_uses: 1, state: "active" });
  expect((await asked(write())).after.state).toBe("submitted");
  expect((await asked(write())).after.state).toBe("input_required");
  const past = await ann.call("POST", "/v1/rules", {
    ...{ agent: "scout", action: "write", decision: "approve" },
    expires_at: new Date(Date.now() - 1000).toISOString(),
  });
  expect(past.body).toMatchObject({ code: "invalid_request", details: { issues: [{ path: "expires_at" }] } });
});

test("a rule ends with the token of its creator", async () => {
  const { url, api, clock, asked, create, rule } = await setup();
  const [max, zoe] = [await as(url, "approver:max"), await as(url, "approver:zoe")];
  const id = await create(max);
  expect((await asked(write())).after.state).toBe("submitted");
  await create(zoe);
  await api.call("DELETE", `/v1/tokens/${max.tokenId}`);
  expect(await rule(id)).toMatchObject({ state: "revoked", uses: 1 });
  const { after } = await asked(write());
  expect(after.state).toBe("submitted");
  await api.call("DELETE", `/v1/tokens/${zoe.tokenId}`);
  expect((await asked(write())).after.state).toBe("input_required");
  const made = await api.call("POST", "/v1/tokens", { principal: "approver:ida", expires_in_seconds: 60 });
  const short = await create(client(url, made.body.token));
  expect(Date.parse((await rule(short)).expires_at) - Date.now()).toBeLessThanOrEqual(60_000);
  clock.offset_ms = 61_000;
  expect((await rule(short)).state).toBe("expired");
});

test("a token whose revocation was cut short lets no rule answer", async () => {
  const { gateway, url, api, asked, create } = await setup();
  const max = await as(url, "approver:max");
  await create(max);
  vi.spyOn(gateway.broker.rules, "revokeOfToken").mockRejectedValueOnce(new Error("cut short"));
  expect((await api.call("DELETE", `/v1/tokens/${max.tokenId}`)).status).toBe(500);
  expect((await asked(write())).after.state).toBe("input_required");
  expect((await api.call("GET", "/v1/rules")).body.rules[0].state).toBe("revoked");
});

test("the rules of a deleted agent are gone, those for it and its own", async () => {
  const { url, api, redis, alice, create } = await setup();
  await api.agent("helper");
  const helper = await as(url, "agent:helper");
  await create(helper);
  await create(alice, { agent: "helper" });
  await api.call("DELETE", "/v1/agents/helper?force=true");
  expect((await api.call("GET", "/v1/rules")).body.rules).toEqual([]);
  const left = (await redis.keys("*")).filter((key) => key.includes("rules"));
  expect(left).toEqual([]);
});

test("a worker that asks again gets the answer that a rule gave, also after the rule has ended", async () => {
  const { api, scout, ann, asked, create, rule } = await setup();
  const id = await create(ann, { max_uses: 1 });
  const question = write("/srv/a", { request_id: "go" });
  const first = await asked(question);
  expect(first.after.state).toBe("submitted");
  const [back] = (await scout.lease("scout")).body.leases;
  const again = await scout.interrupt(back.lease_id, question);
  expect(again.body).toMatchObject({
    interrupt_id: first.asked.body.interrupt_id,
    answers: { go: { decision: "approve" } },
  });
  expect((await rule(id)).uses).toBe(1);
  // Once a person must be asked, or it is denied, that answer counts no more.
  const denial = await create(ann, { decision: "deny" });
  await scout.interrupt(back.lease_id, question);
  const [denied] = (await scout.lease("scout")).body.leases;
  expect(denied.delegation.history.at(-1).metadata).toMatchObject({ decision: "deny", rule: denial });
  await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
  expect((await scout.interrupt(denied.lease_id, question)).body.answers).toBeUndefined();
});

test("a held question is answered without losing the lease", async () => {
  const { ann, scout, leased, create } = await setup();
  await create(ann, { max_uses: 1 });
  const { lease_id } = await leased();
  const answered = await scout.interrupt(lease_id, write("/srv/a", { request_id: "go", hold: true }));
  expect(answered.body).toMatchObject({ answers: { go: { decision: "approve" } } });
  expect((await scout.reply(lease_id)).body.outcome).toBe("matched");
});

test("a held question that is asked again stays a person's, although there is a rule now", async () => {
  const { api, alice, ann, scout, leased, create, rule } = await setup();
  const { id, lease_id } = await leased();
  const question = write("/srv/a", { request_id: "go" });
  const held = await scout.interrupt(lease_id, { ...question, hold: true });
  const made = await create(ann);
  for (const text of ["Shall I?", "May I?"]) {
    const again = await scout.interrupt(lease_id, { ...question, text, hold: true });
    expect(again.body).toEqual({ ...held.body, held_until: expect.any(String) });
  }
  // Without `hold` it gives the lease up.
  expect((await scout.interrupt(lease_id, question)).body).toEqual({ interrupt_id: held.body.interrupt_id });
  expect((await api.get(id)).body).toMatchObject({ state: "input_required", lease: null });
  expect((await alice.answer(id, held.body.interrupt_id, { decision: "deny" })).status).toBe(200);
  expect((await rule(made)).uses).toBe(0);
});

test("the rules of one principal are bounded, and one that has ended makes room", async () => {
  const { api, alice, ann, create } = await setup();
  const body = { agent: "scout", action: "write", decision: "approve" };
  const made = await Promise.all(Array.from({ length: LIMITS.rules.value }, () => create(alice)));
  const full = await alice.call("POST", "/v1/rules", body);
  expect(full.body).toMatchObject({
    code: "limit_reached",
    details: { limit: "rules", maximum: LIMITS.rules.value },
  });
  await create(ann);
  await api.call("DELETE", `/v1/rules/${made[3]}`);
  await create(alice);
  expect((await alice.call("POST", "/v1/rules", body)).body.code).toBe("limit_reached");
  const found = await alice.call("GET", `/v1/rules/${made[3]}`);
  expect(found.status).toBe(404);
});

test("a rule that has ended is kept for a time, and then makes room", async () => {
  const { clock, alice, create, rule } = await setup();
  const [used, kept] = [await create(alice, { for_seconds: 60 }), await create(alice)];
  clock.offset_ms = LIMITS.rule_days.value * 86_400_000;
  await create(alice);
  expect([(await rule(used)).state, (await rule(kept)).state]).toEqual(["expired", "active"]);
  clock.offset_ms += 61_000;
  await create(alice);
  expect([(await rule(used)).code, (await rule(kept)).state]).toEqual(["not_found", "active"]);
});

test("the rules of approvers for one agent are bounded together", async () => {
  const { url, ann, create } = await setup();
  const max = await as(url, "approver:max");
  await Promise.all(Array.from({ length: LIMITS.agent_rules.value }, (_, n) => create(n % 2 ? ann : max)));
  const full = await ann.call("POST", "/v1/rules", { agent: "scout", action: "w", decision: "deny" });
  expect(full.body).toMatchObject({ code: "limit_reached", details: { limit: "agent_rules" } });
});

test("a rule keeps its newest uses", async () => {
  const { ann, asked, create, rule } = await setup();
  const id = await create(ann);
  const used: string[] = [];
  for (let n = 0; n < LIMITS.rule_uses.value + 2; n += 1) used.unshift((await asked(write())).id);
  const { uses, last_uses } = await rule(id);
  expect(uses).toBe(used.length);
  expect(last_uses.map((one: { delegation_id: string }) => one.delegation_id)).toEqual(
    used.slice(0, LIMITS.rule_uses.value),
  );
});

test("an agent without rules costs one command at a question about actions, and none at another", async () => {
  const { gateway, redis, asked, leased, scout } = await setup();
  const reads = vi.spyOn(gateway.broker.rules, "for");
  await asked(write());
  await asked({ text: "Which?" });
  expect(reads).toHaveBeenCalledTimes(1);
  const agents = vi.spyOn(gateway.broker.agents, "read");
  await asked(write());
  expect(agents).not.toHaveBeenCalled();
  const { id, lease_id } = await leased();
  await scout.reply(lease_id);
  expect(await readRecord(redis, gateway.broker.shards, id)).not.toBeNull();
  expect(reads).toHaveBeenCalledTimes(2);
});

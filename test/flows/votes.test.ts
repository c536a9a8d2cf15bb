/** Approvals of several people: who counts, what voids them, what ends the question, and that each counts once. */
import { expect, test } from "vitest";
import { givingCommand } from "../../src/engine/questions/standing-votes.ts";
import type { Interrupt } from "../../src/schema/delegation.ts";
import { votesSchema } from "../../src/schema/votes.ts";
import { as, client, startBroker, type TestOptions } from "../support/broker.ts";
import { checkHistory } from "../support/history.ts";
import { passes } from "../support/outage.ts";

const deploy = (more: Record<string, unknown> = {}) => ({
  kind: "input",
  text: "May I deploy?",
  action: { name: "deploy", arguments: { version: "1.2", to: "prod" } },
  edit: true,
  ...more,
});

async function setup(votes: Record<string, unknown> | null, options: TestOptions = {}) {
  const broker = await startBroker(options);
  const api = client(broker.url);
  await api.agent("scout", { votes });
  const scout = await as(broker.url, "agent:scout");
  const alice = await as(broker.url, "caller:alice");
  const [ann, bob, cyd] = [
    await as(broker.url, "approver:ann"),
    await as(broker.url, "approver:bob"),
    await as(broker.url, "approver:cyd"),
  ];
  const ask = async (question = deploy(), by = alice, more: Record<string, unknown> = {}) => {
    const { id } = (await by.delegate("scout", more)).body;
    const [lease] = (await scout.lease("scout")).body.leases;
    const asked = await scout.interrupt(lease.lease_id, question);
    expect(asked.status).toBe(200);
    return {
      id: String(id),
      lease_id: String(lease.lease_id),
      interrupt_id: String(asked.body.interrupt_id),
    };
  };
  const events = async (id: string) => {
    const { events: all } = (await api.events(id)).body;
    checkHistory(all, "live");
    return all;
  };
  const votesOf = async (id: string) => (await api.get(id)).body.interrupt?.votes;
  return { ...broker, api, scout, alice, ann, bob, cyd, ask, events, votesOf };
}

const APPROVE = { decision: "approve" };

test("two of three approve: the first approval is a vote, the second answers, and everything says who", async () => {
  const { api, scout, ann, bob, ask, events, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  expect(await votesOf(id)).toEqual({ needed: 2, given: [] });
  const first = await ann.answer(id, interrupt_id, { ...APPROVE, text: "fine by me" });
  expect(first.status).toBe(200);
  expect(first.body).toMatchObject({
    state: "input_required",
    interrupt: {
      id: interrupt_id,
      votes: { needed: 2, given: [{ by: "approver:ann", via: "rest" }] },
    },
  });
  // A repeat, and the same person again, change nothing.
  const before = first.body.version;
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, text: "fine by me" })).body.version).toBe(before);
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, text: "again" })).body.version).toBe(before);
  const second = await bob.answer(id, interrupt_id, { ...APPROVE, text: "ship it" });
  expect(second.body).toMatchObject({ state: "submitted", interrupt: null });
  const [lease] = (await scout.lease("scout")).body.leases;
  expect(lease.delegation.history.slice(1)).toMatchObject([
    { metadata: { by: "approver:ann", decision: "approve", vote: true }, parts: [{ text: "fine by me" }] },
    { metadata: { by: "approver:bob", decision: "approve", vote: true }, parts: [{ text: "ship it" }] },
  ]);
  const told = (await events(id)).filter(({ status }: { status?: string }) =>
    ["interrupted", "voted", "answered"].includes(status ?? ""),
  );
  expect(told).toMatchObject([
    { status: "interrupted", interrupt: { id: interrupt_id } },
    {
      ...{ status: "voted", state: "input_required", interrupt_id, by: "approver:ann", via: "rest" },
      ...{ decision: "approve", answer_preview: "fine by me", needed: 2 },
      votes: [{ by: "approver:ann", via: "rest" }],
    },
    {
      ...{ status: "answered", by: "approver:bob", decision: "approve" },
      votes: [{ by: "approver:ann" }, { by: "approver:bob" }],
    },
  ]);
  // A repeat of the first vote is one still.
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, text: "fine by me" })).status).toBe(200);
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, text: "other" })).body.code).toBe(
    "interrupt_not_open",
  );
  const [settled] = (await api.call("GET", "/v1/answers")).body.answers;
  expect(settled).toMatchObject({
    ...{ by: "approver:bob", outcome: "answered" },
    votes: [{ by: "approver:ann", via: "rest" }, { by: "approver:bob" }],
  });
  // Also among the answers of who was not the last one.
  const ofAnn = (await api.call("GET", "/v1/answers?by=approver:ann")).body.answers;
  expect(ofAnn).toEqual([settled]);
});

test("an edit voids the votes before it, and who agrees with it sends the same", async () => {
  const { ann, bob, cyd, ask, events, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  const edited = { ...APPROVE, data: { version: "1.2", to: "staging" } };
  await ann.answer(id, interrupt_id, APPROVE);
  await bob.answer(id, interrupt_id, edited);
  const votes = await votesOf(id);
  expect(votes).toMatchObject({ needed: 2, given: [{ by: "approver:bob" }] });
  expect(Object.values(votes.answers)).toEqual([edited]);
  // Ann's vote for the original does not count with cyd's for the edit.
  const last = await cyd.answer(id, interrupt_id, edited);
  expect(last.body.state).toBe("submitted");
  const all = await events(id);
  const [, voided] = all.filter(({ status }: { status?: string }) => status === "voted");
  expect(voided).toMatchObject({
    by: "approver:bob",
    voided: ["approver:ann"],
    votes: [{ by: "approver:bob" }],
  });
  expect(Object.values(voided.changes)).toMatchObject([{ total: 1 }]);
});

test("arguments that are sent as they were proposed change nothing, and void nothing", async () => {
  const { ann, bob, ask } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  await ann.answer(id, interrupt_id, APPROVE);
  const same = await bob.answer(id, interrupt_id, { ...APPROVE, data: { to: "prod", version: "1.2" } });
  expect(same.body.state).toBe("submitted");
});

test("a comment beside data is no other answer, and neither is an option as data", async () => {
  const { scout, ann, bob, ask } = await setup({ needed: 2 });
  const options = ["approve", "deny", "later"];
  const question = { kind: "input", text: "How many?", options, schema: { type: "object" } } as never;
  const many = await ask(question);
  await ann.answer(many.id, many.interrupt_id, { data: { n: 1 }, text: "fine" });
  const same = await bob.answer(many.id, many.interrupt_id, { data: { n: 1 } });
  expect(same.body.state).toBe("submitted");
  const [lease] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease.lease_id);
  const when = await ask({ kind: "input", text: "When?", options } as never);
  await ann.answer(when.id, when.interrupt_id, { text: "later" });
  const last = await bob.answer(when.id, when.interrupt_id, { data: "later" });
  expect(last.body.state).toBe("submitted");
});

test("one denial ends it, also the delegator's own", async () => {
  const { alice, ann, ask } = await setup({ needed: 3, not_by_delegator: true });
  const { id, interrupt_id } = await ask();
  await ann.answer(id, interrupt_id, APPROVE);
  const denied = await alice.answer(id, interrupt_id, { decision: "deny" });
  expect(denied.body).toMatchObject({ state: "submitted", interrupt: null });
});

test("only approvals of others than the delegator count, and of those who are named; a name is one person", async () => {
  const { url, alice, ann, bob, ask, votesOf } = await setup({
    needed: 2,
    not_by_delegator: true,
    by: ["approver:ann", "approver:alice", "caller:ann", "caller:alice", "operator"],
  });
  const { id, interrupt_id } = await ask();
  const own = await alice.answer(id, interrupt_id, APPROVE);
  expect([own.status, own.body.code]).toEqual([403, "forbidden"]);
  expect(own.body.detail).toContain("Somebody else than the delegator");
  const other = await (await as(url, "approver:alice")).answer(id, interrupt_id, APPROVE);
  expect(other.body.code).toBe("forbidden");
  const foreign = await bob.answer(id, interrupt_id, APPROVE);
  expect(foreign.body.detail).toContain("The approval of approver:bob does not count");
  expect(await votesOf(id)).toEqual({ needed: 2, given: [] });
  expect((await ann.answer(id, interrupt_id, APPROVE)).status).toBe(200);
  expect((await client(url).answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("who delegates and approves under one name counts once", async () => {
  const { url, ask, ann, bob } = await setup({ needed: 2 });
  const caller = await as(url, "caller:ann");
  const { id, interrupt_id } = await ask(deploy(), caller);
  await caller.answer(id, interrupt_id, APPROVE);
  expect((await ann.answer(id, interrupt_id, APPROVE)).body.state).toBe("input_required");
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("texts, credentials and questions without a choice need one answer", async () => {
  const { alice, ask } = await setup({ needed: 2, not_by_delegator: true });
  const text = await ask({ kind: "input", text: "Which branch?" } as never);
  expect((await alice.answer(text.id, text.interrupt_id, { text: "main" })).body.state).toBe("submitted");
});

test("a plain question that is approved needs as many as an action", async () => {
  const { ann, bob, ask } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask({ kind: "input", text: "Shall I go on?" } as never);
  expect((await ann.answer(id, interrupt_id, APPROVE)).body.state).toBe("input_required");
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("after some time, those to whom it is escalated count, too", async () => {
  const votes = { by: ["approver:ann"], escalate_seconds: 600, escalate_to: ["approver:bob"] };
  const { bob, cyd, ask, ...broker } = await setup(votes);
  const { id, interrupt_id } = await ask();
  const early = await bob.answer(id, interrupt_id, APPROVE);
  expect(early.body.detail).toMatch(/The approval of approver:bob counts for agent 'scout' from \d{4}-/);
  await passes(broker, 601);
  expect((await cyd.answer(id, interrupt_id, APPROVE)).body.code).toBe("forbidden");
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("the settings hold from the next approval on, and only the operator changes them", async () => {
  const { api, scout, ann, bob, ask } = await setup(null);
  const { id, interrupt_id } = await ask();
  await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 2 } });
  expect((await ann.answer(id, interrupt_id, APPROVE)).body.state).toBe("input_required");
  const refused = await scout.call("PATCH", "/v1/agents/scout", { votes: null });
  expect([refused.status, refused.body.detail]).toEqual([
    403,
    "Only the operator may change who approves for agent 'scout'.",
  ]);
  expect((await scout.call("PUT", "/v1/agents/scout", { description: "d" })).body.votes).toMatchObject({
    needed: 2,
  });
  await api.call("PATCH", "/v1/agents/scout", { votes: null });
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("rules count once for each creator, and never for a delegator who does not", async () => {
  const { api, scout, alice, ann, bob, ask, events, votesOf } = await setup({
    needed: 2,
    not_by_delegator: true,
  });
  const rule = async (who: typeof ann) => {
    const body = { agent: "scout", action: "deploy", decision: "approve", only_these_arguments: false };
    const made = await who.call("POST", "/v1/rules", body);
    expect(made.status).toBe(201);
    return String(made.body.id);
  };
  await rule(alice);
  const ruleOfAnn = await rule(ann);
  await rule(ann);
  const first = await ask();
  expect((await votesOf(first.id)).given).toMatchObject([{ by: "approver:ann", via: "rule" }]);
  expect((await ann.answer(first.id, first.interrupt_id, APPROVE)).body.state).toBe("input_required");
  expect((await bob.answer(first.id, first.interrupt_id, APPROVE)).body.state).toBe("submitted");
  const [lease] = (await scout.lease("scout")).body.leases;
  await scout.reply(lease.lease_id);
  // With those of two people, it is answered at once.
  const ruleOfBob = await rule(bob);
  const second = await ask();
  expect((await api.get(second.id)).body).toMatchObject({ state: "submitted", interrupt: null });
  const all = await events(second.id);
  expect(all.find(({ status }: { status?: string }) => status === "answered")).toMatchObject({
    votes: [{ by: expect.stringContaining("approver:") }, { by: expect.stringContaining("approver:") }],
  });
  const uses = async (id: string) => (await api.call("GET", `/v1/rules/${id}`)).body.uses;
  expect(await uses(ruleOfBob)).toBe(1);
  expect(await uses(ruleOfAnn)).toBeLessThanOrEqual(2);
});

test("what the delegator approved with the task is one vote, if it counts", async () => {
  const { bob, ask, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask(deploy(), undefined, { auto_approve: true });
  expect((await votesOf(id)).given).toMatchObject([{ by: "caller:alice", via: "auto" }]);
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("a held question stays held while people vote, and its holder goes on with the last one", async () => {
  const { scout, ann, bob, ask } = await setup({ needed: 2 });
  const { id, interrupt_id, lease_id } = await ask(deploy({ hold: true }));
  expect((await ann.answer(id, interrupt_id, APPROVE)).body).toMatchObject({
    state: "input_required",
    lease: { worker_id: expect.any(String) },
  });
  expect((await bob.answer(id, interrupt_id, APPROVE)).body.state).toBe("working");
  expect((await scout.reply(lease_id)).status).toBe(200);
});

test("a gateway that has not heard of the setting counts by it", async () => {
  const broker = await setup(null);
  const { id, interrupt_id } = await broker.ask();
  const other = await broker.another();
  const ann = client(other.url, broker.ann.token);
  // It knows the agent without the setting now.
  expect((await ann.call("GET", "/v1/agents/scout")).body.votes).toBeNull();
  await broker.api.call("PATCH", "/v1/agents/scout", { votes: { needed: 2 } });
  expect((await ann.answer(id, interrupt_id, APPROVE)).body.state).toBe("input_required");
  await broker.api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:bob"] } });
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, data: { version: "2" } })).status).toBe(403);
  await broker.api.call("PATCH", "/v1/agents/scout", { votes: { by: null } });
  expect((await ann.answer(id, interrupt_id, { ...APPROVE, data: { version: "2" } })).status).toBe(200);
});

test("after a change, those who approved and do not count any more are left out", async () => {
  const { api, alice, ann, bob, cyd, ask, votesOf } = await setup({ needed: 2 });
  const own = await ask();
  await alice.answer(own.id, own.interrupt_id, APPROVE);
  await api.call("PATCH", "/v1/agents/scout", { votes: { not_by_delegator: true } });
  expect((await ann.answer(own.id, own.interrupt_id, APPROVE)).body.state).toBe("input_required");
  expect((await votesOf(own.id)).given).toMatchObject([{ by: "approver:ann" }]);
  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:bob", "approver:cyd"] } });
  expect((await bob.answer(own.id, own.interrupt_id, APPROVE)).body.state).toBe("input_required");
  // Another change that leaves bob in.
  await api.call("PATCH", "/v1/agents/scout", { votes: { remind_seconds: 60 } });
  expect((await cyd.answer(own.id, own.interrupt_id, APPROVE)).body.state).toBe("submitted");
});

test("a late approval by somebody who has not voted is refused, whatever others said", async () => {
  const { ann, bob, cyd, ask } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  await ann.answer(id, interrupt_id, APPROVE);
  await bob.answer(id, interrupt_id, { decision: "deny" });
  expect((await cyd.answer(id, interrupt_id, APPROVE)).body.code).toBe("interrupt_not_open");
  expect((await ann.answer(id, interrupt_id, APPROVE)).status).toBe(200);
});

test("who approves something else voids nobody's vote but that of others", async () => {
  const { ann, ask, events, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  await ann.answer(id, interrupt_id, APPROVE);
  await ann.answer(id, interrupt_id, { ...APPROVE, data: { version: "2" } });
  expect((await votesOf(id)).given).toHaveLength(1);
  const voted = (await events(id)).filter(({ status }: { status?: string }) => status === "voted");
  expect(voted.map((event: object) => "voided" in event)).toEqual([false, false]);
});

test("only an approval of another answer voids: those who no longer count are left out", async () => {
  const { api, ann, bob, cyd, ask, events, votesOf } = await setup({ needed: 2 });
  const voidedIn = async (id: string) =>
    (await events(id)).flatMap(({ status, voided }: { status?: string; voided?: string[] }) =>
      status === "voted" ? [voided ?? null] : [],
    );
  const same = await ask();
  await ann.answer(same.id, same.interrupt_id, APPROVE);
  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:bob", "approver:cyd"] } });
  await bob.answer(same.id, same.interrupt_id, APPROVE);
  expect((await votesOf(same.id)).given).toMatchObject([{ by: "approver:bob" }]);
  expect(await voidedIn(same.id)).toEqual([null, null]);
  // Of those whose approval was for something else, only bob's still counted.
  await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 3, by: null } });
  await ann.answer(same.id, same.interrupt_id, APPROVE);
  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:bob", "approver:cyd"] } });
  await cyd.answer(same.id, same.interrupt_id, { ...APPROVE, data: { version: "2" } });
  expect((await voidedIn(same.id)).at(-1)).toEqual(["approver:bob"]);
});

/** An approval by a gateway that read the question before others voted. */
const outdated = (id: string, interrupt: Pick<Interrupt, "id" | "kind" | "requests">, votes: object) =>
  ({
    standing: { id, open: interrupt, votes: votesSchema.parse(votes), rules_seen: undefined },
    inputs: interrupt.requests.map(({ request_id }) => [request_id, { decision: "approve" }] as const),
  }) as const;

test("a gateway that has not seen a vote does not drop it when the setting changes", async () => {
  const { gateway, api, ann, ask, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  await ann.answer(id, interrupt_id, APPROVE);
  await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 3 } });
  const { interrupt } = (await api.get(id)).body;
  const { standing, inputs } = outdated(id, interrupt, { needed: 3 });
  const author = { by: "approver:bob", via: "rest" } as const;
  const { outcome } = await gateway.broker.writer.move(givingCommand(standing, { inputs, author }));
  expect(outcome.kind).toBe("votes_changed");
  expect((await votesOf(id)).given).toMatchObject([{ by: "approver:ann" }]);
});

test("a rule never voids what people approved since the question was asked", async () => {
  const { gateway, api, ann, ask, votesOf } = await setup({ needed: 2 });
  const { id, interrupt_id } = await ask();
  const { interrupt } = (await api.get(id)).body;
  await ann.answer(id, interrupt_id, { ...APPROVE, data: { version: "1.3", to: "prod" } });
  const { standing, inputs } = outdated(id, interrupt, { needed: 2 });
  const author = { by: "approver:bob", via: "rule" } as const;
  const { outcome } = await gateway.broker.writer.move(givingCommand(standing, { inputs, author }));
  expect(outcome.kind).toBe("other_votes");
  expect((await votesOf(id)).given).toMatchObject([{ by: "approver:ann" }]);
});

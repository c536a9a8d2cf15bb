/** Who is told of a question that several people approve, and when: at first, by escalation, by reminders, and when votes are void. */
import { expect, test } from "vitest";
import { keys } from "../../src/redis/keys.ts";
import { as } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const DEPLOY = { text: "May I?", action: { name: "deploy", arguments: { to: "prod" } }, edit: true };
const APPROVE = { decision: "approve" };
/** Not what is asked, nor who approved. */
const UNTIL = expect.stringMatching(/^It waits for an answer until [0-9T:-]+Z\.$/);
const EVENTS = ["question", "question_expiring", "question_expired"];

async function setup(votes: Record<string, unknown>, agent: Record<string, unknown> = {}) {
  const started = await startSubscribed();
  const { api, ann, alice, url, subscribe, tick } = started;
  await api.call("PATCH", "/v1/agents/scout", { votes, ...agent });
  const [bob, cyd] = [await as(url, "approver:bob"), await as(url, "approver:cyd")];
  const told = async (who: typeof ann, events: readonly string[] = EVENTS) => {
    const receiver = await startReceiver();
    await subscribe(who, { events, digest_above: 100, deliver: [{ kind: "webhook", url: receiver.url }] });
    return () => bodies(receiver.received);
  };
  const ask = async (question: Record<string, unknown> = DEPLOY) => {
    const { id } = (await alice.delegate("scout", { ttl_seconds: 864_000 })).body;
    const [lease] = (await api.lease("scout")).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, question)).body;
    await tick();
    return { id: String(id), interrupt_id: String(interrupt_id) };
  };
  const passes = async (seconds: number) => {
    started.clock.offset_ms += seconds * 1000;
    await tick();
  };
  return { ...started, bob, cyd, told, ask, passes };
}

test("only those whose approval counts are told of a question, and everybody of one that needs an answer", async () => {
  const { alice, ann, bob, told, ask, passes } = await setup(
    { needed: 2, by: ["approver:ann", "caller:*"], not_by_delegator: true },
    { limits: { interrupt_ttl_seconds: 600 } },
  );
  const [forAlice, forAnn, forBob] = [await told(alice), await told(ann), await told(bob)];
  const { interrupt_id } = await ask();
  await until(() => forAnn().length === 1);
  expect(forAnn()).toMatchObject([{ type: "question", interrupt_id, title: "scout asks", text: UNTIL }]);
  expect(forAnn()[0]).not.toHaveProperty("votes");
  expect(forAnn()[0]).not.toHaveProperty("reason");
  await passes(550);
  await until(() => forAnn().length === 2);
  expect(forAnn()[1]).toMatchObject({ type: "question_expiring", interrupt_id });
  expect([forAlice(), forBob()]).toEqual([[], []]);
  const open = await ask({ text: "Which branch?" });
  await until(() => forAlice().length === 1 && forBob().length === 1 && forAnn().length === 3);
  expect(forBob()).toMatchObject([{ type: "question", interrupt_id: open.interrupt_id }]);
});

test("where contents may leave the broker, the notification says how many approvals there are and for what", async () => {
  const { ann, bob, cyd, told, ask, passes } = await setup(
    { needed: 3, remind_seconds: 60 },
    { notify: { contents: ["webhook"] } },
  );
  const forAnn = await told(ann);
  const schema = { type: "object", properties: { key: { type: "string", writeOnly: true } } };
  const { id, interrupt_id } = await ask({ ...DEPLOY, schema });
  await until(() => forAnn().length === 1);
  expect(forAnn()[0]).toMatchObject({ votes: { needed: 3, given: [] } });
  expect(forAnn()[0].text).toMatch(/^0 of 3 approvals\.\nMay I\?/);
  await bob.answer(id, interrupt_id, { ...APPROVE, data: { to: "staging", key: "hunter2" } });
  await cyd.answer(id, interrupt_id, { ...APPROVE, data: { to: "staging", key: "hunter2" } });
  await passes(61);
  await until(() => forAnn().length === 2);
  expect(forAnn()[1]).toMatchObject({
    votes: { needed: 3, given: [{ by: "approver:bob" }, { by: "approver:cyd" }] },
  });
  expect(forAnn()[1].text).toMatch(/^2 of 3 approvals: approver:bob, approver:cyd\./);
  expect(forAnn()[1].text).toContain('Approved so far: to "prod" → "staging", key ');
  expect(forAnn()[1].text).not.toContain("hunter2");
});

test("the notification says which of several requests was denied", async () => {
  const { ann, bob, told, ask, passes } = await setup(
    { needed: 2, remind_seconds: 60 },
    { notify: { contents: ["webhook"] } },
  );
  const forAnn = await told(ann);
  const { text, action } = DEPLOY;
  const requests = ["one", "two"].map((request_id) => ({ request_id, text, action }));
  const { id, interrupt_id } = await ask({ requests });
  await until(() => forAnn().length === 1);
  expect(forAnn()[0].text).not.toContain("Approved so far");
  await bob.answer(id, interrupt_id, { answers: { one: APPROVE, two: { decision: "deny" } } });
  await passes(61);
  await until(() => forAnn().length === 2);
  expect(forAnn()[1].text).toMatch(/^1 of 2 approvals: approver:bob\.\nApproved so far: two: deny\n/);
});

test("after a time those to whom it is escalated are told, once, by two gateways", async () => {
  const { ann, bob, another, redis, told, ask, tick, clock } = await setup({
    ...{ by: ["approver:ann"], escalate_seconds: 600, escalate_to: ["approver:bob", "approver:ann"] },
  });
  const second = await another();
  const [forAnn, forBob] = [await told(ann), await told(bob)];
  const { interrupt_id } = await ask();
  await until(() => forAnn().length === 1);
  clock.offset_ms += 599_000;
  await tick();
  expect(forBob()).toEqual([]);
  clock.offset_ms += 2_000;
  for (let looks = 0; looks < 3; looks += 1) {
    await redis.del(keys.notifier);
    await Promise.all([tick(), second.gateway.broker.subscriptions.tick()]);
  }
  await until(() => forBob().length === 1);
  await tick();
  expect(forBob()).toMatchObject([{ type: "question", reason: "escalated", interrupt_id }]);
  // Ann, whose approval counts from the beginning, knows of it.
  expect(forAnn()).toHaveLength(1);
});

test("nothing is escalated once the question is answered", async () => {
  const { ann, bob, redis, told, ask, passes } = await setup({
    ...{ by: ["approver:ann"], escalate_seconds: 600, escalate_to: ["approver:bob"], remind_seconds: 60 },
  });
  const [forAnn, forBob] = [await told(ann), await told(bob)];
  const { id, interrupt_id } = await ask();
  await until(() => forAnn().length === 1);
  await ann.answer(id, interrupt_id, APPROVE);
  await passes(601);
  expect([forAnn().length, forBob().length]).toEqual([1, 0]);
  // Only its expiry is left in the list, until then.
  expect(await redis.zcard(keys.questionsExpiring)).toBe(1);
});

test("those who have not approved are reminded, each time with another id, and those who have are not", async () => {
  const { ann, bob, cyd, told, ask, passes } = await setup(
    {
      ...{ needed: 2, by: ["approver:ann", "approver:bob"], remind_seconds: 60 },
      ...{ escalate_seconds: 100, escalate_to: ["approver:cyd"] },
    },
    { limits: { interrupt_ttl_seconds: 200 } },
  );
  const [forAnn, forBob, forCyd] = [
    await told(ann, ["question"]),
    await told(bob, ["question"]),
    await told(cyd, ["question"]),
  ];
  const { id, interrupt_id } = await ask();
  await until(() => forAnn().length === 1 && forBob().length === 1);
  await ann.answer(id, interrupt_id, APPROVE);
  await passes(61);
  await until(() => forBob().length === 2);
  await passes(61);
  await until(() => forBob().length === 3 && forCyd().length > 0);
  await passes(61);
  await until(() => forBob().length === 4 && forCyd().length === 3);
  // The next one would come after its deadline.
  await passes(16);
  await passes(61);
  expect(forBob().map(({ reason, reminder }) => [reason, reminder])).toEqual([
    ...[[undefined, undefined] as const, ["reminder", 1], ["reminder", 2], ["reminder", 3]],
  ]);
  expect(new Set(forBob().map((one) => one.id)).size).toBe(4);
  expect(forBob()[1].title).toBe("scout still waits for your approval");
  expect(
    forCyd()
      .map(({ reason, reminder }) => `${reason} ${reminder}`)
      .sort(),
  ).toEqual(["escalated undefined", "reminder 2", "reminder 3"]);
  expect(forAnn()).toHaveLength(1);
});

test("of reminders that wait, only the last is sent; none before the channel's time if the person approved", async () => {
  const { ann, bob, subscribe, ask, passes } = await setup({ needed: 2, remind_seconds: 60 });
  const [late, other] = [await startReceiver(), await startReceiver()];
  for (const [who, { url }] of [[ann, late] as const, [bob, other] as const])
    await subscribe(who, {
      ...{ events: ["question"], digest_above: 3 },
      deliver: [{ kind: "webhook", url, after_seconds: 300 }],
    });
  const { id, interrupt_id } = await ask();
  await bob.answer(id, interrupt_id, APPROVE);
  for (let minutes = 0; minutes < 4; minutes += 1) await passes(61);
  expect(late.received).toEqual([]);
  await passes(300);
  await until(() => late.received.length === 2);
  const sent = bodies(late.received);
  expect(sent.map(({ type, reminder }) => [type, reminder])).toEqual([
    ["question", undefined],
    ["question", 4],
  ]);
  expect(other.received).toEqual([]);
});

test("who approved before an edit is told that their approval no longer counts, and reminded again", async () => {
  const { ann, bob, told, ask, tick, passes } = await setup({ needed: 2, remind_seconds: 60 });
  const [forAnn, forBob] = [await told(ann), await told(bob)];
  const { id, interrupt_id } = await ask();
  await until(() => forAnn().length === 1 && forBob().length === 1);
  await ann.answer(id, interrupt_id, APPROVE);
  await bob.answer(id, interrupt_id, { ...APPROVE, data: { to: "staging" } });
  await tick();
  await until(() => forAnn().length === 2);
  expect(forAnn()[1]).toMatchObject({ type: "question", reason: "voided", interrupt_id });
  expect(forAnn()[1].title).toContain("your approval no longer counts");
  await passes(61);
  await until(() => forAnn().length === 3);
  expect(forAnn()[2]).toMatchObject({ reason: "reminder", reminder: 1 });
  expect(forBob()).toHaveLength(1);
});

test("a question that expires says how many approvals it had", async () => {
  const { ann, bob, gateway, told, ask, passes, api } = await setup(
    { needed: 3 },
    { limits: { interrupt_ttl_seconds: 600 } },
  );
  const forAnn = await told(ann, ["question_expired"]);
  const { id, interrupt_id } = await ask();
  await bob.answer(id, interrupt_id, APPROVE);
  await passes(601);
  await gateway.sweep.tick();
  await passes(1);
  await until(() => forAnn().length === 1);
  expect(forAnn()[0]).toMatchObject({ type: "question_expired", interrupt_id });
  expect(forAnn()[0].title).toBe("Too few people approved what scout asked, so its work failed");
  expect(forAnn()[0].text).toMatch(/^It needed 3 approvals, and had 1\.\n/);
  const [expired] = (await ann.call("GET", "/v1/answers?outcome=expired")).body.answers;
  expect(expired).toMatchObject({ needed: 3, votes: [{ by: "approver:bob" }] });
  const last = (await api.events(id)).body.events.at(-1);
  expect(last).toMatchObject({ type: "DELEGATION_FAILED", needed: 3, votes: [{ by: "approver:bob" }] });
});

test("an agent without votes costs no list of its own: only the expiry is timed", async () => {
  const { api, told, ann, ask, redis } = await setup({ needed: 2, remind_seconds: 60 });
  await api.call("PATCH", "/v1/agents/scout", { votes: null });
  await told(ann);
  await ask();
  expect(await redis.zcard(keys.questionsExpiring)).toBe(1);
});

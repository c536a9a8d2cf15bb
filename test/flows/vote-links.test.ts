/** Links to questions that several people approve: what counts, what they never void, and which link works when. */
import { expect, test } from "vitest";
import { as, request } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { bodies, startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

const DEPLOY = { text: "May I?", action: { name: "deploy", arguments: { to: "prod" } }, edit: true };
const APPROVE = { decision: "approve" };
const EDITED = { ...APPROVE, data: { to: "staging" } };

async function setup(votes: Record<string, unknown>) {
  const started = await startSubscribed({ publicUrl: "https://errand.example" });
  const { api, alice, ann, url, subscribe, tick, clock } = started;
  await api.call("PATCH", "/v1/agents/scout", { votes });
  const [bob, cyd] = [await as(url, "approver:bob"), await as(url, "approver:cyd")];
  const linksOf = async (who: typeof ann) => {
    const { url: hook, received } = await startReceiver();
    await subscribe(who, { events: ["question"], deliver: [{ kind: "webhook", url: hook }] });
    return async (count: number) => {
      await tick();
      await until(() => received.length >= count);
      return bodies(received).map(({ link }) => String(link).split("#")[1]);
    };
  };
  const ask = async (question: Record<string, unknown> = DEPLOY) => {
    const { id } = (await alice.delegate("scout")).body;
    const [lease] = (await api.lease("scout")).body.leases;
    const { interrupt_id } = (await api.interrupt(lease.lease_id, question)).body;
    return { id: String(id), interrupt_id: String(interrupt_id) };
  };
  const post = (path: string, body: unknown) =>
    request(url, "POST", `/v1/links/${path}`, { body, token: null });
  const stateOf = async (id: string) => (await api.get(id)).body.state;
  const passes = async (seconds: number) => {
    clock.offset_ms += seconds * 1000;
    await tick();
  };
  return { ...started, bob, cyd, linksOf, ask, post, stateOf, passes };
}

test("an approval by a link is one of several: the answer says how many there are, and the link is spent", async () => {
  const { ann, bob, linksOf, ask, post, stateOf } = await setup({ needed: 2 });
  const [forAnn, forBob] = [await linksOf(ann), await linksOf(bob)];
  const { id, interrupt_id } = await ask();
  const [[one], [two]] = [await forAnn(1), await forBob(1)];
  expect((await post("question", { token: one })).body).not.toHaveProperty("no_approval");
  const voted = await post("answer", { token: one, ...APPROVE });
  const votes = { needed: 2, given: [{ by: "approver:ann", via: "link" }] };
  expect(voted).toMatchObject({ status: 200, body: { delegation_id: id, votes } });
  // The answer to the first press was lost.
  expect((await post("answer", { token: one, ...APPROVE })).body).toEqual(voted.body);
  expect((await post("answer", { token: one, decision: "deny" })).status).toBe(404);
  expect((await post("question", { token: one })).status).toBe(404);
  expect((await post("question", { token: two })).body.interrupt).toMatchObject({ id: interrupt_id, votes });
  expect((await post("answer", { token: two, ...APPROVE })).body).toEqual({ delegation_id: id });
  expect(await stateOf(id)).toBe("submitted");
  expect((await post("answer", { token: one, ...APPROVE })).body).toEqual({ delegation_id: id });
});

test("a link never voids the approvals of something else: that needs a sign-in, but it denies", async () => {
  const { api, ann, bob, linksOf, ask, post, stateOf } = await setup({ needed: 2 });
  const forAnn = await linksOf(ann);
  const { id, interrupt_id } = await ask();
  const [token] = await forAnn(1);
  await bob.answer(id, interrupt_id, EDITED);
  expect((await post("question", { token })).body).toMatchObject({ no_approval: "other_votes" });
  const refused = await post("answer", { token, ...APPROVE });
  expect(refused).toMatchObject({ status: 403, body: { code: "forbidden" } });
  expect(refused.body.recovery).toContain("Sign in");
  expect((await api.get(id)).body.interrupt.votes.given).toMatchObject([{ by: "approver:bob" }]);
  // Also once one approval would be enough.
  await api.call("PATCH", "/v1/agents/scout", { votes: null });
  expect((await post("answer", { token, ...APPROVE })).status).toBe(403);
  expect(await stateOf(id)).toBe("input_required");
  expect((await post("answer", { token, decision: "deny" })).status).toBe(200);
  expect(await stateOf(id)).toBe("submitted");
});

test("once an edit voids an approval by a link, its repeat counts for nothing, and the notification has another link", async () => {
  const { ann, bob, linksOf, ask, post, stateOf } = await setup({ needed: 2 });
  const forAnn = await linksOf(ann);
  const { id, interrupt_id } = await ask();
  const [first] = await forAnn(1);
  await post("answer", { token: first, ...APPROVE });
  await bob.answer(id, interrupt_id, EDITED);
  expect((await post("answer", { token: first, ...APPROVE })).status).toBe(404);
  const [, second] = await forAnn(2);
  expect(second).not.toBe(first);
  // Bob approves the original, so ann can by the link.
  await bob.answer(id, interrupt_id, APPROVE);
  expect((await post("question", { token: second })).body).not.toHaveProperty("no_approval");
  expect((await post("answer", { token: second, ...APPROVE })).body).toEqual({ delegation_id: id });
  expect(await stateOf(id)).toBe("submitted");
});

test("the link of a reminder answers, and all links end with the question", async () => {
  const { ann, bob, linksOf, ask, post, passes, redis } = await setup({ needed: 2, remind_seconds: 60 });
  const [forAnn, forBob] = [await linksOf(ann), await linksOf(bob)];
  const { id, interrupt_id } = await ask();
  const [[spent], [first]] = [await forAnn(1), await forBob(1)];
  await post("answer", { token: spent, ...APPROVE });
  await passes(61);
  await passes(61);
  const reminders = await forBob(3);
  // Many reminders do not fill the memory with links.
  expect(new Set(reminders).size).toBe(1);
  expect((await redis.keys("*link:*")).length).toBeLessThanOrEqual(2);
  expect((await post("question", { token: reminders[2] })).body.interrupt.votes.given).toHaveLength(1);
  await bob.answer(id, interrupt_id, { decision: "deny" });
  for (const token of [spent, first, ...reminders])
    expect((await post("question", { token })).status).toBe(404);
});

test("who approved elsewhere, and whose approval does not count by now, may only deny by the link", async () => {
  const { api, ann, bob, linksOf, ask, post, stateOf } = await setup({ needed: 2 });
  const [forAnn, forBob] = [await linksOf(ann), await linksOf(bob)];
  const { id, interrupt_id } = await ask();
  const [[own], [other]] = [await forAnn(1), await forBob(1)];
  await ann.answer(id, interrupt_id, APPROVE);
  expect((await post("question", { token: own })).body).toMatchObject({ no_approval: "given" });
  await api.call("PATCH", "/v1/agents/scout", { votes: { by: ["approver:ann"] } });
  expect((await post("question", { token: other })).body).toMatchObject({ no_approval: "not_counted" });
  const refused = await post("answer", { token: other, ...APPROVE });
  expect([refused.status, refused.body.detail]).toEqual([
    403,
    expect.stringContaining("The approval of approver:bob does not count"),
  ]);
  expect(await stateOf(id)).toBe("input_required");
  expect((await post("answer", { token: other, decision: "deny" })).status).toBe(200);
  expect(await stateOf(id)).toBe("submitted");
});

test("a question with approve among other options takes the decision by a link", async () => {
  const { ann, linksOf, ask, post, stateOf } = await setup({ needed: 1 });
  const forAnn = await linksOf(ann);
  const { id } = await ask({ text: "Now?", options: ["approve", "deny", "later"] });
  const [token] = await forAnn(1);
  expect((await post("answer", { token, ...APPROVE })).status).toBe(200);
  expect(await stateOf(id)).toBe("submitted");
});

test("of two different answers by one link at the same time one is given", async () => {
  const { ann, linksOf, ask, post } = await setup({ needed: 2 });
  const forAnn = await linksOf(ann);
  for (let n = 1; n <= 10; n += 1) {
    await ask();
    const token = (await forAnn(n)).at(-1);
    const pressed = await Promise.all(
      ["approve", "deny"].map((decision) => post("answer", { token, decision })),
    );
    const [given, other] = pressed.map(({ status }) => status).sort();
    // Refused because the link was used, or because the first answer was still being given.
    expect([given, [404, 429].includes(Number(other))]).toEqual([200, true]);
  }
});

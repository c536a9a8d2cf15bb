/** The delegator's actions on its delegations, with a real broker: answer, message, redrive, cancel in bulk. */
import { describe, expect, test } from "vitest";
import { Delegator } from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";
import { losingAnswers } from "../lossy-fetch.ts";

/** A broker with the agent scout, a caller, and the operator. */
async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 0 } });
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const operator = new Delegator({ url, token: OPERATOR });
  const next = async () => (await scout.lease("scout")).body.leases[0];
  /** Delegates, leases and asks a question. */
  const asked = async (question: Record<string, unknown> = { text: "Go on?" }) => {
    const { id } = await delegator.delegate({ target: "scout", task: "x" });
    const { lease_id } = await next();
    const { interrupt_id } = (await scout.interrupt(lease_id, question)).body;
    return { id, interruptId: String(interrupt_id) };
  };
  return { ...broker, scout, alice, delegator, operator, next, asked };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("a question", () => {
  test("is approved or denied without its id, with text and data, and the agent gets them", async () => {
    const { delegator, asked, next } = await setup();
    const one = await asked();
    const approved = await delegator.approve(one.id, { text: "but only main", data: { branch: "main" } });
    expect([approved.state, approved.interrupt]).toEqual(["submitted", null]);
    const { message } = (await next()).request.params;
    expect(message.parts).toEqual([{ text: "but only main" }, { data: { branch: "main" } }]);
    expect(message.metadata).toMatchObject({ decision: "approve", interrupt_id: one.interruptId });

    const two = await asked();
    await delegator.deny(two.id, { interruptId: two.interruptId });
    expect((await next()).request.params.message.metadata.decision).toBe("deny");
  });

  test("that is not open, or has several requests, is refused with an explanation", async () => {
    const { delegator, asked } = await setup();
    const { id } = await delegator.delegate({ target: "scout", task: "x", priority: 0 });
    await expect(delegator.approve(id)).rejects.toMatchObject({
      code: "interrupt_not_open",
      message: `${id} has no open question: it is submitted`,
    });
    await expect(delegator.deny(id, { interruptId: "int_other" })).rejects.toMatchObject({
      code: "interrupt_not_open",
      status: 409,
    });
    const requests = [
      { request_id: "host", text: "Which?" },
      { request_id: "token", text: "A token?" },
    ];
    const several = await asked({ requests });
    const refused = { code: "invalid_request", details: { request_ids: ["host", "token"] } };
    await expect(delegator.approve(several.id)).rejects.toMatchObject(refused);
    await expect(delegator.answer(several.id, null, "both")).rejects.toMatchObject(refused);
  });

  test("is answered once, however often the response gets lost, with one text or several answers", async () => {
    const { url, alice, delegator, asked, next } = await setup();
    const one = await asked();
    const fetch = losingAnswers((call) => call.endsWith("/answer"), 2);
    const unlucky = new Delegator({ url, token: alice.token, fetch });
    const { version } = await unlucky.answer(one.id, one.interruptId, "main");
    expect(fetch.lost).toHaveLength(2);
    expect((await delegator.answer(one.id, one.interruptId, "main")).version).toBe(version);
    await expect(delegator.answer(one.id, one.interruptId, "next")).rejects.toMatchObject({
      code: "interrupt_not_open",
    });
    expect((await next()).request.params.message.parts).toEqual([{ text: "main" }]);

    const requests = [{ request_id: "host" }, { request_id: "token", schema: { type: "object" } }];
    const several = await asked({ kind: "auth", requests });
    const answers = { host: "db1", token: { decision: "approve", data: { secret: 7 } } } as const;
    await delegator.answer(several.id, null, { answers });
    const { history } = (await next()).delegation;
    expect(history.slice(-2)).toMatchObject([
      { parts: [{ text: "db1" }], metadata: { request_id: "host" } },
      { parts: [{ data: { secret: 7 } }], metadata: { request_id: "token", decision: "approve" } },
    ]);
  });
});

test("a follow-up is stored once although responses got lost, as text or as a Message", async () => {
  const { url, alice, scout, delegator, next } = await setup();
  const { id } = await delegator.delegate({ target: "scout", task: "x" });
  const fetch = losingAnswers((call) => call.endsWith("/messages"), 2);
  await new Delegator({ url, token: alice.token, fetch }).message(id, "also the tests");
  expect(fetch.lost).toHaveLength(2);
  await delegator.message(id, { messageId: "mine", parts: [{ data: 7 }] });
  const { history } = await delegator.message(id, { messageId: "mine", parts: [{ data: 7 }] });
  expect(history.map(({ parts }) => parts)).toEqual([[{ text: "also the tests" }], [{ data: 7 }]]);
  const given = { by: "caller:ann", at: "yesterday" };
  await new Delegator({ url, token: OPERATOR }).message(id, { parts: [{ text: "no" }], metadata: given });
  const senders = (await delegator.get(id)).history.map(({ metadata }) => metadata?.by);
  expect(senders).toEqual(["caller:alice", "caller:alice", "operator"]);
  const { lease_id } = await next();
  await scout.reply(lease_id);
  await expect(delegator.message(id, "late")).rejects.toMatchObject({ code: "already_finished" });
});

describe("a failed delegation", () => {
  const failed = { state: "failed", text: undefined, error: { code: "no_map", message: "no map" } };

  test("is redriven once, by its delegator", async () => {
    const { delegator, scout, next } = await setup();
    const { id } = await delegator.delegate({ target: "scout", task: "x" });
    await expect(delegator.redrive(id)).rejects.toMatchObject({ code: "wrong_state" });
    await scout.reply((await next()).lease_id, failed);
    const again = await delegator.redrive(id);
    expect(again).toMatchObject({ redrive_of: id, state: "submitted", message: { parts: [{ text: "x" }] } });
    expect((await delegator.redrive(id)).id).toBe(again.id);
  });

  test("is redriven in bulk by the operator, page by page; live ones are canceled in the same way", async () => {
    const { delegator, operator, scout } = await setup();
    const sent = await delegator.delegateMany(
      Array.from({ length: 45 }, (_, n) => ({ target: "scout", task: String(n) })),
    );
    const ids = sent.map(({ delegation }) => delegation?.id);
    for (const max of [32, 13]) {
      const { leases } = (await scout.lease("scout", { max })).body;
      await Promise.all(leases.map((one: { lease_id: string }) => scout.reply(one.lease_id, failed)));
    }
    await expect(all(delegator.redriveMany({ target: "scout" }))).rejects.toMatchObject({
      code: "forbidden",
    });
    const filter = { target: "scout", error_code: "no_map" };
    const some = await all(operator.redriveMany(filter, { limit: 2 }));
    const rest = await all(operator.redriveMany(filter));
    expect([some.length, rest.length]).toEqual([2, 43]);
    expect(new Set([...some, ...rest].map(({ redrive_of }) => redrive_of))).toEqual(new Set(ids));
    expect(await all(operator.redriveMany(filter))).toEqual([]);
    const canceled = await all(operator.cancelMany({ target: "scout" }));
    expect(canceled.map(({ state }) => state)).toEqual(Array(45).fill("canceled"));
  });
});

/** The calls of a delegator on live delegations, one or many, with a real broker. */
import { describe, expect, test } from "vitest";
import { Admin, Delegator } from "../../../src/index.ts";
import { as, OPERATOR, startBroker } from "../../support/broker.ts";
import { losingAnswers } from "../lossy-fetch.ts";

/** A broker with the agents scout and smith, a caller, and the operator. */
async function setup() {
  const broker = await startBroker();
  const { url } = broker;
  const scout = await as(url, "agent:scout");
  await scout.agent("scout", { backoff: { initial_ms: 0 } });
  const smith = await as(url, "agent:smith");
  await smith.agent("smith");
  const alice = await as(url, "caller:alice");
  const delegator = new Delegator({ url, token: alice.token });
  const operator = new Delegator({ url, token: OPERATOR });
  const admin = new Admin({ url, token: OPERATOR });
  const next = async () => (await scout.lease("scout")).body.leases[0];
  /** Delegates, leases and asks a question. */
  const asked = async (question: Record<string, unknown> = { text: "Go on?" }) => {
    const { id } = await delegator.delegate({ target: "scout", task: "x" });
    const { lease_id } = await next();
    const { interrupt_id } = (await scout.interrupt(lease_id, question)).body;
    return { id, interruptId: String(interrupt_id) };
  };
  return { ...broker, scout, smith, alice, delegator, operator, admin, next, asked };
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
    const { id } = await delegator.delegate({ target: "smith", task: "x" });
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

describe("many at once", () => {
  test("are each accepted or refused individually, in order, over more than one request", async () => {
    const { delegator } = await setup();
    const inputs = Array.from({ length: 120 }, (_, n) => ({
      target: n === 110 ? "nobody" : "scout",
      task: n < 6 ? "x".repeat(250_000) : String(n),
      ...(n === 7 && { priority: 12 }),
    }));
    const results = await delegator.delegateMany(inputs);
    expect(results).toHaveLength(120);
    const codes = results.flatMap(({ error }, at) => (error ? [[at, error.code]] : []));
    expect(codes).toEqual([
      [7, "invalid_request"],
      [110, "agent_unknown"],
    ]);
    expect(results[119]?.delegation?.task_preview).toBe("119");
    expect((await all(delegator.list({}, { pageSize: 100 }))).length).toBe(118);
  });

  test("are accepted once although a response got lost, and a full queue says when to retry", async () => {
    const { url, alice, scout, delegator } = await setup();
    await scout.agent("scout", { limits: { max_waiting: 2 } });
    const fetch = losingAnswers((call) => call.endsWith("/batch"), 2);
    const unlucky = new Delegator({ url, token: alice.token, fetch });
    const [a, b, c] = await unlucky.delegateMany(["a", "b", "c"].map((task) => ({ target: "scout", task })));
    expect(fetch.lost).toHaveLength(2);
    expect((await all(delegator.list())).map(({ id }) => id).sort()).toEqual(
      [a?.delegation?.id, b?.delegation?.id].sort(),
    );
    expect(c?.error).toMatchObject({ code: "queue_full", retryable: true });
    expect(c?.error?.retryAfterMs).toBeGreaterThan(0);
  });

  test("that cannot be sent at all each report the reason", async () => {
    const { url } = await setup();
    const stranger = new Delegator({ url, token: "errand_wrong" });
    const results = await stranger.delegateMany([
      { target: "scout", task: "a" },
      { target: "scout", task: "b" },
    ]);
    expect(results.map(({ error }) => error?.code)).toEqual(["unauthenticated", "unauthenticated"]);
  });
});

test("a tree is walked level by level, the oldest first, as far as the principal may see", async () => {
  const { url, delegator, operator, scout, smith } = await setup();
  const lead = new Delegator({ url, token: scout.token });
  const maker = new Delegator({ url, token: smith.token });
  await operator.cancel((await delegator.delegate({ target: "smith", task: "not of it" })).id);
  const root = await delegator.delegate({ target: "scout", task: "root" });
  const a = await lead.delegate({ target: "smith", task: "a" }, { parentId: root.id });
  const b = await lead.delegate({ target: "smith", task: "b", parent_id: root.id });
  await operator.delegate({ target: "smith", task: "aa" }, { parentId: a.id });
  await operator.delegate({ target: "smith", task: "ba" }, { parentId: b.id });
  await operator.delegate({ target: "smith", task: "bb" }, { parentId: b.id });
  const walked = (from: Delegator, id: string) =>
    all(from.tree(id, { pageSize: 1 })).then((found) =>
      found.map(({ delegation, depth }) => `${depth} ${delegation.task_preview}`),
    );
  expect(await walked(operator, root.id)).toEqual(["0 root", "1 a", "1 b", "2 aa", "2 ba", "2 bb"]);
  expect(await walked(delegator, root.id)).toEqual(["0 root"]);
  expect(await walked(maker, b.id)).toEqual(["0 b", "1 ba", "1 bb"]);
});

test("times are passed as options, instants as dates", async () => {
  const { delegator } = await setup();
  const deadline = new Date(Date.now() + 7_200_000);
  const notBefore = new Date(Date.now() + 3_600_000);
  const later = await delegator.delegate(
    { target: "scout", task: "x", deadline: "2001-01-01T00:00:00.000Z" },
    { notBefore, deadline, startWithinSeconds: 60 },
  );
  expect([later.not_before_at, later.deadline_at]).toEqual([notBefore.toISOString(), deadline.toISOString()]);
  const soon = await delegator.delegate({ target: "scout", task: "x" }, { delaySeconds: 60, ttlSeconds: 60 });
  const span = Date.parse(soon.deadline_at) - Date.parse(soon.created_at);
  expect(span).toBeGreaterThanOrEqual(119_990);
  await expect(
    delegator.delegate({ target: "scout", task: "x" }, { notBefore, delaySeconds: 1 }),
  ).rejects.toMatchObject({ code: "invalid_request" });
});

test("a paused agent gets no work until it is resumed", async () => {
  const { admin, delegator, scout, next } = await setup();
  expect((await admin.pauseAgent("scout")).paused).toBe(true);
  const { id } = await delegator.delegate({ target: "scout", task: "x" });
  expect((await scout.lease("scout", { wait_seconds: 0.2 })).body.leases).toEqual([]);
  expect((await admin.resumeAgent("scout")).paused).toBe(false);
  expect((await next()).delegation.id).toBe(id);
});

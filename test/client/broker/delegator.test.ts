/** The delegator with a real broker: work is accepted once, events are neither missed nor repeated. */
import { describe, expect, test } from "vitest";
import { Delegator, type Result, type StreamEvent, textOf } from "../../../src/index.ts";
import { as, startBroker, type TestBroker } from "../../support/broker.ts";
import { cuttingStreams, losingAnswers } from "../lossy-fetch.ts";

/** A broker with the agent scout, and a caller. */
async function setup(options: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker(options);
  const scout = await as(broker.url, "agent:scout");
  await scout.agent("scout");
  const alice = await as(broker.url, "caller:alice");
  const delegator = new Delegator({ url: broker.url, token: alice.token });
  const send = async (task: string) => (await delegator.delegate({ target: "scout", task })).id;
  /** Leases the next delegation and ends it with this reply. */
  const work = async (reply: Record<string, unknown> = {}) => {
    const { lease_id } = (await scout.lease("scout")).body.leases[0];
    await scout.reply(lease_id, reply);
  };
  return { ...broker, scout, alice, delegator, send, work };
}

/** An agent that only speaks A2A asks a question: the delegation is parked. */
async function ask({ url }: TestBroker, scout: Awaited<ReturnType<typeof as>>) {
  const { lease_id } = (await scout.lease("scout")).body.leases[0];
  const status = {
    state: "TASK_STATE_INPUT_REQUIRED",
    message: { role: "ROLE_AGENT", parts: [{ text: "which?" }] },
  };
  const result = { task: { id: "t1", contextId: "c", status } };
  const answer = await scout.call("POST", "/v1/agents/scout/replies", {
    jsonrpc: "2.0",
    id: lease_id,
    result,
  });
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`);
}

async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) if (taken.push(item) === count) break;
  return taken;
}

const textsOf = (results: readonly Result[]) => results.map(({ delegation }) => textOf(delegation.message));

describe("delegating", () => {
  test("happens once however often the answer gets lost", async () => {
    const { url, alice, delegator } = await setup();
    const fetch = losingAnswers((asked) => asked === "POST /v1/delegations", 2);
    const unlucky = new Delegator({ url, token: alice.token, fetch });
    const { id, presence } = await unlucky.delegate({ target: "scout", task: "once" });
    expect(fetch.lost).toHaveLength(2);
    expect(presence?.state).toBe("offline");
    expect((await take(delegator.list(), 9)).map((one) => one.id)).toEqual([id]);
  });

  test("with the caller's key finds the same delegation again, and another body is refused", async () => {
    const { delegator } = await setup();
    const first = await delegator.delegate({ target: "scout", task: "x" }, { idempotencyKey: "mine" });
    const again = await delegator.delegate({ target: "scout", task: "x" }, { idempotencyKey: "mine" });
    expect(again.id).toBe(first.id);
    await expect(
      delegator.delegate({ target: "scout", task: "y" }, { idempotencyKey: "mine" }),
    ).rejects.toMatchObject({ code: "idempotency_conflict", status: 422 });
  });

  test("can wait for the end in the same call", async () => {
    const { delegator, work } = await setup();
    const asking = delegator.delegate({ target: "scout", task: "x" }, { waitSeconds: 20 });
    await work({ text: "there you are" });
    expect(await asking).toMatchObject({ state: "completed", reply: { parts: [{ text: "there you are" }] } });
  });

  test("reports what is wrong with the input", async () => {
    const { delegator } = await setup();
    await expect(delegator.delegate({ target: "nobody", task: "x" })).rejects.toMatchObject({
      code: "agent_unknown",
      category: "CONFIG",
    });
    await expect(delegator.delegate({ target: "scout", task: "x", priority: 12 })).rejects.toMatchObject({
      code: "invalid_request",
      details: { issues: [expect.objectContaining({ path: "priority" })] },
    });
  });

  test("takes times as options, instants as dates", async () => {
    const { delegator } = await setup();
    const deadline = new Date(Date.now() + 7_200_000);
    const notBefore = new Date(Date.now() + 3_600_000);
    const later = await delegator.delegate(
      { target: "scout", task: "x" },
      { notBefore, deadline, startWithinSeconds: 60 },
    );
    expect([later.not_before_at, later.deadline_at]).toEqual([
      notBefore.toISOString(),
      deadline.toISOString(),
    ]);
    const soon = await delegator.delegate(
      { target: "scout", task: "x" },
      { delaySeconds: 60, ttlSeconds: 60 },
    );
    const span = Date.parse(soon.deadline_at) - Date.parse(soon.created_at);
    expect(span).toBeGreaterThanOrEqual(119_990);
    await expect(
      delegator.delegate({ target: "scout", task: "x" }, { notBefore, delaySeconds: 1 }),
    ).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("refuses what is said twice, or not at all, before the broker does", async () => {
    const { delegator } = await setup();
    const input = { target: "scout", task: "x", delay_seconds: 5 };
    // @ts-expect-error Times are options.
    await expect(delegator.delegate(input, { delaySeconds: 9 })).rejects.toThrow(
      "delay_seconds is given twice",
    );
    // @ts-expect-error It has no content.
    await expect(delegator.delegate({ target: "scout" })).rejects.toMatchObject({ code: "invalid_request" });
    const both = { target: "scout", task: "x", message: { parts: [{ text: "y" }] } };
    // @ts-expect-error It has two contents.
    await expect(delegator.delegate(both)).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describe("waiting", () => {
  test("ends with any final state", async () => {
    const { delegator, send, work } = await setup();
    const waiting = delegator.wait(await send("x"), { timeoutSeconds: 20 });
    await work({ state: "failed", text: undefined, error: { code: "no_map", message: "there is no map" } });
    expect(await waiting).toMatchObject({ state: "failed", error: { code: "no_map", category: "UPSTREAM" } });
  });

  test("ends when the delegation asks a question", async () => {
    const broker = await setup();
    const waiting = broker.delegator.wait(await broker.send("x"), { timeoutSeconds: 20 });
    await ask(broker, broker.scout);
    const { state, interrupt } = await waiting;
    expect(state).toBe("input_required");
    expect(interrupt?.requests.map(({ message }) => textOf(message))).toEqual(["which?"]);
  });

  test("that resume show a question that is still open, once, and keep the cursor", async () => {
    const broker = await setup();
    const { delegator, scout, send } = broker;
    const id = await send("x");
    const first = await take(delegator.watch(id, { after: "0" }), 1);
    await ask(broker, scout);
    const before = await take(delegator.watch(id, { after: first[0]?.id }), 2);
    const asked = before.at(-1);
    expect(before.map(({ type }) => type)).not.toContain("DELEGATION_SNAPSHOT");
    expect(asked).toMatchObject({ status: "interrupted" });
    const seen: StreamEvent[] = [];
    for await (const event of delegator.watch(id, { after: asked?.id })) {
      seen.push(event);
      if (event.type !== "DELEGATION_SNAPSHOT") break;
      await delegator.answer(id, event.delegation.interrupt?.id ?? "", "this");
    }
    expect(seen).toMatchObject([
      { id: asked?.id, type: "DELEGATION_SNAPSHOT", delegation: { state: "input_required" } },
      { status: "answered" },
    ]);
    const [next] = await take(delegator.watch(id, { after: seen[0]?.id }), 1);
    expect(next).toMatchObject({ status: "answered" });
  });

  test("ends after the timeout, and the delegation continues", async () => {
    const { delegator, send } = await setup();
    const id = await send("x");
    await expect(delegator.wait(id, { timeoutSeconds: 0.2 })).rejects.toMatchObject({
      code: "wait_ran_out",
      category: "TIMEOUT",
    });
    expect((await delegator.get(id)).state).toBe("submitted");
  });
});

test("a watched delegation is seen completely and once, although its stream is cut in every third frame", async () => {
  const { url, alice, scout, send } = await setup();
  const fetch = cuttingStreams(2);
  const delegator = new Delegator({ url, token: alice.token, fetch });
  const id = await send("x");
  const seen = (async () => {
    const seqs: number[] = [];
    for await (const event of delegator.watch(id, { after: "0" })) {
      if (event.type !== "DELEGATION_SNAPSHOT" && event.type !== "RESET") seqs.push(event.seq);
    }
    return seqs;
  })();
  const { lease_id } = (await scout.lease("scout")).body.leases[0];
  for (let done = 1; done <= 6; done += 1) await scout.heartbeat(lease_id, { progress: { done } });
  await scout.reply(lease_id);
  expect(await seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(fetch.cuts()).toBeGreaterThan(1);
});

describe("results", () => {
  test("are the ended delegations, oldest first, and then new ones as they end", async () => {
    const { delegator, send, work } = await setup();
    for (const task of ["one", "two"]) await send(task);
    await work();
    await work();
    const live = take(delegator.results(), 3);
    await send("three");
    await work();
    expect(textsOf(await live)).toEqual(["one", "two", "three"]);
  });

  test("continue after the cursor of the last result that was processed", async () => {
    const { delegator, send, work } = await setup();
    for (const task of ["one", "two"]) await send(task);
    await work();
    const [first] = await take(delegator.results({ follow: false }), 1);
    await work();
    const rest = await take(delegator.results({ after: first?.cursor, follow: false }), 9);
    expect([first, ...rest].map((result) => result && textOf(result.delegation.message))).toEqual([
      "one",
      "two",
    ]);
  });

  test("of a page that was processed in part are returned again, and none is missed", async () => {
    const { delegator, send, work } = await setup();
    for (const task of ["one", "two", "three"]) await send(task);
    for (let i = 0; i < 3; i += 1) await work();
    const [, second] = await take(delegator.results({ follow: false }), 2);
    const again = await take(delegator.results({ after: second?.cursor, follow: false }), 9);
    expect(textsOf(again)).toEqual(["one", "two", "three"]);
    const last = again.at(-1);
    expect(await take(delegator.results({ after: last?.cursor, follow: false }), 9)).toEqual([]);
  });

  test("contain the question, then the end, each once", async () => {
    const broker = await setup();
    const id = await broker.send("x");
    await ask(broker, broker.scout);
    const inbox = broker.delegator.results();
    const question = await inbox.next();
    await broker.delegator.cancel(id);
    const end = await inbox.next();
    expect([question, end].map(({ value }) => value?.delegation.state)).toEqual([
      "input_required",
      "canceled",
    ]);
  });

  test("of a delegation that asked and then ended are shown once in its current state, also across pages", async () => {
    const broker = await setup();
    const { delegator, send } = broker;
    const id = await send("x");
    await ask(broker, broker.scout);
    for (let i = 0; i < 25; i += 1) await delegator.cancel(await send("y"));
    await delegator.cancel(id);
    const all = await take(delegator.results({ follow: false }), 99);
    expect(all).toHaveLength(26);
    expect(all[0]?.delegation).toMatchObject({ id, state: "canceled" });
  });

  test("survive lost answers, however short the retry time of other calls", async () => {
    const { url, alice, send, work } = await setup();
    const fetch = losingAnswers((asked) => asked === "GET /v1/results", 3);
    const retries: string[] = [];
    const delegator = new Delegator({
      url,
      token: alice.token,
      fetch,
      retryForMs: 0,
      onRetry: ({ code }) => retries.push(code),
    });
    const live = take(delegator.results(), 2);
    for (const task of ["one", "two"]) await send(task);
    await work();
    await work();
    expect(textsOf(await live)).toEqual(["one", "two"]);
    expect(retries).toEqual(["connection_lost", "connection_lost", "connection_lost"]);
  });

  test("end with the signal", async () => {
    const { delegator } = await setup();
    const controller = new AbortController();
    const next = delegator.results({ signal: controller.signal }).next();
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
  });
});

describe("lists", () => {
  test("show everything, newest first, page by page", async () => {
    const { delegator, send, work } = await setup();
    const ids: string[] = [];
    for (const task of ["1", "2", "3", "4", "5"]) ids.unshift(await send(task));
    const listed: string[] = [];
    for await (const { id } of delegator.list({ target: "scout" }, { pageSize: 2 })) listed.push(id);
    expect(listed).toEqual(ids);
    await work();
    const ended = await take(delegator.list({ state: "completed" }), 9);
    expect(ended.map(({ message }) => textOf(message))).toEqual(["1"]);
  });
});

describe("canceling", () => {
  test("is done once, can be repeated, and is refused for finished work", async () => {
    const { delegator, send, work } = await setup();
    const [id, done] = [await send("x"), await send("y")];
    expect(await delegator.cancel(id, "changed my mind")).toMatchObject({ state: "canceled" });
    expect(await delegator.cancel(id)).toMatchObject({ state: "canceled", version: 2 });
    await work();
    await expect(delegator.cancel(done)).rejects.toMatchObject({ code: "already_finished", status: 409 });
  });
});
